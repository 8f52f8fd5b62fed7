// Packed sequences, states at boundaries, and sequences handed from one call to the next.
#include "conformance/runners.h"

namespace chunkscan {
namespace {

using testkit::Case;
using testkit::CaseSpec;
using testkit::Layout;
using testkit::OwnedTensor;
using testkit::PackedBy;
using testkit::slice;

class Packed : public Conformance {};

CaseSpec packed(std::vector<std::int64_t> lengths, std::int64_t outside = 0) {
  CaseSpec spec;
  spec.packed_by = PackedBy::kCuSeqlens;
  spec.l = outside;
  for (std::int64_t length : lengths) spec.l += length;
  spec.lengths = std::move(lengths);
  spec.p = 12;
  spec.initial_states = spec.final_states = DType::kF32;
  spec.log_decay = true;
  return spec;
}

TEST_P(Packed, LengthsThatWentWrongElsewhere) {
  struct {
    std::vector<std::int64_t> lengths;
    int q;
  } const rows[] = {{{80, 176}, 128},           {{16, 20}, 8},
                    {{270, 88, 212, 203}, 8},   {{270, 88, 212, 203}, 256},
                    {{135, 44, 106, 101}, 256}, {{5, 1, 1, 1}, 256},
                    {{5, 0, 1, 0, 1, 1}, 256},  {{0, 64, 64, 0}, 64},
                    {{1, 63, 65, 128}, 64}};
  for (const auto& [lengths, q] : rows) {
    CaseSpec spec = packed(lengths);
    expect_right(spec, q);
    spec.b = 2;
    spec.packed_by = PackedBy::kSeqIdx;
    spec.log_decay = false;
    expect_right(spec, q, "seq_idx");
  }
}

TEST_P(Packed, EqualsSeparateCalls) {
  CaseSpec spec = packed({270, 88, 0, 212, 1, 203});
  spec.dtype = DType::kBF16;
  Case c = make(spec);
  expect_right(c, 64);
  std::int64_t begin = 0;
  for (std::size_t i = 0; i < spec.lengths.size(); ++i) {
    const std::int64_t end = begin + spec.lengths[i], s = static_cast<std::int64_t>(i);
    Inputs alone = tokens(c.inputs, begin, end);
    alone.initial_states = slice(c.inputs.initial_states, 0, s, s + 1);
    const OwnedTensor y = OwnedTensor::copy_of(slice(c.outputs.y, 1, begin, end));
    const OwnedTensor state = OwnedTensor::copy_of(slice(c.outputs.final_states, 0, s, s + 1));
    Outputs out;
    out.y = y.view();
    out.final_states = state.view();
    call(alone, out, c.options, 64);
    expect_close(c, testkit::Output::kY, slice(c.outputs.y, 1, begin, end), out.y);
    expect_close(c, testkit::Output::kState, slice(c.outputs.final_states, 0, s, s + 1),
                 out.final_states);
    begin = end;
  }
}

TEST_P(Packed, AnEmptySequenceKeepsItsInitialState) {
  CaseSpec spec = packed({3, 0, 20, 0}, 2);
  Case c = make(spec);
  run(c);
  for (std::int64_t i : {1, 3}) {
    EXPECT_TRUE(testkit::same_bits(slice(c.outputs.final_states, 0, i, i + 1),
                                   slice(c.inputs.initial_states, 0, i, i + 1)));
    EXPECT_EQ(testkit::get(c.outputs.log_decay, {i, 1}), 0.0);
  }
  spec.initial_states.reset();
  Case without = make(spec);
  run(without);
  EXPECT_EQ(testkit::get(without.outputs.final_states, {1, 0, 0, 0}), 0.0);
}

TEST_P(Packed, RowsOutsideEverySequenceAreZero) {
  CaseSpec spec = packed({10, 0, 20}, 37);
  spec.chunk_states = DType::kBF16;
  spec.state_every = 4;  // 2 + 5 rows of 16 are used
  spec.layout = Layout::kStrided;
  Case c = make(spec);
  if (!takes(c, 16)) return;
  expect_right(c, 16);
  for (std::int64_t t = 30; t < 67; ++t) EXPECT_EQ(testkit::get(c.outputs.y, {0, t, 3, 11}), 0.0);
  for (std::int64_t i = 7; i < 16; ++i) {
    EXPECT_EQ(testkit::get(c.outputs.chunk_states, {0, i, 3, 11, 15}), 0.0);
  }
  expect_right(packed({}, 5));
  expect_right(packed({0, 0}, 5));
  expect_right(packed({0, 0}));
}

TEST_P(Packed, InPlaceFinalStates) {
  CaseSpec spec = packed({50, 0, 70}, 3);
  spec.final_states.reset();
  spec.in_place = true;
  expect_right(spec, 16);
  spec.layout = Layout::kStrided;
  spec.initial_states = DType::kBF16;
  expect_right(spec, 16);
  spec.packed_by = PackedBy::kSeqIdx;
  spec.b = 3;
  spec.log_decay = false;
  spec.lengths = {50, 73};
  expect_right(spec, 16);
}

// A state taken after K tokens is the final state of a run that ends there.
TEST_P(Packed, ChunkStatesAreThoseOfTruncatedRuns) {
  for (std::int64_t K : {1, 24, 64, 100}) {
    CaseSpec spec = packed({50, 7, 130, 0, 24}, 4);
    spec.chunk_states = DType::kF32;
    spec.state_every = K;
    Case c = make(spec);
    expect_right(c, 64);
    std::int64_t row = 0, begin = 0;
    for (std::size_t i = 0; i < spec.lengths.size(); ++i) {
      for (std::int64_t len = K; len <= spec.lengths[i]; len += K, ++row) {
        if (K == 1 && len % 11 != 1) continue;  // enough of them
        Inputs truncated = tokens(c.inputs, begin, begin + len);
        const auto s = static_cast<std::int64_t>(i);
        truncated.initial_states = slice(c.inputs.initial_states, 0, s, s + 1);
        const OwnedTensor y = OwnedTensor::copy_of(slice(c.outputs.y, 1, begin, begin + len));
        const OwnedTensor state = OwnedTensor::copy_of(truncated.initial_states);
        Outputs out;
        out.y = y.view();
        out.final_states = state.view();
        Options options = c.options;
        options.state_every = 0;
        call(truncated, out, options, 64);
        TensorView got = slice(c.outputs.chunk_states, 1, row, row + 1);
        got.rank = 4;  // (1, h, p, n) instead of (1, 1, h, p, n)
        for (int axis = 1; axis < 4; ++axis) {
          got.shape[axis] = got.shape[axis + 1];
          got.strides[axis] = got.strides[axis + 1];
        }
        expect_close(c, testkit::Output::kState, got, out.final_states);
      }
      begin += spec.lengths[i];
    }
  }
}

TEST_P(Packed, ChunkStatesOfABatch) {
  CaseSpec spec;
  spec.b = 3;
  spec.l = 100;
  spec.chunk_states = DType::kF16;
  spec.initial_states = DType::kF32;
  for (std::int64_t K : {1, 7, 64, 100, 101}) {
    spec.state_every = K;
    expect_right(spec, 16);
  }
}

TEST_P(Packed, HandOffAtAnyToken) {
  CaseSpec spec;
  spec.l = 300;
  spec.z = true;
  spec.final_states = DType::kF32;
  spec.log_decay = true;
  for (DType dtype : {DType::kF32, DType::kBF16}) {
    spec.dtype = dtype;
    Case c = make(spec);
    run(c, 64);
    for (std::int64_t cut : {1, 63, 64, 65, 150, 299}) {
      const OwnedTensor y = OwnedTensor::copy_of(c.outputs.y);
      testkit::poison(y.view());
      const OwnedTensor state = OwnedTensor::copy_of(c.outputs.final_states);
      const OwnedTensor decays[] = {OwnedTensor::copy_of(c.outputs.log_decay),
                                    OwnedTensor::copy_of(c.outputs.log_decay)};
      Outputs out;
      out.y = slice(y.view(), 1, 0, cut);
      out.final_states = state.view();
      out.log_decay = decays[0].view();
      call(tokens(c.inputs, 0, cut), out, c.options, 64);
      Inputs rest = tokens(c.inputs, cut, spec.l);
      rest.initial_states = state.view();
      out.y = slice(y.view(), 1, cut, spec.l);
      out.log_decay = decays[1].view();
      call(rest, out, c.options, 64);
      expect_close(c, testkit::Output::kY, y.view(), c.outputs.y);
      expect_close(c, testkit::Output::kState, state.view(), c.outputs.final_states);
      const OwnedTensor sum = OwnedTensor::copy_of(decays[0].view());
      testkit::fill(sum.view(), [&](testkit::Index i) {
        return testkit::get(decays[0].view(), {i[0], i[1]}) +
               testkit::get(decays[1].view(), {i[0], i[1]});
      });
      expect_close(c, testkit::Output::kLogDecay, sum.view(), c.outputs.log_decay);
    }
  }
}

// Resets between single tokens, and equal values that do not touch.
TEST_P(Packed, SeqIdxOfEveryKind) {
  CaseSpec spec;
  spec.b = 2;
  spec.l = 70;
  spec.packed_by = PackedBy::kSeqIdx;
  spec.lengths = {70};
  spec.initial_states = spec.final_states = DType::kF32;
  Case c = make(spec);
  const auto expect_with = [&](auto&& id) {
    testkit::fill(c.inputs.seq_idx, [&](testkit::Index i) { return static_cast<double>(id(i)); });
    for (int q : {16, 64, 128}) expect_right(c, q);
  };
  expect_with([](testkit::Index i) { return i[1]; });
  expect_with([](testkit::Index i) { return i[1] / 16; });
  expect_with([](testkit::Index i) { return i[1] / 5 % 2; });
  expect_with([](testkit::Index i) { return i[0] == 0 ? -3 : i[1] < 69; });
  expect_with([](testkit::Index) { return 2147483647; });
}

INSTANTIATE_TEST_SUITE_P(, Packed, testing::ValuesIn(runners()), runner_name);

}  // namespace
}  // namespace chunkscan
