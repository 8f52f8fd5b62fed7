// run() on a stream of the caller's: captured in a CUDA graph, which is replayed on new data.
#include "conformance/runners.h"
#include "testkit/device_time.h"

namespace chunkscan {
namespace {

using testkit::Case;
using testkit::CaseSpec;
using testkit::DeviceCall;
using testkit::Graph;
using testkit::PackedBy;
using testkit::PreparedDeviceCall;

class Graphs : public Conformance {
 protected:
  // Captures the call, then replays it on numbers that change each time, and on lengths out of
  // `lengths` where it is packed by cu_seqlens.
  void expect_right_replays(const CaseSpec& spec,
                            const std::vector<std::vector<std::int64_t>>& lengths) {
    Case c = make(spec);
    const DeviceCall copies(c.inputs, c.outputs);
    const PreparedDeviceCall prepared(copies, with(c.options));
    // The very first run: it may neither wait for the device nor allocate its memory.
    const Graph graph(copies.stream(), [&prepared] { prepared.run(); });
    for (std::size_t round = 0; round < lengths.size(); ++round) {
      CaseSpec next_spec = c.spec;
      next_spec.seed = spec.seed + round;
      next_spec.lengths = lengths[round];
      const Case next(next_spec);
      take_values(next.inputs, c.inputs);
      c.poison_outputs();
      copies.upload();
      prepared.workspace().fill(0xff);
      graph.launch();
      copies.download();
      EXPECT_TRUE(copies.untouched_elsewhere()) << round;
      const testkit::Oracle oracle(next.inputs, next.outputs, next.options);
      const auto comparisons = oracle.check(c.outputs, testkit::Data::kAny);
      EXPECT_TRUE(all_ok(comparisons)) << round << "\n" << to_string(comparisons);
    }
  }

 private:
  static void take_values(const Inputs& from, const Inputs& to) {
    for (auto member :
         {&Inputs::x, &Inputs::dt, &Inputs::A, &Inputs::B, &Inputs::C, &Inputs::D, &Inputs::z,
          &Inputs::dt_bias, &Inputs::initial_states, &Inputs::seq_idx, &Inputs::cu_seqlens}) {
      if ((to.*member).present()) testkit::copy(from.*member, to.*member);
    }
  }
};

CaseSpec everything(DType dtype) {
  CaseSpec spec;
  spec.dtype = dtype;
  spec.l = 300;
  spec.h = 6;
  spec.g = 2;
  spec.p = 64;
  spec.n = 128;
  spec.z = true;
  spec.initial_states = spec.final_states = DType::kF32;
  return spec;
}

TEST_P(Graphs, OfABatch) {
  for (DType dtype : {DType::kBF16, DType::kF32}) {
    CaseSpec spec = everything(dtype);
    spec.b = 2;
    spec.chunk_states = DType::kBF16;
    spec.state_every = 100;
    spec.log_decay = true;
    expect_right_replays(spec, {{}, {}, {}});
  }
}

TEST_P(Graphs, OfPackedSequencesWithOtherLengths) {
  for (DType dtype : {DType::kBF16, DType::kF32}) {
    CaseSpec spec = everything(dtype);
    spec.packed_by = PackedBy::kCuSeqlens;
    spec.lengths = {100, 50, 0, 150};
    spec.chunk_states = DType::kF32;
    spec.state_every = 30;
    spec.log_decay = true;
    expect_right_replays(
        spec, {{100, 50, 0, 150}, {1, 1, 1, 1}, {0, 0, 300, 0}, {0, 0, 0, 0}, {129, 63, 65, 40}});
  }
}

TEST_P(Graphs, OfRunsOfSeqIdx) {
  CaseSpec spec = everything(DType::kBF16);
  spec.b = 2;
  spec.packed_by = PackedBy::kSeqIdx;
  spec.lengths = {100, 50, 150};
  expect_right_replays(spec, {{100, 50, 150}, {1, 1, 298}, {300}, {64, 64, 172}});
}

// What the tests above rely on.
TEST_P(Graphs, ACaptureRefusesToWait) {
  const testkit::Stream stream;
  EXPECT_THROW(Graph(stream, [&stream] { stream.synchronize(); }), Error);
  const testkit::DeviceMemory memory(16);  // the stream and the device are of use again
  stream.copy_to_device(memory.data(), "sixteen letters", 16);
}

INSTANTIATE_TEST_SUITE_P(, Graphs, testing::ValuesIn(runners()), runner_name);

}  // namespace
}  // namespace chunkscan
