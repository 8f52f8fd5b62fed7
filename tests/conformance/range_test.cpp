// Numbers near fp32's ends: whatever is multiplied on the way, a result that fits is right.
#include <cmath>
#include <optional>

#include "conformance/runners.h"

namespace chunkscan {
namespace {

using testkit::Case;
using testkit::CaseSpec;
using testkit::DForm;
using testkit::Index;
using testkit::slice;

class Range : public Conformance {};

constexpr DType kWide[] = {DType::kF32, DType::kBF16};

// dt is dt', and nothing hides the state's part of y.
CaseSpec bare(DType dtype) {
  CaseSpec spec;
  spec.dtype = dtype;
  spec.dt_dtype = DType::kF32;
  spec.l = 150;
  spec.h = 2;
  spec.p = 20;
  spec.n = 12;
  spec.D = DForm::kNone;
  spec.softplus = spec.dt_bias = false;
  spec.initial_states = spec.final_states = DType::kF32;
  return spec;
}

struct Sizes {
  const char* what;
  double A, dt, x, B, C, state;  // x, B, C and the state: what normal numbers are multiplied with
};

void multiply(const TensorView& view, double factor) {
  testkit::fill(view, [&view, factor](Index i) {
    return factor * testkit::get(view, {i[0], i[1], i[2], i[3]});
  });
}

Case case_of(CaseSpec spec, const Sizes& sizes) {
  Case c(spec);
  testkit::fill(c.inputs.A, sizes.A);
  testkit::fill(c.inputs.dt, sizes.dt);
  multiply(c.inputs.x, sizes.x);
  multiply(c.inputs.B, sizes.B);
  multiply(c.inputs.C, sizes.C);
  multiply(c.inputs.initial_states, sizes.state);
  return c;
}

constexpr char kFp32OnGpu[] = "on a GPU products and decays stay in fp32's normal range";

TEST_P(Range, ProductsInBetween) {
  if (on_gpu()) GTEST_SKIP() << kFp32OnGpu;
  const Sizes all[] = {
      {"C B^T overflows", -1, 1, 1e-30, 1e25, 1e25, 0},
      {"C B^T dt' overflows", -1, 1e3, 1e-30, 3e17, 3e17, 0},
      {"C B^T sinks", -1, 1, 1e30, 1e-22, 1e-22, 0},
      {"C B^T dt' sinks", -1, 1e-20, 1e30, 1e-12, 1e-12, 0},
      {"C S overflows before its decay", -10, 1, 1, 1, 100, 1e37},
      {"C S overflows, and x is large", -10, 1, 1e20, 1, 1e4, 1e36},
      {"dt' x overflows", -1e-12, 1e10, 1e30, 1e-12, 1, 0},
      {"dt' x sinks", -1, 1e-20, 1e-25, 1e30, 1, 0},
      {"dt' x weighted by the decay", -1e-2, 1e2, 1e-30, 1e20, 1e10, 0},
  };
  for (const Sizes& sizes : all) {
    for (DType dtype : kWide) {
      Case c = case_of(make(bare(dtype)).spec, sizes);
      for (int q : {16, 64}) expect_right(c, q, sizes.what);
    }
  }
}

// One step takes the state, or what an earlier token left of itself, below 2^-126 of itself, and
// nothing else is there.
TEST_P(Range, DecaysBelowNormalNumbers) {
  if (on_gpu()) GTEST_SKIP() << kFp32OnGpu;
  for (double dt : {80.0, 95.0, 100.0, 140.0}) {
    for (DType dtype : kWide) {
      for (bool from_state : {true, false}) {
        const double large = dt > 100.0 ? 1e36 : 1e30;
        Case c = case_of(make(bare(dtype)).spec, {"", -1, 0, large, 1, 1, from_state ? large : 0});
        testkit::fill(c.inputs.dt, [&](Index i) {
          return i[1] == 20 ? dt : i[1] == 3 ? 1.0 : 0.0;
        });
        testkit::fill(slice(c.inputs.x, 1, from_state ? 0 : 4, 150), 0.0);
        testkit::fill(slice(c.inputs.C, 1, 0, 20), 0.0);
        for (int q : {16, 64}) expect_right(c, q, "dt " + std::to_string(dt));
      }
    }
  }
}

// What A > 0 makes of nothing is nothing, and what it makes of little may fit.
TEST_P(Range, GrowthInsideAChunk) {
  if (on_gpu()) GTEST_SKIP() << kFp32OnGpu;
  for (double dt : {1.8, 1.9, 3.0}) {  // 2^125, 2^132 and 2^208 in 48 tokens
    for (DType dtype : kWide) {
      CaseSpec spec = make(bare(dtype)).spec;
      spec.l = 48;
      for (const Sizes& sizes : {Sizes{"nothing", 1, dt, 0, 1, 1, 0},
                                 {"x", 1, dt, 1e-25, 1, 1, 0},
                                 {"state", 1, dt, 0, 1, 1, 1e-28}}) {
        if (dt == 3.0 && sizes.x + sizes.state > 0.0) continue;  // does not fit
        Case c = case_of(spec, sizes);
        for (int q : {16, 48, 128}) expect_right(c, q, sizes.what + std::to_string(dt));
      }
    }
  }
}

// Behind a chunk that hardly decays the state is kept apart from what the next one adds: that must
// neither meet C before it decays, nor decay less than it should.
TEST_P(Range, AHugeDecayBehindASlowChunk) {
  if (on_gpu()) GTEST_SKIP() << kFp32OnGpu;
  for (DType dtype : kWide) {
    Case c = case_of(make(bare(dtype)).spec, {"", -1, 0, 1, 1, 1, 1e17});
    testkit::fill(c.inputs.dt, [](Index i) { return i[1] < 48 ? 1e-4 : i[1] == 48 ? 95.0 : 1e-3; });
    multiply(slice(c.inputs.C, 1, 48, 150), 1e21);
    testkit::fill(slice(c.inputs.x, 1, 0, 60), 0.0);
    multiply(slice(c.inputs.x, 1, 60, 150), 1e-6);
    for (int q : {16, 48, 96}) expect_right(c, q, "C S");

    Case left = case_of(make(bare(dtype)).spec, {"", -1, 0, 0, 1, 1, 1e18});
    testkit::fill(left.inputs.dt, [](Index i) { return i[1] == 40 ? 95.0 : 1e-3; });
    for (int q : {16, 48, 96}) expect_right(left, q, "what is left of the state");
  }
}

// Slices of a head look at the whole initial state, also where final_states takes its place.
TEST_P(Range, SlicesOfAnInPlaceState) {
  CaseSpec spec = make(bare(DType::kF32)).spec;
  spec.h = 1;
  spec.p = 64;
  spec.n = 16;
  spec.final_states.reset();
  spec.in_place = true;
  std::optional<Case> first;
  for (int round = 0; round < 20; ++round) {
    Case c = case_of(spec, {"", -1, 0, 1, 1, 1, 1});
    c.options.threads = 1 + round % 4;
    testkit::fill(c.inputs.dt, [](Index i) { return i[1] < 90 ? 1e-3 : 50.0; });
    testkit::fill(slice(c.inputs.initial_states, 2, 3, 4), 1e25);
    run(c);
    if (first) expect_same_outputs(c.outputs, first->outputs);
    if (!first) first.emplace(std::move(c));
  }
}

// A gate far below 0 meets a y that makes up for it.
TEST_P(Range, AGateFarBelowZero) {
  if (on_gpu()) GTEST_SKIP() << kFp32OnGpu;
  for (double z : {-60.0, -92.0, -110.0, -150.0}) {
    CaseSpec spec = make(bare(DType::kF32)).spec;
    spec.z = true;
    Case c = case_of(spec, {"", -1, 1e-2, 1e28, 1, 1, 0});
    testkit::fill(c.inputs.z, z);
    expect_right(c, 48, std::to_string(z));
  }
}

// A NaN later in the sequence takes no care away from what was before it.
TEST_P(Range, ANaNHidesNothing) {
  if (on_gpu()) GTEST_SKIP() << kFp32OnGpu;
  Case c = case_of(make(bare(DType::kF32)).spec, {"", -1, 1e-3, 1e-14, 1, 1, 0});
  multiply(slice(c.inputs.B, 1, 3, 4), 1e25);
  multiply(slice(c.inputs.C, 1, 3, 4), 1e25);
  testkit::fill(slice(c.inputs.B, 1, 20, 21), std::nan(""));
  run(c, 32);
  const testkit::Oracle oracle(c.inputs, c.outputs, c.options);
  expect_part_right(c, testkit::Output::kY, slice(c.outputs.y, 1, 0, 4),
                    slice(oracle.outputs().y, 1, 0, 4));
}

TEST_P(Range, SeveralSlicesDecideAlike) {
  CaseSpec spec = bare(DType::kF32);
  spec.h = 1;
  spec.p = 70;
  const Sizes sizes{"", -1, 1e-20, 1, 1e-12, 1e-12, 0};
  Case one = case_of(make(spec).spec, sizes), four = case_of(make(spec).spec, sizes);
  for (Case* c : {&one, &four}) testkit::fill(slice(c->inputs.x, 3, 60, 70), 1e30);
  one.options.threads = 1;
  four.options.threads = 4;
  run(one, 16);
  run(four, 16);
  expect_same_outputs(one.outputs, four.outputs);
}

// What makes a chunk go token by token changes no bit of the tokens before it.
TEST_P(Range, HugeNumbersLaterChangeNothingBefore) {
  for (auto member : {&Inputs::B, &Inputs::C, &Inputs::dt}) {
    CaseSpec spec = bare(DType::kF32);
    Case plain = make(spec), later = make(spec);
    testkit::fill(slice(later.inputs.*member, 1, 70, 71), 1e38);
    plain.options.batch_invariant = later.options.batch_invariant = true;
    run(plain, 64);
    run(later, 64);
    EXPECT_TRUE(
        testkit::same_bits(slice(plain.outputs.y, 1, 0, 70), slice(later.outputs.y, 1, 0, 70)));
  }
}

INSTANTIATE_TEST_SUITE_P(, Range, testing::ValuesIn(runners()), runner_name);

}  // namespace
}  // namespace chunkscan
