// find_runs: the runs of equal values of seq_idx, in order.
//
// Two launches of run_tiles() blocks, a tile of tokens each (the rows one behind the other): the
// first counts the runs that start in each tile; the second adds up the counts before its tile and
// writes.
#pragma once

#include "params.h"

namespace chunkscan::cuda {

namespace find_runs_roles {

struct Token {
  i64 row;
  bool starts_row, starts_run;
};

__device__ inline Token token_at(const FindRunsParams& params, i64 index) {
  const i64 row = index / params.l, t = index - row * params.l;
  const int* value = params.seq_idx + row * params.strides[0] + t * params.strides[1];
  return {row, t == 0, t == 0 || *value != value[-params.strides[1]]};
}

template <int threads>
__device__ i64 sum_of_block(i64 value) {
  __shared__ i64 sums[threads / 32];
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(~0u, value, step);
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = value;
  __syncthreads();
  value = 0;
  for (int i = 0; i < threads / 32; ++i) value += sums[i];
  return value;
}

template <FindRunsConfig config>
__device__ void count(const FindRunsParams& params, i64 begin, i64 end) {
  i64 runs = 0;
#pragma unroll 4
  for (i64 i = begin + threadIdx.x; i < end; i += config.threads()) {
    runs += token_at(params, i).starts_run;
  }
  runs = sum_of_block<config.threads()>(runs);
  if (threadIdx.x == 0) params.tile_runs[blockIdx.x] = runs;
}

template <FindRunsConfig config>
__device__ void write(const FindRunsParams& params, i64 begin, i64 end) {
  constexpr int kWarps = config.threads() / 32;
  constexpr int kTokens = kRunBatch / config.threads();  // of a thread, 32 apart
  __shared__ int warp_runs[2][kWarps];
  const int warp = threadIdx.x / 32, lane = threadIdx.x % 32;

  i64 run = 0;  // that starts next
  for (int i = threadIdx.x; i < static_cast<int>(blockIdx.x); i += config.threads()) {
    run += params.tile_runs[i];
  }
  run = sum_of_block<config.threads()>(run);
  int turn = 0;
  for (i64 batch = begin; batch < end; batch += kRunBatch) {
    const i64 first = batch + warp * (32 * kTokens) + lane;
    Token tokens[kTokens];
    u32 starts[kTokens];
    int count = 0;
#pragma unroll
    for (int k = 0; k < kTokens; ++k) {
      tokens[k] = {};
      if (first + 32 * k < end) tokens[k] = token_at(params, first + 32 * k);
    }
#pragma unroll
    for (int k = 0; k < kTokens; ++k) {
      starts[k] = __ballot_sync(~0u, tokens[k].starts_run);
      count += __popc(starts[k]);
    }
    if (lane == 0) warp_runs[turn][warp] = count;
    __syncthreads();
    i64 index = run;
    for (int i = 0; i < kWarps; ++i) {
      if (i < warp) index += warp_runs[turn][i];
      run += warp_runs[turn][i];
    }
#pragma unroll
    for (int k = 0; k < kTokens; ++k) {
      const i64 own = index + __popc(starts[k] & ((1u << lane) - 1));
      if (tokens[k].starts_run) params.runs[own] = first + 32 * k;
      if (tokens[k].starts_row) params.row_runs[tokens[k].row] = own;
      index += __popc(starts[k]);
    }
    turn ^= 1;  // a warp that is ahead writes to the other counts
  }
  const i64 all = params.rows * params.l;
  if (end == all && threadIdx.x == 0) {
    params.runs[run] = all;
    params.row_runs[params.rows] = run;
  }
}

}  // namespace find_runs_roles

template <FindRunsConfig config>
__device__ void find_runs(const FindRunsParams& params) {
  const i64 all = params.rows * params.l, tile = run_tile(all);
  const i64 begin = blockIdx.x * tile, end = begin + tile < all ? begin + tile : all;
  if constexpr (config.count) {
    find_runs_roles::count<config>(params, begin, end);
  } else {
    find_runs_roles::write<config>(params, begin, end);
  }
}

}  // namespace chunkscan::cuda
