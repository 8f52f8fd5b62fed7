#include "op/sequences.h"

#include <gtest/gtest.h>

#include <vector>

namespace chunkscan {
namespace {

// Problems are described by their packing alone.
Problem packed(std::int64_t l, std::int64_t sequences) {
  Problem problem;
  problem.b = 1;
  problem.l = l;
  problem.sequences = sequences;
  problem.packing = Packing::kCuSeqlens;
  return problem;
}

template <typename T>
Array array_of(const std::vector<T>& values) {
  Array array;
  array.data = reinterpret_cast<std::byte*>(const_cast<T*>(values.data()));
  array.element_bytes = sizeof(T);
  array.strides = {static_cast<std::int64_t>(values.size()), 1};
  return array;
}

template <typename T>
std::vector<Sequence> table(const Problem& problem, const std::vector<T>& offsets) {
  Buffers buffers;
  buffers.cu_seqlens = array_of(offsets);
  buffers.cu_seqlens.strides = {1};
  std::vector<Sequence> sequences(static_cast<std::size_t>(problem.sequences));
  fill_sequences(problem, buffers, sequences.data());
  return sequences;
}

void expect_sequence(const Sequence& s, std::int64_t begin, std::int64_t end, std::int64_t row) {
  EXPECT_EQ(s.begin, begin);
  EXPECT_EQ(s.end, end);
  EXPECT_EQ(s.chunk_states_row, row);
}

TEST(Sequences, RowsOfTheBatchAreSequences) {
  Problem problem;
  problem.b = problem.sequences = 3;
  problem.l = 7;
  Sequence sequences[3];
  fill_sequences(problem, {}, sequences);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(sequences[i].batch, i);
    EXPECT_EQ(sequences[i].state, i);
    expect_sequence(sequences[i], 0, 7, 0);
  }
}

TEST(Sequences, PackedOnesCountTheirChunkStates) {
  Problem problem = packed(30, 4);
  problem.state_every = 4;
  const auto sequences = table<std::int32_t>(problem, {0, 9, 9, 20, 23});
  expect_sequence(sequences[0], 0, 9, 0);
  expect_sequence(sequences[1], 9, 9, 2);
  expect_sequence(sequences[2], 9, 20, 2);
  expect_sequence(sequences[3], 20, 23, 4);
  EXPECT_EQ(sequences[3].state, 3);
  problem.cu_seqlens_64 = true;
  expect_sequence(table<std::int64_t>(problem, {0, 9, 9, 20, 23})[2], 9, 20, 2);
}

TEST(Sequences, BadOffsetsStayInside) {
  const auto sequences = table<std::int32_t>(packed(10, 3), {0, 8, 3, 99});
  expect_sequence(sequences[0], 0, 8, 0);
  expect_sequence(sequences[1], 8, 8, 0);
  expect_sequence(sequences[2], 8, 10, 0);
  expect_sequence(table<std::int32_t>(packed(10, 1), {0, -5})[0], 0, 0, 0);
}

struct Cut {
  std::int64_t begin, len;
  bool reset;
  std::int64_t row;
  friend bool operator==(const Cut&, const Cut&) = default;
};

void PrintTo(const Cut& cut, std::ostream* out) {
  *out << "{" << cut.begin << ", " << cut.len << ", " << cut.reset << ", " << cut.row << "}";
}

std::vector<Cut> cuts(const Problem& problem, const Buffers& buffers, const Sequence& sequence,
                      std::int64_t q) {
  std::vector<Cut> all;
  for (ChunkCursor cursor(problem, buffers, sequence, q); !cursor.done();) {
    const Chunk chunk = cursor.next();
    all.push_back({chunk.begin, chunk.len, chunk.reset, chunk.chunk_states_row});
  }
  return all;
}

TEST(ChunkCursor, RestartsAtTheSequencesOwnStart) {
  EXPECT_EQ(cuts(packed(100, 1), {}, {0, 10, 45, 0, 0}, 16),
            (std::vector<Cut>{{10, 16, false, -1}, {26, 16, false, -1}, {42, 3, false, -1}}));
  EXPECT_TRUE(cuts(packed(100, 1), {}, {0, 10, 10, 0, 0}, 16).empty());
}

TEST(ChunkCursor, CutsAtEveryStateAndSaysWhereItGoes) {
  Problem problem = packed(100, 1);
  problem.state_every = 10;
  EXPECT_EQ(cuts(problem, {}, {0, 5, 30, 0, 7}, 8), (std::vector<Cut>{{5, 8, false, -1},
                                                                      {13, 2, false, 7},
                                                                      {15, 8, false, -1},
                                                                      {23, 2, false, 8},
                                                                      {25, 5, false, -1}}));
  problem.state_every = 8;  // a multiple and a chunk's end in one
  EXPECT_EQ(cuts(problem, {}, {0, 0, 16, 0, 0}, 8),
            (std::vector<Cut>{{0, 8, false, 0}, {8, 8, false, 1}}));
}

TEST(ChunkCursor, CutsAndResetsAtEveryChangeOfSeqIdx) {
  Problem problem;
  problem.b = 2;
  problem.l = 8;
  problem.packing = Packing::kSeqIdx;
  const std::vector<std::int32_t> ids = {9, 9, 9, 9, 9, 9, 9, 9, /* second row */
                                         4, 4, 4, 4, 4, 0, 4, 4};
  Buffers buffers;
  buffers.seq_idx = array_of(ids);
  buffers.seq_idx.strides = {8, 1};
  EXPECT_EQ(
      cuts(problem, buffers, {1, 0, 8, 1, 0}, 3),
      (std::vector<Cut>{{0, 3, false, -1}, {3, 2, false, -1}, {5, 1, true, -1}, {6, 2, true, -1}}));
}

}  // namespace
}  // namespace chunkscan
