// What the shared tests ask at sizes that fill a GPU's tiles, and GPU against CPU.
#include <cmath>

#include "conformance/runners.h"

namespace chunkscan {
namespace {

using testkit::Case;
using testkit::CaseSpec;
using testkit::DeviceCall;
using testkit::DForm;
using testkit::Layout;
using testkit::OwnedTensor;
using testkit::PackedBy;
using testkit::PreparedDeviceCall;
using testkit::slice;

class Values : public Conformance {};

CaseSpec tiles(std::int64_t b, std::int64_t l, std::int64_t h, DType dtype) {
  CaseSpec spec;
  spec.b = b;
  spec.l = l;
  spec.h = h;
  spec.p = 64;
  spec.n = 128;
  spec.dtype = dtype;
  spec.z = true;
  spec.initial_states = spec.final_states = DType::kF32;
  return spec;
}

constexpr DType kFloats[] = {DType::kBF16, DType::kF16, DType::kF32};

// Batch row b of the inputs.
Inputs row_of(const Inputs& inputs, std::int64_t b) {
  Inputs row = inputs;
  for (TensorView* view : {&row.x, &row.dt, &row.B, &row.C, &row.z, &row.initial_states}) {
    if (view->present()) *view = slice(*view, 0, b, b + 1);
  }
  return row;
}

// Whatever the workspace held before.
TEST_P(Values, TenRunsGiveTheSameBits) {
  for (DType dtype : kFloats) {
    Case first = make(tiles(2, 1000, 6, dtype)), again = make(tiles(2, 1000, 6, dtype));
    run(first);
    const DeviceCall copies(again.inputs, again.outputs);
    const PreparedDeviceCall prepared(copies, with(again.options));
    for (int i = 0; i < 10; ++i) {
      again.poison_outputs();
      copies.upload();
      prepared.workspace().fill(i % 2 == 0 ? 0xff : static_cast<unsigned char>(37 * i));
      prepared.run();
      copies.download();
      expect_same_outputs(first.outputs, again.outputs);
    }
  }
}

TEST_P(Values, BatchInvarianceOfLongRows) {
  for (DType dtype : {DType::kBF16, DType::kF32}) {
    Case batch = make(tiles(4, 4096, 4, dtype));
    batch.options.batch_invariant = true;
    run(batch);
    for (std::int64_t l : {4096, 1000}) {
      Inputs inputs = tokens(row_of(batch.inputs, 2), 0, l);
      inputs.initial_states = slice(batch.inputs.initial_states, 0, 2, 3);
      Case alone = make(tiles(1, l, 4, dtype));
      alone.options.batch_invariant = true;
      call(inputs, alone.outputs, alone.options);
      EXPECT_TRUE(
          testkit::same_bits(alone.outputs.y, slice(slice(batch.outputs.y, 0, 2, 3), 1, 0, l)));
    }
  }
}

// More than 65,535 of either, which some dimensions of a grid end at.
TEST_P(Values, ManyRowsAndHeadsAreTheirHalves) {
  for (auto [b, h] : {std::pair<std::int64_t, std::int64_t>{70'000, 1}, {1, 70'000}}) {
    CaseSpec spec = testkit::sized(3, h, 1, 8, 8);
    spec.b = b;
    spec.dtype = DType::kBF16;
    spec.final_states = DType::kF32;
    Case whole = make(spec);
    run(whole);
    const int axis = b > 1 ? 0 : 2, state_axis = b > 1 ? 0 : 1;
    const std::int64_t count = std::max(b, h);
    for (std::int64_t begin : {std::int64_t{0}, count / 2}) {
      const std::int64_t end = begin + count / 2;
      Inputs half = whole.inputs;
      for (TensorView* view : {&half.x, &half.dt}) *view = slice(*view, axis, begin, end);
      if (b > 1) {
        for (TensorView* view : {&half.B, &half.C}) *view = slice(*view, 0, begin, end);
      } else {
        for (TensorView* view : {&half.A, &half.D, &half.dt_bias}) {
          *view = slice(*view, 0, begin, end);
        }
      }
      const TensorView want[] = {slice(whole.outputs.y, axis, begin, end),
                                 slice(whole.outputs.final_states, state_axis, begin, end)};
      const OwnedTensor y = OwnedTensor::copy_of(want[0]), state = OwnedTensor::copy_of(want[1]);
      testkit::poison(y.view());
      testkit::poison(state.view());
      Outputs out;
      out.y = y.view();
      out.final_states = state.view();
      call(half, out, whole.options);
      expect_close(half, testkit::Output::kY, out.y, want[0]);
      expect_close(half, testkit::Output::kState, out.final_states, want[1]);
    }
  }
}

// Rows of a projection are multiples of 16 bytes apart for some numbers of heads only.
TEST_P(Values, SlicesOfAProjectionWithAnyNumberOfHeads) {
  for (DType dtype : {DType::kBF16, DType::kF32}) {
    for (std::int64_t h = 1; h <= 17; ++h) {
      CaseSpec spec = tiles(1, 200, h, dtype);
      spec.n = 64;
      Case plain = make(spec);
      run(plain);
      spec.layout = Layout::kFused;
      Case fused = make(spec);
      if (!takes(fused)) continue;
      run(fused);
      expect_same_numbers(plain, fused);
    }
  }
}

// Sequences begin and end anywhere in a tile.
TEST_P(Values, NoisyNeighboursChangeNoBit) {
  for (DType dtype : kFloats) {
    CaseSpec spec = tiles(1, 1000, 4, dtype);
    spec.packed_by = PackedBy::kCuSeqlens;
    spec.lengths = {130, 300, 3, 257, 200};  // 110 rows outside
    Case clean = make(spec), spoiled = make(spec);
    run(clean);
    const auto spoil = [&](std::int64_t begin, std::int64_t end, double value) {
      for (const TensorView& view : {spoiled.inputs.x, spoiled.inputs.dt, spoiled.inputs.B,
                                     spoiled.inputs.C, spoiled.inputs.z}) {
        testkit::fill(slice(view, 1, begin, end), value);
      }
    };
    spoil(0, 130, NAN);
    spoil(430, 433, HUGE_VAL);
    spoil(690, 1000, NAN);
    testkit::fill(slice(spoiled.inputs.initial_states, 0, 0, 1), NAN);
    run(spoiled);
    for (auto [i, begin, end] : {std::array<std::int64_t, 3>{1, 130, 430}, {3, 433, 690}}) {
      EXPECT_TRUE(testkit::same_bits(slice(clean.outputs.y, 1, begin, end),
                                     slice(spoiled.outputs.y, 1, begin, end)));
      EXPECT_TRUE(testkit::same_bits(slice(clean.outputs.final_states, 0, i, i + 1),
                                     slice(spoiled.outputs.final_states, 0, i, i + 1)));
    }
    for (std::int64_t t : {890, 999}) EXPECT_EQ(testkit::get(spoiled.outputs.y, {0, t, 1, 9}), 0.0);
  }
}

TEST_P(Values, AgreesWithTheCpu) {
  for (DType dtype : kFloats) {
    CaseSpec spec = tiles(2, 1100, 8, dtype);
    spec.g = 2;
    spec.log_decay = true;
    Case gpu = make(spec);
    Case cpu(gpu.spec);
    run(gpu);
    forward(cpu.inputs, cpu.outputs, cpu.options);
    expect_close(cpu.inputs, gpu.outputs, cpu.outputs);
  }
}

INSTANTIATE_TEST_SUITE_P(, Values, testing::ValuesIn(runners()), runner_name);

// Where there is a GPU that is not too old, nothing above is skipped for want of a backend.
TEST(GpuBackends, AreHere) {
  if (const std::string why = testkit::gpu_unavailable(); !why.empty()) GTEST_SKIP() << why;
  std::string portable = "not in this build";
  for (const BackendInfo& backend : backends()) {
    if (backend.name == "cuda/portable") portable = backend.reason;
  }
  EXPECT_EQ(portable, "");
}

}  // namespace
}  // namespace chunkscan
