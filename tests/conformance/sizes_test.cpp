// Sizes by class: tails of chunks, odd and unequal sizes, extremes, models.
#include "conformance/runners.h"

namespace chunkscan {
namespace {

using testkit::Case;
using testkit::CaseSpec;
using testkit::DForm;
using testkit::Layout;

class Sizes : public Conformance {};

CaseSpec sized(std::int64_t l, std::int64_t h, std::int64_t g, std::int64_t p, std::int64_t n) {
  CaseSpec spec = testkit::sized(l, h, g, p, n);
  spec.initial_states = spec.final_states = DType::kF32;
  spec.log_decay = true;
  return spec;
}

TEST_P(Sizes, EveryTailOfAChunk) {
  for (std::int64_t l : {1, 2, 3, 7, 63, 64, 65, 127, 129, 255, 257, 300, 511, 513, 1000}) {
    for (int q : {16, 64, 128, 256}) {
      CaseSpec spec = sized(l, 2, 1, 8, 12);
      spec.layout = Layout::kPadded;  // NaN behind the last row
      expect_right(spec, q);
    }
  }
}

TEST_P(Sizes, SmallOddAndUnequal) {
  std::uint64_t draw = 0;
  const auto pick = [&](std::int64_t most) {
    return 1 + static_cast<std::int64_t>(testkit::uniform_at(7, draw++) * static_cast<float>(most));
  };
  for (int i = 0; i < 60; ++i) {
    const std::int64_t g = pick(5), heads_per_group = pick(4);
    CaseSpec spec = sized(pick(70), g * heads_per_group, g, pick(10), pick(10));
    spec.b = pick(3);
    spec.layout = static_cast<Layout>(i % 5);
    spec.z = i % 2 == 0;
    expect_right(spec, i % 3 == 0 ? 17 : 29);
  }
}

TEST_P(Sizes, UnequalDimensions) {
  struct {
    std::int64_t n, p;
    int q;
  } const rows[] = {{16, 32, 64},  {16, 80, 128},  {16, 128, 32}, {64, 32, 128},
                    {64, 80, 32},  {64, 128, 256}, {96, 32, 64},  {96, 64, 128},
                    {96, 80, 256}, {256, 32, 64},  {256, 64, 32}, {256, 128, 64}};
  for (const auto& [n, p, q] : rows) expect_right(sized(150, 3, 1, p, n), q);
}

TEST_P(Sizes, ExtremesOfHeadDimAndStateSize) {
  expect_right(sized(40, 1, 1, 512, 512), 16);
  expect_right(sized(40, 2, 1, 1, 512), 16);
  expect_right(sized(40, 2, 2, 512, 1), 16);
  expect_right(sized(40, 3, 1, 1, 1), 16);
}

TEST_P(Sizes, ManyBatchesAndHeads) {
  CaseSpec spec = sized(3, 4, 2, 4, 4);
  spec.b = 20000;  // b * h is more than 65,535
  expect_right(spec, 16);
  expect_right(sized(3, 256, 8, 4, 4), 16);
}

TEST_P(Sizes, NothingToDo) {
  for (auto [b, l] : {std::pair{0, 5}, std::pair{2, 0}, std::pair{0, 0}}) {
    CaseSpec spec = sized(l, 2, 1, 3, 4);
    spec.b = b;
    expect_right(spec);
    spec.initial_states.reset();
    expect_right(spec);
  }
}

TEST_P(Sizes, StandardDataOfAModel) {
  for (DType dtype : {DType::kBF16, DType::kF16, DType::kF32}) {
    CaseSpec spec = sized(1024, 8, 1, 64, 128);
    spec.dtype = dtype;
    spec.initial_states.reset();
    Case c = make(spec);
    ASSERT_TRUE(c.standard_data);
    expect_right(c, 0, name_of(dtype));
    // Native bf16 products, and a GPU's, are where 16 bits round more than y itself.
    if (GetParam().isa == "avx512_bf16" || on_gpu() || c.spec.dtype == DType::kF32) continue;
    const testkit::Oracle oracle(c.inputs, c.outputs, c.options);
    const auto y = oracle.check(c.outputs, testkit::Data::kStandard)[0];
    EXPECT_LE(y.rel_err, testkit::kNearRoundingFloor * y.rounding_floor) << to_string(y);
  }
}

// Errors do not grow with position: the last tokens keep the bound on their own.
TEST_P(Sizes, ALongSequence) {
  for (DType dtype : {DType::kF32, DType::kBF16}) {
    CaseSpec spec = sized(50000, 2, 1, 8, 16);
    spec.dtype = dtype;
    Case c = make(spec);
    expect_right(c, 0, name_of(dtype));
    const testkit::Oracle oracle(c.inputs, c.outputs, c.options);
    expect_part_right(c, testkit::Output::kY, testkit::slice(c.outputs.y, 1, 49488, 50000),
                      testkit::slice(oracle.outputs().y, 1, 49488, 50000));
  }
}

// Head i reads group i / (h / g): each group's B is a constant of its own, so the first y is
// dt' * x * B * C * n with nothing to sum up wrongly.
TEST_P(Sizes, HeadsReadTheirOwnGroup) {
  for (std::int64_t g : {1, 2, 3, 8}) {
    CaseSpec spec = sized(20, 24, g, 4, 8);
    spec.initial_states.reset();
    spec.D = DForm::kNone;
    spec.softplus = spec.dt_bias = false;
    Case c = make(spec);
    testkit::fill(c.inputs.x, 1.0);
    testkit::fill(c.inputs.dt, 0.5);
    testkit::fill(c.inputs.C, 1.0);
    testkit::fill(c.inputs.B, [](testkit::Index i) { return static_cast<double>(i[2] + 1); });
    expect_right(c, 16);
    for (std::int64_t head = 0; head < 24; ++head) {
      EXPECT_EQ(testkit::get(c.outputs.y, {0, 0, head, 3}),
                0.5 * 8 * static_cast<double>(head / (24 / g) + 1));
    }
  }
}

INSTANTIATE_TEST_SUITE_P(, Sizes, testing::ValuesIn(runners()), runner_name);

}  // namespace
}  // namespace chunkscan
