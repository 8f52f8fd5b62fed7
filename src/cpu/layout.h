// How the CPU backend cuts a problem into work, and where its scratch lies in the workspace.
#pragma once

#include <cstddef>
#include <cstdint>

#include "op/config.h"
#include "op/problem.h"
#include "op/sequences.h"

namespace chunkscan {

// Rows of scratch are padded with zeros to a multiple of this many floats, so that the kernels of
// every instruction set load whole vectors.
inline constexpr std::int64_t kRowPad = 16;

inline std::int64_t padded(std::int64_t count) { return (count + kRowPad - 1) / kRowPad * kRowPad; }

// The unit of work is a block: some heads of one group of one sequence, or a slice of the columns
// (p) of one head. A thread takes whole blocks, and threads never wait for each other: what a
// block's heads share (B, C, C B^T) is prepared once a block, which costs a quarter of a head's own
// work. Rejected: all threads on one block, sharing what is prepared. A barrier every few chunks
// costs a time slice each as soon as anything else runs on the machine, and lines that another core
// has read are slow to store to (one head, two cores: 0.3 or 0.6 ms, by where the cores lie).
//
// A block advances in windows of a few chunks: a window's chunks are prepared (chunk_cumsum, C
// B^T), then every head walks through them. Nothing here grows with l.
struct CpuLayout {
  CpuLayout(const Problem& problem, const Config& config, int threads);

  std::int64_t heads;  // of a block, at most
  std::int64_t blocks_per_group;
  std::int64_t q, n, p;  // chunk length, state size, head dimension
  std::int64_t q16, n16;
  std::int64_t window;  // chunks prepared at a time
  std::int64_t slices;  // of p, 1 unless heads is 1
  std::int64_t slice;   // columns of one slice, a multiple of kRowPad; the last may be shorter
  bool native_bf16;     // operands of the products are bf16 pairs: 2 elements in 32 bits
  bool keeps_entering;  // staged: the states entering the window's chunks are stored

  // Byte offsets within the workspace.
  std::size_t sequences;     // Sequence[problem.sequences]
  std::size_t initial_most;  // where heads are sliced: float[problem.sequences][problem.h]
  std::size_t blocks;        // one region for each thread
  std::size_t block_bytes;
  std::size_t workers;  // one region for each thread
  std::size_t worker_bytes;
  std::size_t total;

  // Byte offsets within a block's region.
  std::size_t chunks;     // Chunk[window]
  std::size_t CB;         // float[window][q][q16]
  std::size_t decay;      // float[window][heads][kDecayRows][q16], see DecayRow
  std::size_t sums;       // HeadSums[window][heads]
  std::size_t log_decay;  // double[heads]: sum of dt' * A since the sequence began
  std::size_t carried;    // Carried[heads]
  std::size_t lost;       // float[heads][n16][slice]: what rounding took from a slow state
  std::size_t states;     // float[heads][n16][slice]: transposed, so that vectors run along p
  std::size_t entering;   // staged only: float[window][heads][n16][slice]

  // Byte offsets within a worker's region.
  std::size_t operands;  // Operands[window]
  std::size_t B, C;      // float[window][q16][n16]
  std::size_t B_pairs;   // native_bf16: uint32[window][q16 / 2][n16], pairs of tokens
  std::size_t C_pairs;   // native_bf16: uint32[window][q][n16 / 2], pairs along n
  // float[max(n16, slice)][q16]: B transposed (native_bf16: its pairs, then these transposed), and
  // tokens that are contiguous in memory on their way in or out
  std::size_t columns;
  std::size_t X;        // float[q16][slice]
  std::size_t X_pairs;  // native_bf16: uint32[q16 / 2][slice], pairs of tokens
  std::size_t S_pairs;  // native_bf16: uint32[n16 / 2][slice], pairs along n
  std::size_t M;        // float[kMostTileRows][q16]: C B^T o L o dt' of one row tile
  std::size_t y, z;     // float[q16][slice]; of one row tile, but where finishes_at_once
  std::size_t D;        // float[slice]
  std::size_t rows;     // float[slice][n16]: a state on its way in or out
};

// What chunk_cumsum leaves for one head and chunk; each a row of q16 floats. cs is the running sum
// of log2 decays inside the chunk, kept as a pair of floats whose sum is exact to 48 bits.
enum DecayRow : int {
  kDt,      // dt'_j
  kCsHigh,  // cs_i
  kCsLow,
  // Powers as products of two factors, see exp2_factors.
  kDecayIn,  // exp2(cs_i): what is left at token i of the state that entered
  kDecayInRest,
  kWeight,  // exp2(cs_q - cs_j) dt'_j: what is left of token j at the chunk's end
  kWeightRest,
  kFactor,  // exp2 of one token's own log2 decay
  kFactorRest,
  kDecayRows
};

// What chunk_cumsum leaves beside the rows.
struct HeadSums {
  double log_decay = 0.0;         // sum of dt' * A
  double log2_decay = 0.0;        // cs_q
  double least_log2_decay = 0.0;  // the smallest cs_i, or 0
  double most_log2_growth = 0.0;  // the largest cs_i - cs_j for i >= j; 0 where all only decays
  bool slow = false;              // most of the state is left
  float part = 0.0f;              // S' = part S + what the tokens add; slow: S more
  double dt = 0.0;                // sum of |dt'|
  double most_dt = 0.0;           // the largest |dt'|
  std::int64_t chunked = 0;       // staged: see chunked_tokens
};

// What is known of the state that a chunk leaves.
struct Carried {
  double most = 0.0;  // no element is larger
  bool slow = false;  // most of the state before it is left
  bool lost = false;  // what rounding took from it is kept beside it
};

// Of a chunk: its tokens in fp32, n16 elements apart, and their largest magnitude. They are copied
// to the worker's rows, but where the recurrence can read the caller's.
struct Operand {
  const float* rows;
  float most;
};
struct Operands {
  Operand B, C;
};

// Rows of the tallest register tile of any instruction set.
inline constexpr int kMostTileRows = 12;

}  // namespace chunkscan
