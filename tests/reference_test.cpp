// The reference against numbers worked out by hand, and its two routes against each other.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "testkit/oracle.h"

namespace chunkscan {
namespace {

using testkit::Case;
using testkit::CaseSpec;
using testkit::DForm;
using testkit::Oracle;
using testkit::PackedBy;

constexpr double E = 0.36787944117144233;  // exp(-1)

// b = 1, l = 4, h = 2, g = 1, p = 1, n = 2. Head 0 decays by exp(-1) a token, head 1 not at all.
class ByHand : public testing::Test {
 protected:
  ByHand() {
    inputs.x = TensorView(x.data(), DType::kF32, {1, 4, 2, 1});
    inputs.dt = TensorView(dt.data(), DType::kF32, {1, 4, 2});
    inputs.A = TensorView(A.data(), DType::kF32, {2});
    inputs.B = TensorView(B.data(), DType::kF32, {1, 4, 1, 2});
    inputs.C = TensorView(C.data(), DType::kF32, {1, 4, 1, 2});
    wanted.y = TensorView(nullptr, DType::kF64, {1, 4, 2, 1});
    wanted.final_states = TensorView(nullptr, DType::kF64, {1, 2, 1, 2});
  }

  // Both routes give `want` for the output `view`, in order of its elements.
  void expect(TensorView Outputs::*view, std::vector<double> want) {
    for (const char* config : {"recurrence", "staged,q=1", "staged,q=2", "staged,q=64"}) {
      const Oracle oracle(inputs, wanted, options, config);
      const TensorView& got = oracle.outputs().*view;
      ASSERT_EQ(got.elements(), static_cast<std::int64_t>(want.size()));
      TensorView right = got;
      right.data = want.data();
      const auto comparison =
          testkit::compare(config, got, right,
                           testkit::allowed_error(testkit::Output::kY, testkit::Data::kAny,
                                                  DType::kF32, right, DType::kF64));
      EXPECT_TRUE(comparison.ok) << to_string(comparison);
    }
  }

  std::vector<float> x = {1, 10, 2, 20, 3, 30, 0, 0};  // (l, h)
  std::vector<float> dt = std::vector<float>(8, 1.0f);
  std::vector<float> A = {-1, 0};
  std::vector<float> B = {1, 0, 0, 1, 1, 1, 0, 0};  // (l, n)
  std::vector<float> C = {1, 1, 1, 2, 0, 1, 1, 0};
  std::vector<float> D = {0.5, 0};
  std::vector<float> states = {4, 8, 0, 0, 2, 5, 0, 1, 0, 0, 0, 0};  // (3, h, n)
  std::vector<std::int32_t> seq_idx = {7, 7, 1, 1};
  std::vector<std::int64_t> cu_seqlens = {0, 1, 1, 3};
  Inputs inputs;
  Outputs wanted;
  Options options;
};

TEST_F(ByHand, PlainSequence) {
  inputs.D = TensorView(D.data(), DType::kF32, {2});
  wanted.log_decay = TensorView(nullptr, DType::kF64, {1, 2});
  expect(&Outputs::y, {1.5, 10, E + 5, 50, 2 * E + 4.5, 50, E * (E * E + 3), 40});
  expect(&Outputs::final_states, {E * (E * E + 3), E * (2 * E + 3), 40, 50});
  expect(&Outputs::log_decay, {-4, 0});
}

TEST_F(ByHand, StatesAfterEveryTwoTokens) {
  wanted.chunk_states = TensorView(nullptr, DType::kF64, {1, 2, 2, 1, 2});
  options.state_every = 2;
  expect(&Outputs::chunk_states, {E, 2, 10, 20, E * (E * E + 3), E * (2 * E + 3), 40, 50});
}

TEST_F(ByHand, InitialStateAndSkipPerHeadDim) {
  inputs.D = TensorView(D.data(), DType::kF32, {2, 1});
  inputs.initial_states = TensorView(states.data(), DType::kF32, {1, 2, 1, 2});
  const double u = 4 * E + 1, v = 8 * E;  // head 0's state after the first token
  expect(&Outputs::y, {u + v + 0.5, 10, E * u + 2 * (E * v + 2) + 1, 50, E * (E * v + 2) + 3 + 1.5,
                       50, E * (E * E * u + 3), 40});
}

TEST_F(ByHand, ChangeOfSeqIdxResets) {
  inputs.seq_idx = TensorView(seq_idx.data(), DType::kI32, {1, 4});
  inputs.initial_states = TensorView(states.data(), DType::kF32, {1, 2, 1, 2});
  const double u = 4 * E + 1, v = 8 * E;
  expect(&Outputs::y, {u + v, 10, E * u + 2 * (E * v + 2), 50, 3, 30, 3 * E, 30});
  expect(&Outputs::final_states, {3 * E, 3 * E, 30, 30});
}

TEST_F(ByHand, PackedSequences) {
  // Token 0; nothing; tokens 1 and 2. Token 3 belongs to none.
  inputs.cu_seqlens = TensorView(cu_seqlens.data(), DType::kI64, {4});
  inputs.initial_states = TensorView(states.data(), DType::kF32, {3, 2, 1, 2});
  wanted.final_states = TensorView(nullptr, DType::kF64, {3, 2, 1, 2});
  wanted.log_decay = TensorView(nullptr, DType::kF64, {3, 2});
  wanted.chunk_states = TensorView(nullptr, DType::kF64, {1, 4, 2, 1, 2});
  options.state_every = 1;
  expect(&Outputs::y, {12 * E + 1, 10, 4, 40, 2 * E + 3, 50, 0, 0});
  expect(&Outputs::final_states, {4 * E + 1, 8 * E, 10, 0, 2, 5, 0, 1, 3, 2 * E + 3, 30, 50});
  expect(&Outputs::log_decay, {-1, 0, 0, 0, -2, 0});
  expect(&Outputs::chunk_states, {4 * E + 1, 8 * E, 10, 0, 0, 2, 0, 20, 3, 2 * E + 3, 30, 50,  //
                                  0, 0, 0, 0});
}

TEST_F(ByHand, NoTokensLeaveTheInitialState) {
  for (TensorView* view : {&inputs.x, &inputs.dt, &inputs.B, &inputs.C, &wanted.y}) {
    view->shape[1] = 0;
  }
  expect(&Outputs::final_states, {0, 0, 0, 0});
  inputs.initial_states = TensorView(states.data(), DType::kF32, {1, 2, 1, 2});
  expect(&Outputs::final_states, {4, 8, 0, 0});
}

// One token, one head, p = n = 1, x = B = C = 1: y is dt'.
class OneToken : public testing::Test {
 protected:
  double y(float dt, float dt_bias, float z = 0.0f) {
    const float one = 1.0f, A = 0.0f;
    double result = 0.0;
    Inputs inputs;
    inputs.x = TensorView(&one, DType::kF32, {1, 1, 1, 1});
    inputs.dt = TensorView(&dt, DType::kF32, {1, 1, 1});
    inputs.A = TensorView(&A, DType::kF32, {1});
    inputs.B = inputs.C = inputs.x;
    inputs.dt_bias = TensorView(&dt_bias, DType::kF32, {1});
    if (z != 0.0f) inputs.z = TensorView(&z, DType::kF32, {1, 1, 1, 1});
    Outputs outputs;
    outputs.y = TensorView(&result, DType::kF64, {1, 1, 1, 1});
    options.backend = "reference";
    forward(inputs, outputs, options);
    return result;
  }
  Options options;
};

TEST_F(OneToken, Softplus) {
  options.dt_softplus = true;
  EXPECT_DOUBLE_EQ(y(0, 0), 0.69314718055994531);
  EXPECT_DOUBLE_EQ(y(-1, 2), 1.3132616875182228);
  EXPECT_DOUBLE_EQ(y(-20, 0), 2.0611536203143808e-9);
  EXPECT_DOUBLE_EQ(y(1000, 0), 1000.0);
  EXPECT_DOUBLE_EQ(y(-1000, 0), 0.0);
}

TEST_F(OneToken, Limits) {
  EXPECT_EQ(y(0.25, 0), 0.25);
  EXPECT_EQ(y(-1, 0), 0.0);  // dt_min = 0
  options.dt_min = -0.5f;
  options.dt_max = 0.125f;
  EXPECT_EQ(y(0.25, 0), 0.125);
  EXPECT_EQ(y(-1, 0), -0.5);
  EXPECT_EQ(y(-0.25, 0), -0.25);
  EXPECT_TRUE(std::isnan(y(NAN, 0)));
}

TEST_F(OneToken, Gate) {
  EXPECT_DOUBLE_EQ(y(1, 0, 1), 0.73105857863000490);
  EXPECT_DOUBLE_EQ(y(1, 0, -1), -0.26894142136999510);
  EXPECT_EQ(y(1, 0, 1000), 1000.0);
  EXPECT_EQ(y(1, 0, -1000), 0.0);
}

void expect_routes_agree(const CaseSpec& spec, std::int64_t q) {
  Case c(spec);
  for (TensorView Outputs::*view :
       {&Outputs::y, &Outputs::final_states, &Outputs::chunk_states, &Outputs::log_decay}) {
    (c.outputs.*view).dtype = DType::kF64;  // shapes are all that an Oracle takes from these
  }
  const Oracle recurrence(c.inputs, c.outputs, c.options);
  const Oracle staged(c.inputs, c.outputs, c.options, "staged,q=" + std::to_string(q));
  const auto comparisons = recurrence.check(staged.outputs(), testkit::Data::kAny);
  EXPECT_TRUE(all_ok(comparisons)) << "l " << spec.l << " q " << q << "\n"
                                   << to_string(comparisons);
}

CaseSpec full(std::int64_t l, std::int64_t h, std::int64_t g, std::int64_t p, std::int64_t n) {
  CaseSpec spec = testkit::sized(l, h, g, p, n);
  spec.z = true;
  spec.initial_states = spec.final_states = spec.chunk_states = DType::kF32;
  spec.state_every = 24;
  spec.log_decay = true;
  return spec;
}

TEST(ReferenceRoutes, AgreeOverLengthsAndChunks) {
  for (std::int64_t l : {1, 2, 3, 7, 63, 64, 65, 127, 129, 255, 257, 300, 511, 513, 1000}) {
    for (std::int64_t q : {1, 16, 17, 64, 128, 256}) expect_routes_agree(full(l, 2, 1, 3, 5), q);
  }
}

TEST(ReferenceRoutes, AgreeOverSizes) {
  for (std::int64_t p : {1, 4, 9, 64}) {
    for (std::int64_t n : {1, 5, 8, 128}) expect_routes_agree(full(70, 6, 3, p, n), 32);
  }
}

TEST(ReferenceRoutes, AgreeOverFeatures) {
  CaseSpec spec = full(100, 4, 2, 3, 6);
  spec.b = 2;
  spec.D = DForm::kHeadDim;
  spec.dtype = DType::kBF16;
  expect_routes_agree(spec, 16);
  spec.softplus = spec.z = false;
  spec.dt_max = 0.05f;
  expect_routes_agree(spec, 16);
  spec.chunk_states.reset();
  spec.state_every = 0;
  spec.log_decay = false;
  spec.packed_by = PackedBy::kSeqIdx;
  spec.lengths = {1, 40, 7, 30};
  expect_routes_agree(spec, 16);
  spec.b = 1;
  spec.packed_by = PackedBy::kCuSeqlens;
  spec.lengths = {1, 0, 40, 7, 30};
  expect_routes_agree(spec, 16);
}

// Sums of a chunk hold -1e9 beside 1e-4: differences must not lose the small ones.
TEST(ReferenceRoutes, AgreeOverHugeAndNoDecay) {
  CaseSpec spec = full(2000, 3, 1, 2, 4);
  spec.chunk_states.reset();  // they would cut chunks short
  spec.state_every = 0;
  spec.softplus = spec.dt_bias = false;
  Case c(spec);
  testkit::fill(c.inputs.A, [](testkit::Index i) { return i[0] == 0 ? -1e6 : -1.0; });
  testkit::fill(c.inputs.dt, [](testkit::Index i) {
    const double steps[] = {1e3, 0.0, 1e-4, 1e-7};
    return steps[i[1] % 4];
  });
  const Oracle recurrence(c.inputs, c.outputs, c.options);
  for (const char* config : {"staged,q=16", "staged,q=2000"}) {
    const Oracle staged(c.inputs, c.outputs, c.options, config);
    const auto comparisons = recurrence.check(staged.outputs(), testkit::Data::kAny);
    EXPECT_TRUE(all_ok(comparisons)) << to_string(comparisons);
  }
}

}  // namespace
}  // namespace chunkscan
