// The measuring instruments themselves.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "testkit/oracle.h"
#include "testkit/shapes.h"

namespace chunkscan::testkit {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

OwnedTensor normal(DType dtype, std::int64_t count) {
  OwnedTensor tensor(dtype, std::vector<std::int64_t>{count});
  fill(tensor.view(), [](Index i) { return normal_at(3, static_cast<std::uint64_t>(i[0])); });
  return tensor;
}

OwnedTensor in_f64(const TensorView& view) {
  OwnedTensor tensor(DType::kF64, {view.shape.data(), static_cast<std::size_t>(view.rank)});
  copy(view, tensor.view());
  return tensor;
}

TEST(Compare, EqualTensorsHaveNoError) {
  const OwnedTensor got = normal(DType::kF32, 100);
  const Comparison comparison = compare("y", got.view(), in_f64(got.view()).view(), 0.0);
  EXPECT_TRUE(comparison.ok);
  EXPECT_EQ(comparison.rel_err, 0.0);
}

TEST(Compare, FindsAWrongElement) {
  const OwnedTensor got = normal(DType::kF32, 10000);
  const OwnedTensor want = in_f64(got.view());
  set(got.view(), {1234}, 1.5);
  set(want.view(), {1234}, 1.0);
  const Comparison comparison = compare("y", got.view(), want.view(), 1e-3);
  EXPECT_FALSE(comparison.ok);
  EXPECT_NEAR(comparison.rel_err, 0.5 / 100.0, 1e-4);
  EXPECT_EQ(comparison.worst_index[0], 1234);
  EXPECT_EQ(comparison.worst_got, 1.5);
  EXPECT_EQ(comparison.worst_want, 1.0);
}

TEST(Compare, ANaNWhereANumberBelongsFails) {
  const OwnedTensor got = normal(DType::kF32, 100);
  const OwnedTensor want = in_f64(got.view());
  for (double wrong : {static_cast<double>(NAN), kInfinity}) {
    set(got.view(), {7}, wrong);
    const Comparison comparison = compare("y", got.view(), want.view(), 1e9);
    EXPECT_FALSE(comparison.ok);
    EXPECT_EQ(comparison.rel_err, kInfinity);
    EXPECT_EQ(comparison.worst_index[0], 7);
  }
}

TEST(Compare, NonFiniteReferences) {
  const OwnedTensor got = normal(DType::kF16, 100);
  const OwnedTensor want = in_f64(got.view());
  const auto ok = [&](double g, double w) {
    set(got.view(), {7}, g);
    set(want.view(), {7}, w);
    return compare("y", got.view(), want.view(), 1e-3).ok;
  };
  EXPECT_TRUE(ok(NAN, NAN));
  EXPECT_FALSE(ok(1.0, NAN));
  EXPECT_TRUE(ok(kInfinity, 1e6));  // overflows f16
  EXPECT_TRUE(ok(65504.0, 1e6));
  EXPECT_TRUE(ok(-65504.0, -1e6));
  EXPECT_FALSE(ok(NAN, 1e6));
  EXPECT_FALSE(ok(-kInfinity, 1e6));
  EXPECT_FALSE(ok(65472.0, 1e6));  // the value before the largest
  EXPECT_FALSE(ok(0.0, kInfinity));
}

TEST(Compare, AReferenceOfZerosAllowsZerosAlone) {
  const OwnedTensor got(DType::kF32, std::vector<std::int64_t>{4});
  const OwnedTensor want(DType::kF64, std::vector<std::int64_t>{4});
  fill(want.view(), 0.0);
  fill(got.view(), 0.0);
  EXPECT_TRUE(compare("y", got.view(), want.view(), 1e-3).ok);
  set(got.view(), {2}, 1e-30);
  EXPECT_FALSE(compare("y", got.view(), want.view(), 1e-3).ok);
}

TEST(Compare, RoundingFloors) {
  const OwnedTensor want(DType::kF64, std::vector<std::int64_t>{1 << 20});
  fill(want.view(), [](Index i) {  // a second, small part gives values more bits than f32 has
    const auto at = static_cast<std::uint64_t>(i[0]);
    return normal_at(3, at) + 1e-6 * normal_at(4, at);
  });
  // With k fraction bits a value errs evenly over half a step to either side, a step being 2^-k of
  // the power of two below it: over N(0,1) that makes 1.6617e-3 for 7 bits.
  EXPECT_NEAR(rounding_floor(want.view(), DType::kBF16), 1.6617e-3, 5e-6);
  EXPECT_NEAR(rounding_floor(want.view(), DType::kF16) * 8, 1.6617e-3, 5e-6);
  EXPECT_NEAR(rounding_floor(want.view(), DType::kF32) * 65536, 1.6617e-3, 5e-6);
  const OwnedTensor got(DType::kBF16, std::vector<std::int64_t>{1 << 20});
  copy(want.view(), got.view());
  const Comparison comparison = compare("y", got.view(), want.view(), 1.0);
  EXPECT_EQ(comparison.rel_err, comparison.rounding_floor);
}

TEST(AllowedError, IsTheTable) {
  const OwnedTensor want = in_f64(normal(DType::kF32, 1 << 20).view());
  const double small = 1.0 + 4.0 / 1024;
  const auto allowed = [&](Output output, Data data, DType inputs, DType stored) {
    return allowed_error(output, data, inputs, want.view(), stored) / small;
  };
  EXPECT_DOUBLE_EQ(allowed(Output::kY, Data::kStandard, DType::kBF16, DType::kBF16), 2.5e-3);
  EXPECT_DOUBLE_EQ(allowed(Output::kY, Data::kAny, DType::kBF16, DType::kBF16), 3e-3);
  EXPECT_DOUBLE_EQ(allowed(Output::kState, Data::kAny, DType::kBF16, DType::kF32), 2.5e-3);
  EXPECT_DOUBLE_EQ(allowed(Output::kY, Data::kAny, DType::kF16, DType::kF16), 5e-4);
  EXPECT_DOUBLE_EQ(allowed(Output::kY, Data::kStandard, DType::kF32, DType::kF32), 5e-6);
  EXPECT_DOUBLE_EQ(allowed(Output::kY, Data::kAny, DType::kF32, DType::kF32), 1e-5);
  EXPECT_DOUBLE_EQ(allowed(Output::kLogDecay, Data::kAny, DType::kBF16, DType::kF32), 1e-5);
  EXPECT_NEAR(allowed(Output::kState, Data::kStandard, DType::kBF16, DType::kBF16), 3.0e-3, 1e-5);
}

TEST(AllowedError, LeastPreciseInput) {
  CaseSpec spec;
  EXPECT_EQ(least_precise(Case(spec).inputs), DType::kF32);
  spec.C_dtype = DType::kF16;
  EXPECT_EQ(least_precise(Case(spec).inputs), DType::kF16);
  spec.z = true;
  spec.z_dtype = DType::kBF16;
  EXPECT_EQ(least_precise(Case(spec).inputs), DType::kBF16);
}

TEST(Generate, StandardDataHasTheRightMoments) {
  const auto moments = [](const TensorView& view) {
    double sum = 0.0, squares = 0.0;
    for_each_element(view, [&](Index, const std::byte* address) {
      float value;
      std::memcpy(&value, address, sizeof value);
      sum += value;
      squares += static_cast<double>(value) * value;
    });
    const auto count = static_cast<double>(view.elements());
    return std::pair(sum / count, squares / count - sum / count * sum / count);
  };
  CaseSpec spec;
  spec.l = 512;
  spec.h = 512;
  spec.n = 64;
  Case c(spec);
  for (const TensorView& view : {c.inputs.x, c.inputs.dt, c.inputs.B, c.inputs.C}) {
    const auto [mean, variance] = moments(view);
    EXPECT_NEAR(mean, 0.0, 0.03);
    EXPECT_NEAR(variance, 1.0, 0.03);
  }
  EXPECT_NEAR(moments(c.inputs.dt_bias).first, -3.5, 0.1);
  const auto [mean, variance] = moments(c.inputs.A);
  EXPECT_NEAR(mean, -(std::exp(2.7) - 1) / 2.7, 0.6);
  EXPECT_GT(variance, 9.0);
}

TEST(Generate, ValuesDoNotDependOnLayout) {
  CaseSpec spec;
  spec.b = 2;
  spec.l = 9;
  spec.h = 3;
  spec.p = 5;
  spec.z = true;
  spec.initial_states = DType::kF16;
  const Case plain(spec);
  for (Layout layout : {Layout::kFused, Layout::kPadded, Layout::kStrided, Layout::kReversed,
                        Layout::kTokens, Layout::kTokensX, Layout::kTokensBC}) {
    spec.layout = layout;
    const Case other(spec);
    for (auto view : {&Inputs::x, &Inputs::dt, &Inputs::A, &Inputs::B, &Inputs::C, &Inputs::D,
                      &Inputs::z, &Inputs::dt_bias, &Inputs::initial_states}) {
      EXPECT_TRUE(same_bits(plain.inputs.*view, other.inputs.*view));
    }
  }
}

TEST(Generate, DigestSeesEveryByteOutsideTheOutputs) {
  for (Layout layout : {Layout::kContiguous, Layout::kFused, Layout::kStrided}) {
    CaseSpec spec;
    spec.layout = layout;
    Case c(spec);
    const auto before = c.digest_outside_outputs();
    set(c.outputs.y, {0, 3, 2, 1}, 7.0);
    EXPECT_EQ(c.digest_outside_outputs(), before);
    set(c.inputs.x, {0, 3, 2, 1}, 7.0);
    EXPECT_NE(c.digest_outside_outputs(), before);
  }
}

TEST(CheckCase, CatchesAWrongAnswer) {
  CaseSpec spec;
  spec.final_states = DType::kF32;
  Case c(spec);
  Options options = c.options;
  options.backend = "reference";
  EXPECT_TRUE(all_ok(check_case(c, options)));
  options.dt_softplus = false;
  forward(c.inputs, c.outputs, options);
  const auto comparisons = Oracle(c.inputs, c.outputs, c.options).check(c.outputs, Data::kAny);
  ASSERT_EQ(comparisons.size(), 2u);
  EXPECT_FALSE(comparisons[0].ok);
  EXPECT_FALSE(comparisons[1].ok);
}

TEST(Shapes, ModelsAndSuites) {
  EXPECT_EQ(models().size(), 23u);
  const Model* model = find_model("nemotron-3-super-120b");
  ASSERT_NE(model, nullptr);
  EXPECT_EQ(model->h, 128);
  EXPECT_EQ(model->d_in_proj, 18560);
  EXPECT_EQ(find_model("mamba3"), nullptr);
  for (const Model& m : models()) {
    EXPECT_EQ(m.d_inner, m.h * m.p) << m.name;
    EXPECT_EQ(m.conv_dim, m.d_inner + 2 * m.g * m.n) << m.name;
    EXPECT_EQ(m.d_in_proj, m.d_inner + m.conv_dim + m.h) << m.name;
  }
  ASSERT_NE(find_suite("mamba_ssm"), nullptr);
  EXPECT_EQ(find_suite("mamba_ssm")->shapes.size(), 13u);
  EXPECT_EQ(find_suite("cpu")->shapes.size(), 2u);
  EXPECT_EQ(find_suite("gpu"), nullptr);
}

}  // namespace
}  // namespace chunkscan::testkit
