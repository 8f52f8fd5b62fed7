// The same bits: every run, any number of threads, and with batch_invariant whatever stands beside
// or behind a sequence.
#include "conformance/runners.h"

namespace chunkscan {
namespace {

using testkit::Case;
using testkit::CaseSpec;
using testkit::PackedBy;
using testkit::slice;

class Determinism : public Conformance {};

CaseSpec spec_of(std::int64_t b, std::int64_t l, std::int64_t h, DType dtype) {
  CaseSpec spec;
  spec.b = b;
  spec.l = l;
  spec.h = h;
  spec.p = 40;
  spec.n = 32;
  spec.z = true;
  spec.dtype = dtype;
  spec.initial_states = spec.final_states = DType::kF32;
  spec.log_decay = true;
  return spec;
}

TEST_P(Determinism, EveryRunAndThreadCount) {
  for (auto [b, h] : {std::pair{1, 1}, std::pair{1, 5}, std::pair{3, 4}}) {
    for (DType dtype : {DType::kF32, DType::kBF16}) {
      const CaseSpec spec = spec_of(b, 300, h, dtype);
      Case first = make(spec);
      first.options.threads = 1;
      run(first);
      for (int threads : {1, 2, 2, 3, 7}) {
        Case again = make(spec);
        again.options.threads = threads;
        run(again);
        expect_same_outputs(first.outputs, again.outputs);
      }
    }
  }
}

// Heads that no number of threads divides, more threads than blocks of work: how the work is cut
// changes no bit, and no thread lacks scratch of its own.
TEST_P(Determinism, HowWorkIsCut) {
  for (std::int64_t h : {7, 17, 64, 80}) {
    CaseSpec spec;
    spec.l = 150;
    spec.h = h;
    spec.final_states = DType::kF32;
    Case first = make(spec);
    first.options.threads = 1;
    run(first);
    for (int threads : {2, 3, 5, 9, 13, 17, 31}) {
      Case again = make(spec);
      again.options.threads = threads;
      run(again);
      expect_same_outputs(first.outputs, again.outputs);
    }
  }
}

TEST_P(Determinism, BatchInvariance) {
  for (DType dtype : {DType::kF32, DType::kBF16}) {
    Case batch = make(spec_of(5, 200, 4, dtype));
    batch.options.batch_invariant = true;
    run(batch);
    for (std::int64_t b : {0, 3}) {
      // The row alone, and cut off after 77 tokens.
      for (std::int64_t l : {200, 77}) {
        Inputs inputs = tokens(batch.inputs, 0, l);
        for (TensorView* view : {&inputs.x, &inputs.dt, &inputs.B, &inputs.C, &inputs.z}) {
          *view = slice(*view, 0, b, b + 1);
        }
        inputs.initial_states = slice(batch.inputs.initial_states, 0, b, b + 1);
        Case alone = make(spec_of(1, l, 4, dtype));
        alone.options.batch_invariant = true;
        call(inputs, alone.outputs, alone.options);
        EXPECT_TRUE(testkit::same_bits(alone.outputs.y,
                                       slice(slice(batch.outputs.y, 0, b, b + 1), 1, 0, l)));
        if (l < 200) continue;
        EXPECT_TRUE(testkit::same_bits(alone.outputs.final_states,
                                       slice(batch.outputs.final_states, 0, b, b + 1)));
      }
    }
  }
}

TEST_P(Determinism, BatchInvarianceOfPackedSequences) {
  for (DType dtype : {DType::kF32, DType::kBF16}) {
    CaseSpec spec = spec_of(1, 310, 4, dtype);
    spec.packed_by = PackedBy::kCuSeqlens;
    spec.lengths = {33, 0, 150, 5, 100};
    Case packed = make(spec);
    packed.options.batch_invariant = true;
    run(packed);
    std::int64_t begin = 0;
    for (std::size_t i = 0; i < spec.lengths.size(); ++i) {
      const std::int64_t end = begin + spec.lengths[i], s = static_cast<std::int64_t>(i);
      Inputs inputs = tokens(packed.inputs, begin, end);
      inputs.initial_states = slice(packed.inputs.initial_states, 0, s, s + 1);
      Case alone = make(spec_of(1, end - begin, 4, dtype));
      alone.options.batch_invariant = true;
      call(inputs, alone.outputs, alone.options);
      EXPECT_TRUE(testkit::same_bits(alone.outputs.y, slice(packed.outputs.y, 1, begin, end)));
      EXPECT_TRUE(testkit::same_bits(alone.outputs.final_states,
                                     slice(packed.outputs.final_states, 0, s, s + 1)));
      begin = end;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, Determinism, testing::ValuesIn(runners()), runner_name);

}  // namespace
}  // namespace chunkscan
