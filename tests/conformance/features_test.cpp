// Features in every pair, and dtypes in every mix.
#include <array>
#include <cmath>
#include <cstdio>
#include <limits>
#include <set>

#include "conformance/runners.h"

namespace chunkscan {
namespace {

using testkit::Case;
using testkit::CaseSpec;
using testkit::DForm;
using testkit::Layout;
using testkit::PackedBy;

class Features : public Conformance {};

constexpr DType kFloats[] = {DType::kF32, DType::kBF16, DType::kF16};

std::optional<DType> float_or_none(int choice) {
  return choice == 0 ? std::nullopt : std::optional(kFloats[choice - 1]);
}

// Each feature has so many choices.
constexpr std::array kChoices = {3, 3, 2, 2, 2, 2, 4, 4, 4, 2, 3, 5, 2, 3, 2};
using Row = std::array<int, kChoices.size()>;

CaseSpec spec_of(const Row& row) {
  CaseSpec spec;
  spec.l = 90;
  spec.h = 6;
  spec.p = 20;
  spec.n = 24;
  spec.dtype = kFloats[row[0]];
  spec.D = static_cast<DForm>(row[1]);
  spec.z = row[2] == 1;
  spec.dt_bias = row[3] == 1;
  spec.softplus = row[4] == 1;
  if (row[5] == 1) spec.dt_min = 0.01f, spec.dt_max = 0.04f;
  spec.initial_states = float_or_none(row[6]);
  spec.final_states = float_or_none(row[7]);
  spec.chunk_states = float_or_none(row[8]);
  spec.log_decay = row[9] == 1;
  spec.packed_by = static_cast<PackedBy>(row[10]);
  spec.layout = static_cast<Layout>(row[11]);
  spec.D_dtype = spec.dt_bias_dtype = row[12] == 1 ? spec.dtype : DType::kF32;
  spec.g = std::array{1, 2, 3}[row[13]];
  spec.b = row[14] == 1 && spec.packed_by != PackedBy::kCuSeqlens ? 2 : 1;
  if (spec.packed_by != PackedBy::kNothing) spec.lengths = {17, 1, 33, 30};
  if (spec.packed_by == PackedBy::kSeqIdx) {
    spec.chunk_states.reset();
    spec.log_decay = false;
  }
  if (spec.chunk_states) spec.state_every = 20;
  return spec;
}

// Rows that hold every pair of choices: the best of a few random rows, until none is left.
std::vector<Row> pairwise_rows() {
  struct Pair {
    std::size_t i, j;
    int a, b;
    auto operator<=>(const Pair&) const = default;
  };
  std::set<Pair> left;
  for (std::size_t i = 0; i < kChoices.size(); ++i) {
    for (std::size_t j = i + 1; j < kChoices.size(); ++j) {
      for (int a = 0; a < kChoices[i]; ++a) {
        for (int b = 0; b < kChoices[j]; ++b) left.insert({i, j, a, b});
      }
    }
  }
  const auto pairs_of = [](const Row& row) {
    std::vector<Pair> pairs;
    for (std::size_t i = 0; i < row.size(); ++i) {
      for (std::size_t j = i + 1; j < row.size(); ++j) pairs.push_back({i, j, row[i], row[j]});
    }
    return pairs;
  };
  std::vector<Row> rows;
  std::uint64_t draw = 0;
  while (!left.empty()) {
    Row best = {};
    std::ptrdiff_t most = 0;
    for (int attempt = 0; attempt < 30 || most == 0; ++attempt) {
      Row row;
      for (std::size_t i = 0; i < row.size(); ++i) {
        row[i] = static_cast<int>(testkit::uniform_at(1, draw++) * static_cast<float>(kChoices[i]));
      }
      std::ptrdiff_t covers = 0;
      for (const Pair& pair : pairs_of(row)) covers += left.contains(pair);
      if (covers > most) most = covers, best = row;
    }
    for (const Pair& pair : pairs_of(best)) left.erase(pair);
    rows.push_back(best);
  }
  return rows;
}

TEST_P(Features, EveryPair) {
  for (const Row& row : pairwise_rows()) {
    std::string what = "row";
    for (int choice : row) what.append(" ").append(std::to_string(choice));
    expect_right(spec_of(row), 16, what);
    if (HasFailure()) return;
  }
}

TEST_P(Features, EveryMixOfDTypes) {
  int i = 0;
  for (DType x : kFloats) {
    for (DType dt : kFloats) {
      for (DType B : kFloats) {
        for (DType C : kFloats) {
          for (DType z : kFloats) {
            CaseSpec spec;
            spec.l = 40;
            spec.h = 2;
            spec.dtype = x;
            spec.dt_dtype = dt;
            spec.B_dtype = B;
            spec.C_dtype = C;
            spec.z_dtype = z;
            spec.z = true;
            spec.D_dtype = i % 2 == 0 ? x : DType::kF32;
            spec.initial_states = kFloats[i % 3];
            spec.final_states = kFloats[i / 3 % 3];
            ++i;
            expect_right(spec, 16,
                         std::string(name_of(x)) + " " + name_of(dt) + " " + name_of(B) + " " +
                             name_of(C) + " " + name_of(z));
          }
        }
      }
    }
  }
}

// Ties between two 16-bit numbers go to the even one. Steps of 0 leave y = D x and the state as it
// was, both exact before they are rounded.
TEST_P(Features, TiesRoundToEven) {
  for (auto [dtype, fraction_bits] : {std::pair{DType::kBF16, 7}, std::pair{DType::kF16, 10}}) {
    CaseSpec spec;
    spec.dtype = dtype;
    spec.l = 3;
    spec.p = spec.n = 20;
    spec.D = DForm::kHeadDim;
    spec.softplus = spec.dt_bias = false;
    spec.final_states = dtype;
    Case c = make(spec);
    spec.initial_states = DType::kF32;
    Case with_state = make(spec);
    const auto tie = [&, bits = fraction_bits](testkit::Index i) {
      return std::ldexp(1.0 + 2.0 * static_cast<double>(i[0] * 31 + i.back()), -bits - 1) + 1.0;
    };
    for (Case* each : {&c, &with_state}) {
      testkit::fill(each->inputs.dt, 0.0);
      testkit::fill(each->inputs.x, 1.0);
      testkit::fill(each->inputs.D, tie);
      testkit::fill(each->inputs.initial_states, tie);
      run(*each);
      const testkit::OwnedTensor y = testkit::OwnedTensor::copy_of(each->outputs.y);
      const testkit::OwnedTensor state = testkit::OwnedTensor::copy_of(each->outputs.final_states);
      Options reference = each->options;
      reference.backend = "reference";
      forward(each->inputs, each->outputs, reference);
      // With a state, y sums up products that need not be exact.
      EXPECT_TRUE(each == &with_state || testkit::same_bits(y.view(), each->outputs.y));
      EXPECT_TRUE(testkit::same_bits(state.view(), each->outputs.final_states));
    }
  }
}

// Numbers near the ends of a dtype's range whose results are in range again: the exact y fits, so
// no product on the way may overflow or vanish.
// Large outputs may be written another way (past the caches): every dtype, aligned rows and not.
TEST_P(Features, OutputsOfManyMegabytes) {
  for (DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
    for (std::int64_t p : {64, 40}) {
      CaseSpec spec;
      spec.dtype = dtype;
      spec.l = 700;
      spec.h = (std::int64_t{9} << 19) / (700 * p) + 1;  // 4.5 M elements
      spec.p = p;
      spec.n = 3;
      expect_right(spec);
    }
  }
}

// The gate's tail is z e^z, down to the smallest numbers.
TEST_P(Features, GatesFarBelowZero) {
  CaseSpec spec;
  spec.l = 40;
  spec.z = true;
  spec.dt_dtype = DType::kF32;
  Case c = make(spec);
  std::uint64_t draw = 0;
  testkit::fill(c.inputs.x, [&](testkit::Index) { return 1e20 * testkit::normal_at(22, draw++); });
  testkit::fill(c.inputs.z,
                [&](testkit::Index) { return -80 - testkit::uniform_at(23, draw++) * 6; });
  expect_right(c, 16);
}

// No arithmetic on state_every may wrap.
TEST_P(Features, StateEveryBeyondTheSequence) {
  CaseSpec spec;
  spec.l = 60;
  spec.packed_by = testkit::PackedBy::kCuSeqlens;
  spec.lengths = {10, 25, 20};
  spec.chunk_states = DType::kF32;
  for (std::int64_t every : {std::int64_t{26}, std::numeric_limits<std::int64_t>::max() - 1,
                             std::numeric_limits<std::int64_t>::max()}) {
    spec.state_every = every;
    expect_right(spec, 16);
  }
}

TEST_P(Features, EndsOfTheRange) {
  struct {
    DType dtype;
    double x, B, C;
  } const rows[] = {
      {DType::kF32, 1e-30, 1e25, 1e25},   {DType::kF32, 1e30, 1e-20, 1e-20},
      {DType::kF32, 1e18, 1e18, 1e-10},   {DType::kBF16, 1e-30, 1e25, 1e25},
      {DType::kBF16, 1e30, 1e-20, 1e-20}, {DType::kF16, 2e4, 2e4, 1e-7},
      {DType::kF16, 1e-7, 2e4, 2e4},      {DType::kF16, 1e-2, 1e-6, 4e4},
  };
  for (const auto& [dtype, x, B, C] : rows) {
    // C B^T leaves fp32, which only the CPU knows a way around.
    if (on_gpu() && (B * C > 1e38 || B * C < 1e-38)) continue;
    CaseSpec spec;
    spec.dtype = dtype;
    spec.dt_dtype = DType::kF32;
    spec.l = 70;
    spec.D = DForm::kNone;
    Case c = make(spec);
    std::uint64_t draw = 0;
    for (const auto& [view, size] : {std::pair{c.inputs.x, x}, {c.inputs.B, B}, {c.inputs.C, C}}) {
      testkit::fill(view, [&, size = size](testkit::Index) {
        return size * (0.5 + testkit::uniform_at(21, draw++));
      });
    }
    std::string what = name_of(dtype);
    for (double size : {x, B, C}) {
      char text[32];
      std::snprintf(text, sizeof text, " %g", size);
      what += text;
    }
    expect_right(c, 32, what);
  }
}

INSTANTIATE_TEST_SUITE_P(, Features, testing::ValuesIn(runners()), runner_name);

}  // namespace
}  // namespace chunkscan
