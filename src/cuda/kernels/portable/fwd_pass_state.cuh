// fwd_pass_state: the state that enters each chunk, and the last one.
//
//   S <- decay(chunk) S + (weight_j x_j)^T B_j          weight_j = dt'_j * decay from j to the end
//
// A block owns a sequence, a head and a slice of the state (p_tile of p x n_tile of n), keeps it in
// fp32 accumulators and walks the sequence's chunks: nothing is exchanged between blocks. x, B and
// the weights come a few tokens at a time through a ring of stages; x is weighed on its way from
// shared memory to the registers of operand A (p x tokens), B is operand B. The accumulators leave
// as the fragments that compute_out multiplies with.
#pragma once

#include "chunks.cuh"
#include "portable/mma.cuh"
#include "portable/tile.cuh"

namespace chunkscan::cuda {

template <PortableFwdPassStateConfig config>
struct FwdPassStateShared {
  using T = TileElement<config.io>;

  struct alignas(16) Stage {
    T x[config.token_tile][config.x_stride()];
    T B[config.token_tile][config.B_stride()];
    float weight[config.token_tile];
    float decay;  // of the chunk, see chunk_decay()
  };
  Stage stage[config.stages];
};

namespace fwd_pass_state_roles {

// A chunk's tokens, token_tile at a time; chunk after chunk.
template <PortableFwdPassStateConfig config>
struct Walk : ChunkWalk<config.q, config.packing> {
  using Chunks = ChunkWalk<config.q, config.packing>;
  using Chunks::chunk;
  const Chunking& chunking;
  i64 slot;
  int begin = 0;  // of the tile, in the chunk

  __device__ Walk(const Chunking& chunking, i64 sequence)
      : Chunks(chunking, sequence),
        chunking(chunking),
        slot(first_slot<config.q, config.packing>(chunking, sequence)) {}
  __device__ bool ended() const { return chunk.len == 0; }
  __device__ bool at_first_tile() const { return begin == 0; }
  __device__ bool at_last_tile() const { return begin + config.token_tile >= chunk.len; }
  __device__ void next() {
    if (!at_last_tile()) {
      begin += config.token_tile;
    } else {
      begin = 0;
      ++slot;
      Chunks::next(chunking);
    }
  }
};

template <PortableFwdPassStateConfig config>
struct Block {
  using Shared = FwdPassStateShared<config>;
  static constexpr int kTilesP = config.p_tile / (16 * config.warps_p);  // of 16, a warp
  static constexpr int kTilesN = config.n_tile / (16 * config.warps_n);
  static constexpr Math kMath = computed_math(config.io);
  static_assert(kTilesP * 16 * config.warps_p == config.p_tile);
  static_assert(kTilesN * 16 * config.warps_n == config.n_tile);
  static_assert(config.token_tile % 16 == 0 && config.stages >= 2);

  const PortableFwdPassStateParams& params;
  Shared& shared;
  i64 sequence;        // kRuns: row
  int head, p0, n0;    // of the block
  int warp_p, warp_n;  // of the warp, inside

  float S[kTilesP][2 * kTilesN][4];

  __device__ Block(const PortableFwdPassStateParams& params, Shared& shared)
      : params(params), shared(shared) {
    constexpr int kSlices = config.p_slices() * config.n_slices();
    const int slice = blockIdx.x % kSlices;
    const i64 rest = blockIdx.x / kSlices;
    head = static_cast<int>(rest % params.h);
    sequence = rest / params.h;
    p0 = slice % config.p_slices() * config.p_tile;
    n0 = slice / config.p_slices() * config.n_tile;
    const int warp = threadIdx.x / 32;
    warp_p = warp % config.warps_p * (16 * kTilesP);
    warp_n = warp / config.warps_p * (16 * kTilesN);
  }

  __device__ void load_stage(const Walk<config>& walk, typename Shared::Stage& stage) const {
    if (walk.ended()) return;
    const Chunk& chunk = walk.chunk;
    const i64 token = chunk.begin + walk.begin;
    const int left = chunk.len - walk.begin;
    const i64* xs = params.x.strides;
    const i64* Bs = params.B.strides;
    const i64 x_at = chunk.row * xs[0] + token * xs[1] + head * xs[2] + p0 * xs[3];
    const i64 B_at =
        chunk.row * Bs[0] + token * Bs[1] + head / params.heads_per_group * Bs[2] + n0 * Bs[3];
    load_tile<config.io, config.x_load, config.token_tile, config.p_tile, config.x_stride(),
              config.threads()>(stage.x[0], params.x, {x_at, xs[1], xs[3], left, config.p - p0});
    load_tile<config.io, config.B_load, config.token_tile, config.n_tile, config.B_stride(),
              config.threads()>(stage.B[0], params.B, {B_at, Bs[1], Bs[3], left, config.n - n0});
    load_values<config.threads()>(
        stage.weight,
        params.decay.weight + (chunk.row * params.h + head) * params.decay.l_pad + token,
        config.token_tile, left);
    load_values<config.threads()>(
        &stage.decay,
        chunk_decay_at<config.packing>(params.decay, chunk, walk.slot, params.h, head), 1, 1);
  }

  // visit(value, p, n) for the thread's elements of the state.
  template <class F>
  __device__ void for_each_element(F&& visit) {
    const int lane = threadIdx.x % 32;
#pragma unroll
    for (int i = 0; i < kTilesP; ++i) {
#pragma unroll
      for (int j = 0; j < 2 * kTilesN; ++j) {
#pragma unroll
        for (int k = 0; k < 4; ++k) {
          const int p = p0 + warp_p + 16 * i + lane / 4 + 8 * (k / 2);
          const int n = n0 + warp_n + 8 * j + lane % 4 * 2 + k % 2;
          if (p < config.p && n < config.n) visit(S[i][j][k], p, n);
        }
      }
    }
  }

  __device__ void set_zero() {
#pragma unroll
    for (int i = 0; i < kTilesP; ++i) {
#pragma unroll
      for (int j = 0; j < 2 * kTilesN; ++j) {
#pragma unroll
        for (int k = 0; k < 4; ++k) S[i][j][k] = 0.0f;
      }
    }
  }

  __device__ void set_initial() {
    set_zero();
    const Tensor& initial = params.initial_states;
    if (initial.data == nullptr) return;
    const i64 base = sequence * initial.strides[0] + head * initial.strides[1];
    for_each_element([&](float& value, int p, int n) {
      value = load(initial, base + p * initial.strides[2] + n * initial.strides[3]);
    });
  }

  __device__ void write(const Tensor& tensor, i64 base) {
    base += head * tensor.strides[tensor.rank - 3];
    const i64 p_stride = tensor.strides[tensor.rank - 2],
              n_stride = tensor.strides[tensor.rank - 1];
    for_each_element([&](float value, int p, int n) {
      store(tensor, base + p * p_stride + n * n_stride, value);
    });
  }

  // For compute_out.
  __device__ void write_entering(i64 slot) const {
    constexpr int kBlocksP = round_up(config.p, 16) / 16, kBlocksN = round_up(config.n, 16) / 16;
    constexpr int kBytes = 256 * state_element_bytes(config.io);
    u8* tile =
        params.states + (slot * params.h + head) * state_bytes(config.io, config.p, config.n);
#pragma unroll
    for (int i = 0; i < kTilesP; ++i) {
#pragma unroll
      for (int k = 0; k < kTilesN; ++k) {
        const int block_p = (p0 + warp_p) / 16 + i, block_n = (n0 + warp_n) / 16 + k;
        if (block_p < kBlocksP && block_n < kBlocksN) {
          store_state<config.io>(tile + (block_p * kBlocksN + block_n) * kBytes, S[i][2 * k],
                                 S[i][2 * k + 1]);
        }
      }
    }
  }

  __device__ void decay_state(float decay) {
#pragma unroll
    for (int i = 0; i < kTilesP; ++i) {
#pragma unroll
      for (int j = 0; j < 2 * kTilesN; ++j) {
#pragma unroll
        for (int k = 0; k < 4; ++k) S[i][j][k] *= decay;
      }
    }
  }

  // S += (weight x)^T B
  __device__ void multiply(const typename Shared::Stage& stage) {
    const int t = threadIdx.x % 4;
#pragma unroll
    for (int token = 0; token < config.token_tile; token += 16) {
      const float2 weight[2] = {{stage.weight[token + 2 * t], stage.weight[token + 2 * t + 1]},
                                {stage.weight[token + 2 * t + 8], stage.weight[token + 2 * t + 9]}};
      FragmentA<kMath> A[kTilesP];
#pragma unroll
      for (int i = 0; i < kTilesP; ++i) {
        Pair<config.io> x[4];
        load_pairs_across<config.io>(x, &stage.x[token][warp_p + 16 * i], config.x_stride());
#pragma unroll
        for (int k = 0; k < 4; ++k) {
          const float2 v = to_floats<config.io>(x[k]), w = weight[k / 2];
          A[i].set(k, {v.x * w.x, v.y * w.y}, false);
        }
      }
#pragma unroll
      for (int j = 0; j < kTilesN; ++j) {
        Pair<config.io> b[4];
        load_pairs_across<config.io>(b, &stage.B[token][warp_n + 16 * j], config.B_stride());
        FragmentB<kMath> B[2];
        set_B<kMath, config.io>(B, b);
#pragma unroll
        for (int i = 0; i < kTilesP; ++i) {
          mma<kMath>(S[i][2 * j], A[i], B[0]);
          mma<kMath>(S[i][2 * j + 1], A[i], B[1]);
        }
      }
    }
  }

  __device__ void write_log_decay(i64 end_slot) const {
    if (threadIdx.x >= 32) return;
    double sum = 0.0;
    i64 slot = first_slot<config.q, config.packing>(params.chunking, sequence) + threadIdx.x;
    for (; slot < end_slot; slot += 32) sum += params.decay.chunk_log[slot * params.h + head];
#pragma unroll
    for (int step = 16; step > 0; step /= 2) sum += __shfl_xor_sync(~0u, sum, step);
    const i64* strides = params.log_decay.strides;
    if (threadIdx.x == 0) {
      store(params.log_decay, sequence * strides[0] + head * strides[1], static_cast<float>(sum));
    }
  }

  __device__ void run() {
    Walk<config> coming(params.chunking, sequence), walk(params.chunking, sequence);
    for (int i = 0; i < config.stages - 1; ++i) {
      load_stage(coming, shared.stage[i]);
      copy_async_commit();
      if (!coming.ended()) coming.next();
    }
    set_initial();
    const bool chunk_states = config.packing != Packing::kRuns && params.chunk_states.data;
    const i64 rows_before =
        chunk_states ? chunk_states_before<config.packing>(params.chunking, sequence) : 0;

    for (int stage = 0; !walk.ended(); stage = stage + 1 == config.stages ? 0 : stage + 1) {
      const Chunk& chunk = walk.chunk;
      if (walk.at_first_tile()) {
        if (starts_empty<config.packing>(chunk)) set_zero();
        if (has_state<config.packing>(chunk, params.initial_states.data)) {
          write_entering(state_slot<config.q, config.packing>(params.chunking, chunk, walk.slot));
        }
      }
      copy_async_wait<config.stages - 2>();
      __syncthreads();
      load_stage(coming, shared.stage[stage == 0 ? config.stages - 1 : stage - 1]);
      copy_async_commit();
      if (!coming.ended()) coming.next();
      if (walk.at_first_tile()) {
        decay_state(chunk_decay<config.packing>(shared.stage[stage].decay));
      }
      multiply(shared.stage[stage]);
      if (chunk_states && walk.at_last_tile()) {
        const i64* strides = params.chunk_states.strides;
        const i64 row = walk.chunk_states_row(params.chunking, rows_before);
        if (row >= 0) write(params.chunk_states, chunk.row * strides[0] + row * strides[1]);
      }
      walk.next();
    }
    if (params.final_states.data) {
      write(params.final_states, sequence * params.final_states.strides[0]);
    }
    if constexpr (config.packing != Packing::kRuns) {
      if (params.log_decay.data && p0 == 0 && n0 == 0) write_log_decay(walk.slot);
    }
    if (config.packing == Packing::kOffsets && params.chunk_states.data) {
      set_zero();
      for_each_chunk_states_row_behind<config.packing>(params.chunking, sequence, [&](i64 row) {
        write(params.chunk_states, row * params.chunk_states.strides[1]);
      });
    }
  }
};

}  // namespace fwd_pass_state_roles

template <PortableFwdPassStateConfig config>
__device__ void fwd_pass_state(const PortableFwdPassStateParams& params) {
  extern __shared__ __align__(16) u8 memory[];
  using Shared = FwdPassStateShared<config>;
  static_assert(sizeof(Shared) == config.shared_bytes());
  launch_dependents();
  wait_for_dependencies();
  fwd_pass_state_roles::Block<config>(params, *reinterpret_cast<Shared*>(memory)).run();
}

}  // namespace chunkscan::cuda
