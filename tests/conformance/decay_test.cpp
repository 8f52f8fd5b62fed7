// Step sizes and decays far from the usual: huge, none, growing; softplus and limits.
#include <cmath>

#include "conformance/runners.h"

namespace chunkscan {
namespace {

using testkit::Case;
using testkit::CaseSpec;
using testkit::DForm;
using testkit::Index;
using testkit::slice;

class Decay : public Conformance {};

// dt is dt': no bias, no softplus.
CaseSpec plain(DType dtype, std::int64_t l) {
  CaseSpec spec;
  spec.dtype = dtype;
  spec.dt_dtype = DType::kF32;
  spec.l = l;
  spec.h = 3;
  spec.p = 10;
  spec.n = 12;
  spec.softplus = spec.dt_bias = false;
  spec.final_states = DType::kF32;
  spec.log_decay = true;
  return spec;
}

constexpr DType kFloats[] = {DType::kF32, DType::kBF16, DType::kF16};

TEST_P(Decay, EveryStepAndRate) {
  for (DType dtype : kFloats) {
    for (double A : {-1.0, -16.0, -1e2, -1e4, -1e6}) {
      for (double dt : {0.0, 1e-4, 1.0, 20.0, 1e3}) {
        Case c = make(plain(dtype, 150));
        testkit::fill(c.inputs.A, A);
        testkit::fill(c.inputs.dt, dt);
        expect_right(c, 64, "A " + std::to_string(A) + " dt " + std::to_string(dt));
      }
    }
  }
}

// A step that wipes the state out beside steps of 0 and small ones: sums of log decays within a
// chunk hold both.
TEST_P(Decay, HugeAndNoStepsAlternate) {
  for (DType dtype : kFloats) {
    for (double A : {-1.0, -1e2, -1e6}) {
      for (int every : {2, 3, 50}) {
        Case c = make(plain(dtype, 300));
        testkit::fill(c.inputs.A, A);
        testkit::fill(c.inputs.dt, [every](Index i) {
          const double small[] = {0.0, 1e-4, 1e-2};
          return i[1] % every == 1 ? 1e3 : small[i[1] % 3];
        });
        for (int q : {16, 128, 256}) {
          expect_right(c, q, "A " + std::to_string(A) + " every " + std::to_string(every));
        }
      }
    }
  }
}

// Values beside a huge one keep their own precision.
TEST_P(Decay, SmallStatesBehindAHugeOne) {
  Case c = make(plain(DType::kF32, 200));
  testkit::fill(c.inputs.A, -1.0);
  testkit::fill(c.inputs.dt, [](Index i) { return i[1] == 70 ? 200.0 : 0.01; });
  testkit::fill(c.inputs.x, [](Index i) { return i[1] < 70 ? 1e6 : 1.0; });
  expect_right(c, 128);
  // The rows behind the wipe, on their own: the large ones before would hide their error.
  const testkit::Oracle oracle(c.inputs, c.outputs, c.options);
  expect_part_right(c, testkit::Output::kY, slice(c.outputs.y, 1, 71, 200),
                    slice(oracle.outputs().y, 1, 71, 200));
}

// A state that hardly decays must not collect a rounding a token, nor the same rounding of its
// decay over and over.
TEST_P(Decay, SlowDecaysOverALongSequence) {
  CaseSpec spec = plain(DType::kF32, 200'000);
  spec.h = 1;
  spec.p = spec.n = 4;
  for (double A : {-1e-3, -1e-5, 0.0}) {
    Case c = make(spec);
    testkit::fill(c.inputs.A, A);
    testkit::fill(c.inputs.dt, 1.0);
    for (const TensorView& view : {c.inputs.x, c.inputs.B}) {
      testkit::fill(view, [&view](Index i) {
        return std::abs(testkit::get(view, {i[0], i[1], i[2], i[3]}));
      });
    }
    expect_right(c, 64, "A " + std::to_string(A));
  }
}

// The same step a million times: whatever rounding takes from it must not be taken a million times.
TEST_P(Decay, AMillionEqualSteps) {
  if (on_gpu()) GTEST_SKIP() << "on a GPU a state that hardly decays collects a rounding a chunk";
  CaseSpec spec = plain(DType::kF32, 1'000'000);
  spec.h = spec.g = 1;
  spec.p = spec.n = 1;
  for (const auto& [dt, A] : {std::pair{1e-3, -1e-6}, {0.1, 0.0}}) {
    Case c = make(spec);
    testkit::fill(c.inputs.A, A);
    testkit::fill(c.inputs.dt, dt);
    for (const TensorView& view : {c.inputs.x, c.inputs.B, c.inputs.C}) testkit::fill(view, 1.0);
    expect_right(c, 48, "A " + std::to_string(A));
  }
}

// Tokens behind the last one are no tokens: a bias and softplus must not give them a step.
TEST_P(Decay, PaddingIsNeutral) {
  for (int q : {16, 64, 256}) {
    for (int l : {q - 1, q + 1}) {
      CaseSpec spec = plain(DType::kF32, l);
      spec.softplus = spec.dt_bias = true;
      Case c = make(spec);
      testkit::fill(c.inputs.dt_bias, 5.0);
      testkit::fill(c.inputs.A, -0.05);
      expect_right(c, q);
    }
  }
}

TEST_P(Decay, SoftplusFarFromZero) {
  const double raw[] = {-50, -20, -1, 0, 19.9, 20, 20.1, 25, 80};
  for (double A : {-1.0, -1e-3}) {
    CaseSpec spec = plain(DType::kF32, 90);
    spec.softplus = true;
    Case c = make(spec);
    testkit::fill(c.inputs.A, A);
    testkit::fill(c.inputs.dt, [&raw](Index i) { return raw[(i[1] + i[2]) % 9]; });
    expect_right(c, 16);
    // Tiny steps alone, which the large ones would hide.
    testkit::fill(c.inputs.dt, [](Index i) { return i[1] % 2 == 0 ? -20.0 : -50.0; });
    testkit::fill(c.inputs.D, 0.0);
    expect_right(c, 16, "tiny");
    spec.dtype = spec.dt_dtype.emplace(DType::kBF16);
    Case half = make(spec);
    testkit::fill(half.inputs.dt, [&raw](Index i) { return raw[(i[1] + i[2]) % 9]; });
    expect_right(half, 16, "bf16");
  }
}

TEST_P(Decay, LimitsOfTheStep) {
  for (auto [low, high] : {std::pair{0.0f, 0.01f}, {0.02f, 0.03f}, {0.05f, 0.05f}, {0.0f, 0.0f}}) {
    CaseSpec spec = plain(DType::kF32, 100);
    spec.softplus = spec.dt_bias = true;
    spec.dt_min = low;
    spec.dt_max = high;
    expect_right(spec, 16);
  }
}

TEST_P(Decay, GrowingStates) {
  for (DType dtype : {DType::kF32, DType::kBF16}) {
    for (double A : {0.01, 0.5, 2.0}) {
      Case c = make(plain(dtype, 100));
      testkit::fill(c.inputs.A, A);
      testkit::fill(c.inputs.dt, [](Index i) { return i[1] % 3 == 0 ? 0.3 : 0.05; });
      for (int q : {16, 64, 256}) expect_right(c, q, "A " + std::to_string(A));
    }
  }
}

TEST_P(Decay, NegativeSteps) {
  CaseSpec spec = plain(DType::kF32, 150);
  spec.dt_min = -0.5f;
  Case c = make(spec);
  testkit::fill(c.inputs.A, -1.0);
  testkit::fill(c.inputs.dt, [](Index i) {
    return 0.3 * testkit::normal_at(5, static_cast<std::uint64_t>(i[1] * 3 + i[2]));
  });
  for (int q : {16, 64, 256}) expect_right(c, q);
  spec.dt_min = -std::numeric_limits<float>::infinity();
  Case unlimited = make(spec);
  testkit::fill(unlimited.inputs.A, -1.0);
  testkit::fill(unlimited.inputs.dt, [](Index i) { return i[1] % 4 == 0 ? -0.2 : 0.1; });
  expect_right(unlimited, 64);
}

// Where fp32 is TF32 or the like, whole numbers of this size come out wrong.
TEST_P(Decay, WholeNumbersKeepTheirBits) {
  CaseSpec spec = plain(DType::kF32, 531);
  spec.packed_by = testkit::PackedBy::kCuSeqlens;
  spec.lengths = {50, 64, 202, 92, 123};
  spec.n = 64;
  Case c = make(spec);
  std::uint64_t draw = 0;
  for (const TensorView& view : {c.inputs.x, c.inputs.B, c.inputs.C}) {
    testkit::fill(view, [&draw](Index) {
      return std::floor(testkit::uniform_at(11, draw++) * 201.0f) - 100.0;
    });
  }
  expect_right(c, 64);
  std::int64_t begin = 0;
  for (std::int64_t length : spec.lengths) {
    Outputs out;
    const testkit::OwnedTensor y =
        testkit::OwnedTensor::copy_of(slice(c.outputs.y, 1, begin, begin + length));
    out.y = y.view();
    testkit::poison(out.y);
    call(tokens(c.inputs, begin, begin + length), out, c.options, 64);
    expect_close(c, testkit::Output::kY, slice(c.outputs.y, 1, begin, begin + length), out.y);
    begin += length;
  }
}

INSTANTIATE_TEST_SUITE_P(, Decay, testing::ValuesIn(runners()), runner_name);

}  // namespace
}  // namespace chunkscan
