// What host and device share at run time. All sizes in elements unless a name says bytes.
#pragma once

#include "config.h"

namespace chunkscan::cuda {

// A tensor of any strides. `data` = nullptr: absent.
struct Tensor {
  u8* data;
  i64 strides[5];
  int rank;
  Element dtype;
};

// How tokens are cut into chunks. A chunk is named by its slot; slots of a sequence are consecutive
// and follow from offsets alone (chunks.cuh), so no prefix sum over sequences is needed.
struct Chunking {
  i64 l;                 // tokens of a row
  i64 slots;             // of all rows; some stay empty where sequences are packed. Not kRuns
  i64 slots_per_row;     // Packing::kNone
  i64 state_every;       // K: chunks restart at its multiples; 0 = no such cuts. Not kRuns
  i64 chunks_per_state;  // ceil(K / q)
  const void* offsets;   // (sequences + 1), Packing::kOffsets
  i64 offsets_stride;
  int offsets_64;  // they are 64-bit
  int sequences;   // of cu_seqlens; else rows
  // Packing::kRuns, by find_runs. A run is a sequence; token t of a row is number row * l + t.
  const i64* runs;      // (runs + 1): their first tokens, then rows * l
  const i64* row_runs;  // (rows + 1): the rows' first runs, then the number of runs
};

struct FindRunsParams {
  const int* seq_idx;
  i64 strides[2];
  i64 rows, l;
  i64* tile_runs;  // (run_tiles(rows * l)): how many start in each tile
  i64* runs;       // (rows * l + 1), filled as far as there are runs
  i64* row_runs;   // (rows + 1)
};

struct alignas(8) CsDt {
  float cs;  // log2 of the decay since the chunk's start, this token's included
  float dt;  // dt'
};

// Per token and head, token-contiguous: (b, h, l_pad), l_pad = l rounded up to a multiple of 4.
struct Decay {
  CsDt* cs_dt;
  float* cs_low;  // what rounding cs to fp32 lost; where products are fp32
  // dt' * decay from here to the chunk's end. Split: two bf16, rounded and what rounding lost.
  float* weight;
  float* chunk;      // (slots, h): decay over the whole chunk; kRuns does without
  float* chunk_log;  // (slots, h): sum of dt' * A over the chunk, unclamped; or nullptr
  i64 l_pad;
};

struct ChunkCumsumParams {
  Chunking chunking;
  Decay decay;
  Tensor dt, A, dt_bias;
  Tensor y;             // whose rows outside every sequence are zeroed
  Tensor chunk_states;  // which is zeroed where there is no sequence at all; (1, rows, h, p, n)
  i64 chunk_states_rows;
  int h, p, n;
  float dt_min, dt_max;
  bool softplus;
};

struct alignas(64) TensorMap {
  u64 opaque[16];
};

// What both kinds of a kernel are told.
struct FwdPassStateCommon {
  Chunking chunking;
  Decay decay;
  Tensor initial_states, final_states, chunk_states, log_decay;
  int h, heads_per_group;
};

struct FwdPassStateParams : FwdPassStateCommon {
  TensorMap x_map, B_map;
  u16* states;  // (slots, h) state tiles: the state entering each chunk, see state_slot()
};

struct PortableFwdPassStateParams : FwdPassStateCommon {
  Tensor x, B;
  u8* states;  // (slots, h), state_bytes() each
};

struct ComputeOutCommon {
  Chunking chunking;
  Decay decay;
  Tensor D, y;
  int h, heads_per_group;
  int heads;  // of one group, that a block takes one after the other: C B^T serves all
  bool has_initial_states;
  bool D_per_head_dim;
};

struct ComputeOutParams : ComputeOutCommon {
  TensorMap x_map, z_map, B_map, C_map;
  const u16* states;
};

struct PortableComputeOutParams : ComputeOutCommon {
  Tensor x, z, B, C;
  const u8* states;
};

}  // namespace chunkscan::cuda
