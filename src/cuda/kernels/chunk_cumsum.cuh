// chunk_cumsum: dt' and the decay inside each chunk, token-contiguous.
//
//   dt'_t = clamp(softplus?(dt_t + dt_bias_h), dt_min, dt_max)
//   cs_t  = log2(e) A_h (sum of dt' from the chunk's first token to t)
//
// A block takes one chunk and 32 heads: it reads dt as it lies (heads contiguous) through a
// transpose in shared memory, then each warp scans heads of its own along the tokens.
//
// The sum is in fixed point: integer addition is exact in any order, so cs never rises where A <= 0
// and differences behind a huge decay keep their digits.
#pragma once

#include "chunks.cuh"
#include "element.cuh"

namespace chunkscan::cuda {

constexpr int kCumsumHeads = 32;
constexpr int kCumsumThreads = 256;

constexpr float kLog2E = 1.44269504088896340736f;
constexpr double kFixedPoint = 1ll << 44;  // 512 tokens of kDecayLimit still fit 63 bits
constexpr float kDecayLimit = 160.0f;      // 2^-160 is 0 in fp32

__device__ inline float softplus(float v) { return v > 30.0f ? v : log1pf(expf(v)); }

// Rows of y that belong to no sequence.
template <ChunkCumsumConfig config>
__device__ void zero_the_rest(const ChunkCumsumParams& params) {
  if constexpr (config.packing == Packing::kOffsets) {
    const Chunking& c = params.chunking;
    const i64 width = i64{params.h} * params.p;
    const i64 begin = offset_at(c, c.sequences) * width, end = c.l * width;
    const i64 step = i64{gridDim.x} * kCumsumThreads;
    for (i64 i = begin + i64{blockIdx.x} * kCumsumThreads + threadIdx.x; i < end; i += step) {
      const i64 t = i / width, head = i % width / params.p, p = i % params.p;
      const i64* strides = params.y.strides;
      store(params.y, t * strides[1] + head * strides[2] + p * strides[3], 0.0f);
    }
  }
}

template <ChunkCumsumConfig config>
__device__ void chunk_cumsum(const ChunkCumsumParams& params) {
  constexpr int q = config.q;
  constexpr int kPerLane = (q + 31) / 32;
  __shared__ float raw[kCumsumHeads][q + 1];

  zero_the_rest<config>(params);
  const int head_blocks = (params.h + kCumsumHeads - 1) / kCumsumHeads;
  const i64 slot = blockIdx.x / head_blocks;
  const int head0 = static_cast<int>(blockIdx.x % head_blocks) * kCumsumHeads;
  const Chunk chunk = chunk_at<q, config.packing>(params.chunking, slot);
  if (chunk.len == 0) return;

  const i64* strides = params.dt.strides;
  for (int i = threadIdx.x; i < q * kCumsumHeads; i += kCumsumThreads) {
    const int t = i / kCumsumHeads, head = i % kCumsumHeads;
    if (t >= chunk.len || head0 + head >= params.h) continue;
    raw[head][t] = load(params.dt, chunk.row * strides[0] + (chunk.begin + t) * strides[1] +
                                       (head0 + head) * strides[2]);
  }
  __syncthreads();

  const int lane = threadIdx.x % 32;
  for (int i = threadIdx.x / 32; i < kCumsumHeads; i += kCumsumThreads / 32) {
    const int head = head0 + i;
    if (head >= params.h) return;
    const float bias = params.dt_bias.data ? load(params.dt_bias, head * params.dt_bias.strides[0])
                                           : 0.0f;
    const float A = load(params.A, head * params.A.strides[0]);
    float dt[kPerLane];
    i64 sum[kPerLane];
    i64 total = 0;
    double log_total = 0.0;
#pragma unroll
    for (int k = 0; k < kPerLane; ++k) {
      const int t = lane * kPerLane + k;
      const bool valid = t < chunk.len;
      float v = valid ? raw[i][t] + bias : 0.0f;
      if (params.softplus) v = softplus(v);
      v = v < params.dt_min ? params.dt_min : v > params.dt_max ? params.dt_max : v;  // NaN stays
      dt[k] = valid ? v : 0.0f;
      log_total += double{dt[k]} * A;
      const float decay = dt[k] * A * kLog2E;
      const float limited = fminf(fmaxf(decay, -kDecayLimit), kDecayLimit);
      total += __double2ll_rn(limited * kFixedPoint);
      sum[k] = total;
    }
    i64 before = total;
#pragma unroll
    for (int step = 1; step < 32; step *= 2) {
      const i64 other = __shfl_up_sync(~0u, before, step);
      if (lane >= step) before += other;
      log_total += __shfl_xor_sync(~0u, log_total, step);
    }
    const i64 whole = __shfl_sync(~0u, before, 31);
    before -= total;

    const i64 at = (chunk.row * params.h + head) * params.decay.l_pad + chunk.begin;
#pragma unroll
    for (int k = 0; k < kPerLane; ++k) {
      const int t = lane * kPerLane + k;
      if (t >= chunk.len) break;
      const double cs = static_cast<double>(before + sum[k]) * (1.0 / kFixedPoint);
      const double rest = static_cast<double>(whole - before - sum[k]) * (1.0 / kFixedPoint);
      params.decay.cs_dt[at + t] = {static_cast<float>(cs), dt[k]};
      if constexpr (config.compensated) {
        params.decay.cs_low[at + t] = static_cast<float>(cs - static_cast<float>(cs));
      }
      params.decay.weight[at + t] = dt[k] * exp2f(static_cast<float>(rest));
    }
    if (lane == 0) {
      const i64 index = slot * params.h + head;
      params.decay.chunk[index] =
          exp2f(static_cast<float>(static_cast<double>(whole) * (1.0 / kFixedPoint)));
      if (params.decay.chunk_log) {
        params.decay.chunk_log[index] = static_cast<float>(log_total);
      }
    }
  }
}

}  // namespace chunkscan::cuda
