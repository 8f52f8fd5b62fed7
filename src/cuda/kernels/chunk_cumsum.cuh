// chunk_cumsum: dt' and the decay inside each chunk, token-contiguous.
//
//   dt'_t = clamp(softplus?(dt_t + dt_bias_h), dt_min, dt_max)
//   cs_t  = log2(e) A_h (sum of dt' from the chunk's first token to t)
//
// A block takes one chunk and some heads: it reads dt as it lies (heads contiguous) through a
// transpose in shared memory, then each warp scans heads of its own along the tokens.
//
// The sum is in fixed point: integer addition is exact in any order, so cs never rises where A <= 0
// and what follows a huge decay keeps its digits.
#pragma once

#include "chunks.cuh"
#include "element.cuh"
#include "ptx.cuh"

namespace chunkscan::cuda {

constexpr float kLog2E = 1.44269504088896340736f;
constexpr float kFixedPoint = 1ll << 44;  // 512 tokens of kDecayLimit still fit 63 bits
constexpr float kDecayLimit = 160.0f;     // 2^-160 is 0 in fp32

__device__ inline float softplus(float v) { return v > 30.0f ? v : log1pf(expf(v)); }

// Rows [begin, end) of dimension 1 of a tensor whose further dimensions have these sizes.
template <ChunkCumsumConfig config>
__device__ void zero_rows(const Tensor& tensor, i64 begin, i64 end, int h, int p, int n) {
  const i64 row = i64{h} * p * n, step = i64{gridDim.x} * config.threads();
  for (i64 i = begin * row + i64{blockIdx.x} * config.threads() + threadIdx.x; i < end * row;
       i += step) {
    const i64 column = i % row;
    store(tensor,
          i / row * tensor.strides[1] + column / (p * n) * tensor.strides[2] +
              column / n % p * tensor.strides[3] + column % n * tensor.strides[4],
          0.0f);
  }
}

// What no sequence writes.
template <ChunkCumsumConfig config>
__device__ void zero_the_rest(const ChunkCumsumParams& params) {
  if constexpr (config.packing == Packing::kOffsets) {
    const Chunking& c = params.chunking;
    zero_rows<config>(params.y, offset_at(c, c.sequences), c.l, params.h, params.p, 1);
    if (c.sequences == 0 && params.chunk_states.data) {
      zero_rows<config>(params.chunk_states, 0, params.chunk_states_rows, params.h, params.p,
                        params.n);
    }
  }
}

__device__ inline float to_float(i64 fixed) { return __ll2float_rn(fixed) * (1.0f / kFixedPoint); }

// One head's chunk, by one warp: row k of 32 tokens after row k - 1.
template <ChunkCumsumConfig config>
__device__ void scan_head(const ChunkCumsumParams& params, const Chunk& chunk, i64 slot, int head,
                          const float* raw) {
  constexpr int kRows = (config.q + 31) / 32;
  const int lane = threadIdx.x % 32;
  const float A = load(params.A, head * params.A.strides[0]);
  const float bias =
      params.dt_bias.data ? load(params.dt_bias, head * params.dt_bias.strides[0]) : 0.0f;
  float dt[kRows];
  i64 sum[kRows];
  i64 whole = 0;
#pragma unroll
  for (int k = 0; k < kRows; ++k) {
    const bool valid = 32 * k + lane < chunk.len;
    float v = valid ? raw[32 * k + lane] + bias : 0.0f;
    if (params.softplus) v = softplus(v);
    v = v < params.dt_min ? params.dt_min : v > params.dt_max ? params.dt_max : v;  // NaN stays
    dt[k] = valid ? v : 0.0f;
    const float decay = dt[k] * A * kLog2E;
    if (decay != decay) dt[k] = decay;  // a NaN of A too shows in y and the state
    sum[k] = __float2ll_rn(fminf(fmaxf(decay, -kDecayLimit), kDecayLimit) * kFixedPoint);
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
      const i64 other = __shfl_up_sync(~0u, sum[k], step);
      if (lane >= step) sum[k] += other;
    }
    sum[k] += whole;
    whole = __shfl_sync(~0u, sum[k], 31);
  }

  const i64 at = (chunk.row * params.h + head) * params.decay.l_pad + chunk.begin;
#pragma unroll
  for (int k = 0; k < kRows; ++k) {
    const int t = 32 * k + lane;
    if (t >= chunk.len) break;
    const float cs = to_float(sum[k]);
    params.decay.cs_dt[at + t] = {cs, dt[k]};
    if constexpr (config.compensated) {
      params.decay.cs_low[at + t] = to_float(sum[k] - __float2ll_rn(cs * kFixedPoint));
    }
    float weight = dt[k] * exp2f(to_float(whole - sum[k]));
    if constexpr (config.split_weights) {
      const float high = bf16_to_float(bf16_bits(weight));
      weight = __uint_as_float(pack<Element::kBF16>(high, weight - high));
    }
    params.decay.weight[at + t] = weight;
  }
  if constexpr (config.packing == Packing::kRuns) return;  // see chunk_decay_at()
  const i64 index = slot * params.h + head;
  if (lane == 0) params.decay.chunk[index] = exp2f(to_float(whole));
  if (params.decay.chunk_log) {  // unclamped, so not from the fixed point
    double total = 0.0;
#pragma unroll
    for (int k = 0; k < kRows; ++k) total += double{dt[k]} * A;
#pragma unroll
    for (int step = 16; step > 0; step /= 2) total += __shfl_xor_sync(~0u, total, step);
    if (lane == 0) params.decay.chunk_log[index] = static_cast<float>(total);
  }
}

// One chunk and some heads.
template <ChunkCumsumConfig config>
__device__ void scan_chunk(const ChunkCumsumParams& params, i64 slot, int head0) {
  constexpr int q = config.q, kHeads = config.heads, kThreads = config.threads();
  __shared__ float raw[kHeads][q + 1];

  const Chunk chunk = chunk_at<q, config.packing>(params.chunking, slot);
  if (chunk.len == 0) return;

  const i64* strides = params.dt.strides;
  const i64 base = chunk.row * strides[0] + chunk.begin * strides[1] + head0 * strides[2];
#pragma unroll 8
  for (int i = threadIdx.x; i < q * kHeads; i += kThreads) {
    const int t = i / kHeads, head = i % kHeads;
    if (t < chunk.len && head0 + head < params.h) {
      raw[head][t] = load(params.dt, base + t * strides[1] + head * strides[2]);
    }
  }
  __syncthreads();
  for (int i = threadIdx.x / 32; i < kHeads && head0 + i < params.h; i += kThreads / 32) {
    scan_head<config>(params, chunk, slot, head0 + i, raw[i]);
  }
}

// kRuns: any number of blocks. Otherwise one for each chunk and block of heads.
template <ChunkCumsumConfig config>
__device__ void chunk_cumsum(const ChunkCumsumParams& params) {
  constexpr int kHeads = config.heads;
  launch_dependents();
  zero_the_rest<config>(params);
  const int head_blocks = (params.h + kHeads - 1) / kHeads;
  if constexpr (config.packing == Packing::kRuns) {
    const i64 count = slots<config.q, config.packing>(params.chunking) * head_blocks;
    for (i64 i = blockIdx.x; i < count; i += gridDim.x) {
      scan_chunk<config>(params, i / head_blocks, static_cast<int>(i % head_blocks) * kHeads);
      __syncthreads();
    }
  } else {
    scan_chunk<config>(params, blockIdx.x / head_blocks,
                       static_cast<int>(blockIdx.x % head_blocks) * kHeads);
  }
}

}  // namespace chunkscan::cuda
