// NaN and infinity in one sequence, or in rows outside all, change no bit of another.
#include <cmath>

#include "conformance/runners.h"

namespace chunkscan {
namespace {

using testkit::Case;
using testkit::CaseSpec;
using testkit::OwnedTensor;
using testkit::PackedBy;
using testkit::slice;

class Isolation : public Conformance {};

struct Range {
  std::int64_t begin, end;
};

// Fills the tokens of a range, in batch row b, with values that are no numbers.
void spoil(const Inputs& inputs, std::int64_t b, Range tokens, double value) {
  for (const TensorView& view : {inputs.x, inputs.dt, inputs.B, inputs.C, inputs.z}) {
    if (view.present()) {
      testkit::fill(slice(slice(view, 0, b, b + 1), 1, tokens.begin, tokens.end), value);
    }
  }
}

TEST_P(Isolation, BetweenPackedSequences) {
  for (DType dtype : {DType::kF32, DType::kBF16, DType::kF16}) {
    CaseSpec spec;
    spec.dtype = dtype;
    spec.packed_by = PackedBy::kCuSeqlens;
    spec.lengths = {20, 45, 3, 70};
    spec.l = 150;  // 12 rows outside
    spec.z = true;
    spec.initial_states = spec.final_states = DType::kF32;
    spec.chunk_states = DType::kF32;
    spec.state_every = 10;
    Case clean = make(spec), spoiled = make(spec);
    run(clean, 32);
    for (double value : {static_cast<double>(NAN), HUGE_VAL}) {
      spoil(spoiled.inputs, 0, {20, 65}, value);
      spoil(spoiled.inputs, 0, {138, 150}, value);
      testkit::fill(slice(spoiled.inputs.initial_states, 0, 1, 2), value);
      spoiled.poison_outputs();
      run(spoiled, 32);
      for (Range kept : {Range{0, 20}, Range{65, 150}}) {
        EXPECT_TRUE(testkit::same_bits(slice(clean.outputs.y, 1, kept.begin, kept.end),
                                       slice(spoiled.outputs.y, 1, kept.begin, kept.end)));
      }
      for (std::int64_t i : {0, 2, 3}) {
        EXPECT_TRUE(testkit::same_bits(slice(clean.outputs.final_states, 0, i, i + 1),
                                       slice(spoiled.outputs.final_states, 0, i, i + 1)));
      }
      // Sequence 1 has rows 2 to 5 of chunk_states.
      for (Range kept : {Range{0, 2}, Range{6, 15}}) {
        EXPECT_TRUE(
            testkit::same_bits(slice(clean.outputs.chunk_states, 1, kept.begin, kept.end),
                               slice(spoiled.outputs.chunk_states, 1, kept.begin, kept.end)));
      }
    }
  }
}

TEST_P(Isolation, BetweenRunsOfSeqIdxAndRowsOfTheBatch) {
  CaseSpec spec;
  spec.b = 3;
  spec.l = 100;
  spec.packed_by = PackedBy::kSeqIdx;
  spec.lengths = {30, 25, 45};
  spec.z = true;
  spec.initial_states = spec.final_states = DType::kF32;
  Case clean = make(spec), spoiled = make(spec);
  run(clean, 32);
  spoil(spoiled.inputs, 1, {30, 55}, NAN);  // the run in the middle of row 1
  spoil(spoiled.inputs, 2, {0, 100}, HUGE_VAL);
  run(spoiled, 32);
  const auto expect_kept = [&](std::int64_t b, Range kept) {
    const auto part = [&](const Case& c) {
      return slice(slice(c.outputs.y, 0, b, b + 1), 1, kept.begin, kept.end);
    };
    EXPECT_TRUE(testkit::same_bits(part(clean), part(spoiled))) << b << " " << kept.begin;
  };
  expect_kept(0, {0, 100});
  expect_kept(1, {0, 30});
  expect_kept(1, {55, 100});
  EXPECT_TRUE(testkit::same_bits(slice(clean.outputs.final_states, 0, 0, 2),
                                 slice(spoiled.outputs.final_states, 0, 0, 2)));
}

// The initial state enters the first run alone.
TEST_P(Isolation, AnInitialStateThatIsNoNumber) {
  CaseSpec spec;
  spec.l = 60;
  spec.packed_by = PackedBy::kSeqIdx;
  spec.lengths = {20, 40};
  spec.initial_states = spec.final_states = DType::kF32;
  Case clean = make(spec), spoiled = make(spec);
  testkit::fill(spoiled.inputs.initial_states, NAN);
  run(clean, 16);
  run(spoiled, 16);
  EXPECT_TRUE(
      testkit::same_bits(slice(clean.outputs.y, 1, 20, 60), slice(spoiled.outputs.y, 1, 20, 60)));
  EXPECT_TRUE(testkit::same_bits(clean.outputs.final_states, spoiled.outputs.final_states));
}

// A NaN shows where the formula says so.
TEST_P(Isolation, ANaNStaysInItsHeadAndSpreadsForward) {
  CaseSpec spec;
  spec.l = 70;
  spec.final_states = DType::kF32;
  Case c = make(spec);
  testkit::set(c.inputs.dt, {0, 40, 2}, NAN);
  run(c, 64);
  for (std::int64_t t = 40; t < 70; ++t) {
    EXPECT_TRUE(std::isnan(testkit::get(c.outputs.y, {0, t, 2, 5}))) << t;
    EXPECT_FALSE(std::isnan(testkit::get(c.outputs.y, {0, t, 1, 5}))) << t;
  }
  EXPECT_TRUE(std::isnan(testkit::get(c.outputs.final_states, {0, 2, 5, 5})));
}

INSTANTIATE_TEST_SUITE_P(, Isolation, testing::ValuesIn(runners()), runner_name);

}  // namespace
}  // namespace chunkscan
