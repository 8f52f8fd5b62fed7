// compute_out: y from the chunk's own tokens and the state that enters it.
//
//   y_i = decay(i) C_i S  +  sum over j <= i of (C_i B_j) decay(j..i) dt'_j x_j  +  D x_i
//   y_i = y_i silu(z_i)
//
// A block takes one chunk and some heads of one group. C B^T is computed once, in fp32 registers,
// 64 rows of i a warpgroup; then head after head arrives through a ring of stages (x, the entering
// state, z, decay), p_tile columns of p at a time. Per head: C S starts on the tensor cores while
// the warps weigh C B^T and round it to the registers of operand A; the rows of C S are scaled, and
// (C B^T weighed) x adds to them. Tiles above the diagonal are never computed.
#pragma once

#include "chunks.cuh"
#include "element.cuh"
#include "sm90/tile.cuh"

namespace chunkscan::cuda {

template <ComputeOutConfig config>
struct ComputeOutShared {
  static constexpr int kWidth = config.width();
  static constexpr int kColumns = config.p_cols() / kWidth;

  struct Chunk {
    alignas(1024) u16 C[config.n_pad() / 64][config.q][64];
    alignas(1024) u16 B[config.n_pad() / 64][config.q][64];
  };
  struct Head {
    alignas(1024) u16 xz[config.z ? 2 : 1][kColumns][config.q][kWidth];  // x, then z
    alignas(1024) u16 state[kColumns][config.n_pad()][kWidth];
    alignas(16) CsDt cs_dt[config.q + 2];
  };
  Chunk chunk[config.bc_stages];
  Head head[config.stages];
  alignas(1024) u16 y[kColumns][config.q][kWidth];
  alignas(1024) Ring<config.bc_stages> chunks;
  Ring<config.stages> heads;
};

namespace compute_out_roles {

// What a block does in one turn.
template <ComputeOutConfig config>
struct Work {
  Chunk chunk;
  i64 state;  // slot of the one that enters
  int head0, group;

  static __device__ i64 count(const ComputeOutParams& params) {
    return slots<config.q, config.packing>(params.chunking) * (params.h / params.heads);
  }
  __device__ Work(const ComputeOutParams& params, i64 index) {
    const int splits = params.h / params.heads;
    const i64 slot = index / splits;
    head0 = static_cast<int>(index % splits) * params.heads;
    group = head0 / params.heads_per_group;
    chunk = chunk_at<config.q, config.packing>(params.chunking, slot);
    state = state_slot<config.q, config.packing>(params.chunking, chunk, slot);
  }
  __device__ bool has_state(const ComputeOutParams& params) const {
    return cuda::has_state<config.packing>(chunk, params.has_initial_states);
  }
};

template <ComputeOutConfig config>
__device__ void load(const ComputeOutParams& params, ComputeOutShared<config>& shared) {
  using Shared = ComputeOutShared<config>;
  constexpr i64 kTileElements = state_elements(config.p, config.n);
  Cursor<config.bc_stages> chunks;
  Cursor<config.stages> heads;
  const i64 count = Work<config>::count(params);
  for (i64 index = blockIdx.x; index < count; index += gridDim.x) {
    const Work<config> work(params, index);
    if (work.chunk.len == 0) continue;
    const int token = static_cast<int>(work.chunk.begin), row = static_cast<int>(work.chunk.row);
    u32 barrier = chunks.wait_empty(shared.chunks, 2 * sizeof(shared.chunk[0].C));
    auto& chunk = shared.chunk[chunks.stage];
    for (int i = 0; i < config.n_pad() / 64; ++i) {
      tensor_load(shared_address(chunk.C[i]), params.C_map, barrier, 64 * i, work.group, token,
                  row);
      tensor_load(shared_address(chunk.B[i]), params.B_map, barrier, 64 * i, work.group, token,
                  row);
    }
    chunks.next();

    const int skew = config.ragged ? static_cast<int>(work.chunk.begin & 1) : 0;
    const u32 decay_bytes = sizeof(CsDt) * (config.ragged ? config.q + 2 : config.q);
    const bool has_state = work.has_state(params);
    for (int i = 0; i < params.heads * config.p_slices(); ++i) {
      const int head = work.head0 + i / config.p_slices();
      const int p0 = i % config.p_slices() * config.p_tile;
      auto& stage = shared.head[heads.stage];
      barrier = heads.wait_empty(
          shared.heads, sizeof(stage.xz) + (has_state ? sizeof(stage.state) : 0) + decay_bytes);
      if (has_state) {
        const i64 at = (work.state * params.h + head) * kTileElements + p0 * config.n_pad();
        bulk_load(shared_address(stage.state), params.states + at, sizeof(stage.state), barrier);
      }
      const i64 at = (work.chunk.row * params.h + head) * params.decay.l_pad + work.chunk.begin;
      bulk_load(shared_address(stage.cs_dt), params.decay.cs_dt + at - skew, decay_bytes, barrier);
      for (int c = 0; c < Shared::kColumns; ++c) {
        const int p = p0 + c * Shared::kWidth;
        tensor_load(shared_address(stage.xz[0][c]), params.x_map, barrier, p, head, token, row);
        if constexpr (config.z) {
          tensor_load(shared_address(stage.xz[1][c]), params.z_map, barrier, p, head, token, row);
        }
      }
      heads.next();
    }
  }
}

// The part of warpgroup `wg`: rows [64 wg, 64 wg + 64) of the chunk.
template <ComputeOutConfig config, int wg>
struct Rows {
  using Shared = ComputeOutShared<config>;
  static constexpr int q = config.q;
  static constexpr int kTokens = 64 * (wg + 1);  // that the rows look at
  static constexpr int kThreads = 128 * config.warpgroups();
  static constexpr int kOut = config.p_pad() / 2;
  static_assert(config.packing == Packing::kNone || config.ragged);

  const ComputeOutParams& params;
  Shared& shared;
  int warp, lane, row;  // row: the first of the thread's two rows, the other is 8 below

  float CB[kTokens / 2];

  __device__ Rows(const ComputeOutParams& params, Shared& shared) : params(params), shared(shared) {
    warp = threadIdx.x / 32 % 4;
    lane = threadIdx.x % 32;
    row = 64 * wg + 16 * warp + lane / 4;
  }

  __device__ void multiply_C_B(const typename Shared::Chunk& chunk) {
    wgmma_fence();
#pragma unroll
    for (int n = 0; n < config.n_pad(); n += 16) {
      const Operand C(shared_address(chunk.C[n / 64][64 * wg]) + n % 64 * 2, 64, 0);
#pragma unroll
      for (int j = 0; j < kTokens; j += 64) {
        const Operand B(shared_address(chunk.B[n / 64][j]) + n % 64 * 2, 64, 0);
        wgmma<config.io, 64, 0>(CB + j / 2, C, B, n > 0);
      }
    }
    wgmma_commit();
    wgmma_wait<0>();
    hold(CB);
  }

  __device__ void multiply_C_S(float* Y, const typename Shared::Chunk& chunk,
                               const typename Shared::Head& head) {
    wgmma_fence();
#pragma unroll
    for (int n = 0; n < config.n_pad(); n += 16) {
      const Operand C(shared_address(chunk.C[n / 64][64 * wg]) + n % 64 * 2, 64, 0);
      product<config.io, config.p_pad(), Shared::kWidth, config.n_pad()>(
          Y, C, shared_address(head.state), n, n > 0);
    }
    wgmma_commit();
  }

  // (C B^T)_ij decay(j..i) dt'_j for j <= i, else 0, as operand A for tokens k..k+15.
  __device__ void weigh(u32 (&M)[4], int k, const CsDt* cs_dt, float cs0, float cs1) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int j = k + 8 * half + lane % 4 * 2;
      const CsDt a = cs_dt[j], b = cs_dt[j + 1];
      const float* cb = CB + 4 * (k / 8 + half);
      float m00 = cb[0] * (exp2_fast(cs0 - a.cs) * a.dt),
            m01 = cb[1] * (exp2_fast(cs0 - b.cs) * b.dt);
      float m10 = cb[2] * (exp2_fast(cs1 - a.cs) * a.dt),
            m11 = cb[3] * (exp2_fast(cs1 - b.cs) * b.dt);
      if (k >= 64 * wg) {
        if (j > row) m00 = 0.0f;
        if (j + 1 > row) m01 = 0.0f;
        if (j > row + 8) m10 = 0.0f;
        if (j + 1 > row + 8) m11 = 0.0f;
      }
      M[2 * half] = pack<config.io>(m00, m01);
      M[2 * half + 1] = pack<config.io>(m10, m11);
    }
  }

  // x rows behind the chunk's tokens belong to another sequence: 0 times their NaN would be NaN.
  __device__ void zero_rows_behind(int len, typename Shared::Head& head) const {
    constexpr int kWords = Shared::kWidth / 2;
    for (int c = 0; c < Shared::kColumns; ++c) {
      u32* words = reinterpret_cast<u32*>(head.xz[0][c]);
      for (int i = len * kWords + threadIdx.x; i < q * kWords; i += kThreads) words[i] = 0;
    }
    fence_async();
    barrier_sync(1, kThreads);
  }

  // Y += D x. The thread's elements of a tile: tile_at().
  template <bool per_head_dim>
  __device__ void add_D_x(float* Y, float D, i64 at, int p0,
                          const typename Shared::Head& stage) const {
    float D0 = D, D1 = D;
#pragma unroll
    for (int j = 0; j < kOut / 4; ++j) {
      if constexpr (per_head_dim) {
        const int p = p0 + 8 * j + lane % 4 * 2;
        D0 = p < config.p ? cuda::load(params.D, at + p * params.D.strides[1]) : 0.0f;
        D1 = p + 1 < config.p ? cuda::load(params.D, at + (p + 1) * params.D.strides[1]) : 0.0f;
      }
#pragma unroll
      for (int below = 0; below < 2; ++below) {
        const float2 x = unpack<config.io>(*tile_at(stage.xz[0], j, below));
        Y[4 * j + 2 * below] += D0 * x.x;
        Y[4 * j + 2 * below + 1] += D1 * x.y;
      }
    }
  }

  // The gate and rounding; then each warp copies its 16 rows out of shared memory.
  __device__ void write(float* Y, float D, const Chunk& chunk, int head, int p0,
                        const typename Shared::Head& stage) const {
    if (params.D.data) {
      if (params.D_per_head_dim) {
        add_D_x<true>(Y, D, head * params.D.strides[0], p0, stage);
      } else {
        add_D_x<false>(Y, D, 0, p0, stage);
      }
    }
#pragma unroll
    for (int j = 0; j < kOut / 4; ++j) {
#pragma unroll
      for (int below = 0; below < 2; ++below) {
        float* y = Y + 4 * j + 2 * below;
        if constexpr (config.z) {
          const float2 z = unpack<config.io>(*tile_at(stage.xz[1], j, below));
          y[0] *= silu(z.x);
          y[1] *= silu(z.y);
        }
        *tile_at(shared.y, j, below) = pack<config.io>(y[0], y[1]);
      }
    }
    __syncwarp();
    const i64* strides = params.y.strides;
    u16* y = reinterpret_cast<u16*>(params.y.data) + chunk.row * strides[0] +
             chunk.begin * strides[1] + head * strides[2];
    constexpr int kVectors = Shared::kWidth / 8;
#pragma unroll
    for (int c = 0; c < Shared::kColumns; ++c) {
#pragma unroll
      for (int i = lane; i < 16 * kVectors; i += 32) {
        const int r = 64 * wg + 16 * warp + i / kVectors, p = i % kVectors * 8;
        const int column = p0 + c * Shared::kWidth + p;
        if (r >= chunk.len || column >= config.p) continue;
        *reinterpret_cast<uint4*>(y + r * strides[1] + column) = *reinterpret_cast<const uint4*>(
            reinterpret_cast<const u8*>(shared.y[c]) + swizzled<Shared::kWidth>(r, 2 * p));
      }
    }
    __syncwarp();
  }

  // Where the thread's two neighbours of column tile j are, in its first row or the one 8 below.
  __device__ u32* tile_at(const u16 (*tile)[q][Shared::kWidth], int j, int below) const {
    const int column = 8 * j / Shared::kWidth, p = 8 * j % Shared::kWidth + lane % 4 * 2;
    const u8* base = reinterpret_cast<const u8*>(tile[column]);
    return reinterpret_cast<u32*>(
        const_cast<u8*>(base + swizzled<Shared::kWidth>(row + 8 * below, 2 * p)));
  }

  static __device__ float silu(float z) {
    return z * reciprocal_fast(1.0f + exp2_fast(-1.44269504f * z));
  }

  template <bool has_state>
  __device__ void run_head(const Chunk& tokens, int head, int p0,
                           const typename Shared::Chunk& chunk,
                           const typename Shared::Head& stage) {
    float D = 0.0f;  // asked for now, used at the end
    if (params.D.data && !params.D_per_head_dim) {
      D = cuda::load(params.D, head * params.D.strides[0]);
    }
    float Y[kOut];
    if constexpr (has_state) multiply_C_S(Y, chunk, stage);
    const CsDt* cs_dt = stage.cs_dt + (config.ragged ? tokens.begin & 1 : 0);
    const float cs0 = cs_dt[row].cs, cs1 = cs_dt[row + 8].cs;
    u32 M[kTokens / 16][4];
#pragma unroll
    for (int k = 0; k < kTokens; k += 16) weigh(M[k / 16], k, cs_dt, cs0, cs1);
    if constexpr (has_state) {
      wgmma_wait<0>();
      hold(Y);
      const float decay0 = exp2_fast(cs0), decay1 = exp2_fast(cs1);
#pragma unroll
      for (int i = 0; i < kOut; i += 4) {
        Y[i] *= decay0;
        Y[i + 1] *= decay0;
        Y[i + 2] *= decay1;
        Y[i + 3] *= decay1;
      }
    }
    wgmma_fence();
#pragma unroll
    for (int k = 0; k < kTokens; k += 16) {
      product<config.io, config.p_pad(), Shared::kWidth, q>(
          Y, M[k / 16], shared_address(stage.xz[0]), k, has_state || k > 0);
    }
    wgmma_commit();
    wgmma_wait<0>();
    hold(Y);
    hold(M);
    write(Y, D, tokens, head, p0, stage);
  }

  __device__ void run() {
    Cursor<config.bc_stages> chunks;
    Cursor<config.stages> heads;
    const i64 count = Work<config>::count(params);
    for (i64 index = blockIdx.x; index < count; index += gridDim.x) {
      const Work<config> work(params, index);
      if (work.chunk.len == 0) continue;
      chunks.wait_full(shared.chunks);
      const auto& chunk = shared.chunk[chunks.stage];
      multiply_C_B(chunk);
      for (int i = 0; i < params.heads * config.p_slices(); ++i) {
        const int head = work.head0 + i / config.p_slices();
        const int p0 = i % config.p_slices() * config.p_tile;
        heads.wait_full(shared.heads);
        auto& stage = shared.head[heads.stage];
        if (config.ragged && work.chunk.len < q) zero_rows_behind(work.chunk.len, stage);
        if (work.has_state(params)) {
          run_head<true>(work.chunk, head, p0, chunk, stage);
        } else {
          run_head<false>(work.chunk, head, p0, chunk, stage);
        }
        heads.release(shared.heads);
        heads.next();
      }
      chunks.release(shared.chunks);
      chunks.next();
    }
  }
};

template <ComputeOutConfig config, int wg = 0>
__device__ void compute(const ComputeOutParams& params, ComputeOutShared<config>& shared) {
  if constexpr (wg + 1 < config.warpgroups()) {
    if (threadIdx.x / 128 != wg) return compute<config, wg + 1>(params, shared);
  }
  Rows<config, wg>(params, shared).run();
}

}  // namespace compute_out_roles

template <ComputeOutConfig config>
__device__ void compute_out(const ComputeOutParams& params) {
  extern __shared__ __align__(1024) u8 memory[];
  static_assert(sizeof(ComputeOutShared<config>) == config.shared_bytes());
  auto& shared = *reinterpret_cast<ComputeOutShared<config>*>(memory);
  if (threadIdx.x == 0) {
    shared.chunks.init(4 * config.warpgroups());
    shared.heads.init(4 * config.warpgroups());
    fence_barrier_init();
    prefetch_map(params.x_map);
    prefetch_map(params.B_map);
    prefetch_map(params.C_map);
  }
  __syncthreads();
  wait_for_dependencies();
  if (threadIdx.x >= 128 * config.warpgroups()) {
    if constexpr (config.moves_registers()) lower_registers<24>();
    if (threadIdx.x == 128 * config.warpgroups()) compute_out_roles::load<config>(params, shared);
  } else {
    if constexpr (config.moves_registers()) raise_registers<240>();
    compute_out_roles::compute<config>(params, shared);
  }
}

}  // namespace chunkscan::cuda
