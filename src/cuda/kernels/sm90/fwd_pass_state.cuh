// fwd_pass_state: the state that enters each chunk, and the last one.
//
//   S <- decay(chunk) S + (weight_j B_j)^T x_j          weight_j = dt'_j * decay from j to the end
//
// A block owns a sequence, a head and a slice of the state (64 rows of n a warpgroup, p_tile
// columns of p), keeps it in fp32 registers and walks the sequence's chunks: nothing is exchanged
// between blocks. One warp feeds x, B and the weights through a ring of stages; the warpgroups
// weigh B on its way from shared memory to the registers of operand A (n x tokens), x is operand B.
// S is the only chain from chunk to chunk, so whatever does not need it happens while the tensor
// cores work on the chunk before.
#pragma once

#include "chunks.cuh"
#include "element.cuh"
#include "sm90/tile.cuh"

namespace chunkscan::cuda {

template <FwdPassStateConfig config>
struct FwdPassStateShared {
  static constexpr int kColumns = config.p_tile / config.width();

  struct Stage {
    alignas(1024) u16 x[kColumns][config.q][config.width()];
    alignas(1024) u16 B[config.warpgroups][config.q][64];
    alignas(16) float weight[config.q + 4];
  };
  Stage stage[config.stages];
  // The entering state on its way out, each warp's 16 rows apart from the others'.
  alignas(1024) u16 state[config.warpgroups][kColumns][64][config.width()];
  alignas(1024) Ring<config.stages> ring;
};

namespace fwd_pass_state_roles {

template <FwdPassStateConfig config>
struct Work {
  i64 sequence;  // kRuns: row
  int head, p0, n0;

  __device__ explicit Work(const FwdPassStateParams& params) {
    constexpr int kSlices = config.p_slices() * config.n_slices();
    const int slice = blockIdx.x % kSlices;
    const i64 rest = blockIdx.x / kSlices;
    head = static_cast<int>(rest % params.h);
    sequence = rest / params.h;
    p0 = slice % config.p_slices() * config.p_tile;
    n0 = slice / config.p_slices() * (64 * config.warpgroups);
  }
};

template <FwdPassStateConfig config>
__device__ void load(const FwdPassStateParams& params, FwdPassStateShared<config>& shared) {
  constexpr int q = config.q;
  using Shared = FwdPassStateShared<config>;
  constexpr u32 kTileBytes = sizeof(shared.stage[0].x) + sizeof(shared.stage[0].B);

  const Work<config> work(params);
  const int group = work.head / params.heads_per_group;
  Cursor<config.stages> cursor;
  ChunkWalk<q, config.packing> walk(params.chunking, work.sequence);
  for (; walk.chunk.len > 0; walk.next(params.chunking)) {
    const Chunk& chunk = walk.chunk;
    // A copy starts at a multiple of 16 bytes: up to 3 weights before the chunk's come along.
    const int skew = config.ragged ? static_cast<int>(chunk.begin & 3) : 0;
    const u32 weight_bytes = 4 * (config.ragged ? q + 4 : q);
    const u32 barrier = cursor.wait_empty(shared.ring, kTileBytes + weight_bytes);
    auto& stage = shared.stage[cursor.stage];
    const int token = static_cast<int>(chunk.begin), row = static_cast<int>(chunk.row);
    for (int i = 0; i < Shared::kColumns; ++i) {
      tensor_load(shared_address(stage.x[i]), params.x_map, barrier, work.p0 + i * config.width(),
                  work.head, token, row);
    }
    for (int i = 0; i < config.warpgroups; ++i) {
      tensor_load(shared_address(stage.B[i]), params.B_map, barrier, work.n0 + 64 * i, group, token,
                  row);
    }
    const i64 at = (chunk.row * params.h + work.head) * params.decay.l_pad + chunk.begin - skew;
    bulk_load(shared_address(stage.weight), params.decay.weight + at, weight_bytes, barrier);
    cursor.next();
  }
}

// Element (p, n) of a state tensor at `index`, from the registers of an accumulator.
template <FwdPassStateConfig config, class F>
__device__ void for_each_element(const Work<config>& work, F&& visit) {
  const int thread = threadIdx.x % 128, warpgroup = threadIdx.x / 128;
  const int n0 = work.n0 + 64 * warpgroup + thread / 32 * 16 + thread % 32 / 4;
  const int p0 = work.p0 + thread % 4 * 2;
#pragma unroll
  for (int i = 0; i < config.p_tile / 2; ++i) {
    const int n = n0 + (i & 2) * 4, p = p0 + i / 4 * 8 + (i & 1);
    if (n < config.n && p < config.p) visit(i, p, n);
  }
}

template <FwdPassStateConfig config>
__device__ void write(const Tensor& tensor, i64 base, const Work<config>& work, const float* S) {
  base += work.head * tensor.strides[tensor.rank - 3];
  for_each_element<config>(work, [&](int i, int p, int n) {
    store(tensor, base + p * tensor.strides[tensor.rank - 2] + n * tensor.strides[tensor.rank - 1],
          S[i]);
  });
}

// The state of 16 bits that compute_out reads, from pairs of neighbours in p. Each warp brings its
// 16 rows of n into whole rows through shared memory and writes them, 16 bytes a thread.
template <FwdPassStateConfig config>
__device__ void write_tile(u16* state, const Work<config>& work, const u32* pairs,
                           FwdPassStateShared<config>& shared) {
  constexpr int width = config.width(), to_width = width_of(config.p);
  constexpr int kVectors = width / 8;  // of 16 bytes, in a row
  const int warp = threadIdx.x % 128 / 32, lane = threadIdx.x % 32, warpgroup = threadIdx.x / 128;
#pragma unroll
  for (int c = 0; c < config.p_tile / width; ++c) {
    u16(*rows)[width] = &shared.state[warpgroup][c][16 * warp];
#pragma unroll
    for (int j = 0; j < kVectors; j += 2) {
      // Matrices: rows 0..7 and 8..15 of column tile j, the same of j + 1.
      const u32* s = pairs + c * (width / 4) + 2 * j;
      const u32 row = lane % 16, column = 16 * (j + lane / 16);
      stmatrix_x4(shared_address(rows) + swizzled<width>(row, column), s[0], s[1], s[2], s[3]);
    }
    __syncwarp();
    u8* to = reinterpret_cast<u8*>(state);
    const u8* from = reinterpret_cast<const u8*>(rows);
#pragma unroll
    for (int i = lane; i < 16 * kVectors; i += 32) {
      const int row = i / kVectors, column = i % kVectors * 8;
      const int n = work.n0 + 64 * warpgroup + 16 * warp + row, p = work.p0 + c * width + column;
      if (config.p_pad() > state_cols(config.p) && p >= state_cols(config.p)) continue;
      const i64 at = i64{p / to_width} * (config.n_pad() * 2 * to_width) +
                     swizzled<to_width>(n, p % to_width * 2);
      *reinterpret_cast<uint4*>(to + at) =
          *reinterpret_cast<const uint4*>(from + swizzled<width>(row, 2 * column));
    }
    __syncwarp();
  }
}

// x rows behind the chunk's tokens belong to another sequence: 0 times their NaN would be NaN.
template <FwdPassStateConfig config>
__device__ void zero_rows_behind(int len, typename FwdPassStateShared<config>::Stage& stage) {
  constexpr int kWords = config.width() / 2;
  for (int c = 0; c < config.p_tile / config.width(); ++c) {
    u32* words = reinterpret_cast<u32*>(stage.x[c]);
    for (int i = len * kWords + threadIdx.x; i < config.q * kWords; i += 128 * config.warpgroups) {
      words[i] = 0;
    }
  }
  fence_async();
  barrier_sync(1, 128 * config.warpgroups);
}

// weight * b for two neighbouring tokens. In bf16 the weight comes split in two, and the sum of
// both products is rounded once: half the instructions of the way through fp32.
template <Element e>
__device__ inline u32 weigh(u32 b, float weight0, float weight1) {
  if constexpr (e == Element::kBF16) {
    const u32 w0 = __float_as_uint(weight0), w1 = __float_as_uint(weight1);
    return fma_bf16x2(b, __byte_perm(w0, w1, 0x5410), mul_bf16x2(b, __byte_perm(w0, w1, 0x7632)));
  } else {
    const float2 two = unpack<e>(b);
    return pack<e>(two.x * weight0, two.y * weight1);
  }
}

// Operand A of S += A x: n x tokens, weight_j B_j, 0 behind the chunk's tokens.
template <FwdPassStateConfig config>
__device__ void weigh_B(u32 (&A)[config.q / 16][4], const Chunk& chunk,
                        const typename FwdPassStateShared<config>::Stage& stage) {
  const int warp = threadIdx.x % 128 / 32, lane = threadIdx.x % 32;
  const float* weight = stage.weight + (config.ragged ? chunk.begin & 3 : 0);
  const u32 B = shared_address(stage.B[threadIdx.x / 128]);
#pragma unroll
  for (int k = 0; k < config.q; k += 16) {
    // Matrices: n 0..7 and 8..15 of tokens k..k+7, the same of tokens k+8..k+15.
    const u32 row = k + lane % 8 + lane / 16 * 8, column = 2 * (16 * warp + lane / 8 % 2 * 8);
    ldmatrix_x4_trans(A[k / 16], B + swizzled<64>(row, column));
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int t = k + i / 2 * 8 + lane % 4 * 2;
      A[k / 16][i] = weigh<config.io>(A[k / 16][i], weight[t], weight[t + 1]);
    }
  }
  if (chunk.len < config.q) {
#pragma unroll
    for (int k = 0; k < config.q; k += 16) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int t = k + i / 2 * 8 + lane % 4 * 2;
        if (t >= chunk.len) A[k / 16][i] = 0;
        if (t + 1 >= chunk.len) A[k / 16][i] &= 0xffffu;
      }
    }
  }
}

template <FwdPassStateConfig config>
struct Walker {
  static constexpr int q = config.q;
  static constexpr int kAccumulators = config.p_tile / 2;
  static constexpr i64 kTileElements = state_elements(config.p, config.n);
  static constexpr bool kMayWriteMore = config.packing != Packing::kRuns;  // than final_states
  static_assert(config.packing == Packing::kNone || config.ragged);

  const FwdPassStateParams& params;
  FwdPassStateShared<config>& shared;
  const Work<config> work;
  Cursor<config.stages> cursor;  // of the chunk at hand
  ChunkWalk<q, config.packing> walk;
  i64 slot;         // of the chunk
  float decay;      // over it
  i64 rows_before;  // of chunk_states, the sequence's
  double log_decay = 0.0;
  float S[kAccumulators];

  __device__ Walker(const FwdPassStateParams& params, FwdPassStateShared<config>& shared)
      : params(params), shared(shared), work(params), walk(params.chunking, work.sequence) {
    slot = first_slot<q, config.packing>(params.chunking, work.sequence);
    decay = walk.chunk.len > 0 ? decay_over(walk.chunk, slot) : 1.0f;
    rows_before = kMayWriteMore && params.chunk_states.data
                      ? chunk_states_before<config.packing>(params.chunking, work.sequence)
                      : 0;
#pragma unroll
    for (int i = 0; i < kAccumulators; ++i) S[i] = 0.0f;
    if (const Tensor& initial = params.initial_states; initial.data) {
      for_each_element<config>(work, [&](int i, int p, int n) {
        S[i] = cuda::load(initial, work.sequence * initial.strides[0] +
                                       work.head * initial.strides[1] + p * initial.strides[2] +
                                       n * initial.strides[3]);
      });
    }
  }

  __device__ void run() {
    u32 even[q / 16][4], odd[q / 16][4];  // tensor cores read one while the other is made
    if (walk.chunk.len > 0) arrive(even, walk.chunk, cursor);
    while (walk.chunk.len > 0) {
      step(even, odd);
      if (walk.chunk.len == 0) break;
      step(odd, even);
    }
    if (params.final_states.data) {
      write<config>(params.final_states, work.sequence * params.final_states.strides[0], work, S);
    }
    if (config.packing == Packing::kOffsets && params.chunk_states.data) {
      const Tensor& states = params.chunk_states;
#pragma unroll
      for (int i = 0; i < kAccumulators; ++i) S[i] = 0.0f;
      for_each_chunk_states_row_behind<config.packing>(
          params.chunking, work.sequence,
          [&](i64 row) { write<config>(states, row * states.strides[1], work, S); });
    }
    if (kMayWriteMore && params.log_decay.data && threadIdx.x == 0 && work.p0 == 0 &&
        work.n0 == 0) {
      store(params.log_decay,
            work.sequence * params.log_decay.strides[0] + work.head * params.log_decay.strides[1],
            static_cast<float>(log_decay));
    }
  }

  __device__ float decay_over(const Chunk& chunk, i64 slot) const {
    return chunk_decay<config.packing>(
        *chunk_decay_at<config.packing>(params.decay, chunk, slot, params.h, work.head));
  }

  // Waits for a chunk's tiles and weighs its B.
  __device__ void arrive(u32 (&A)[q / 16][4], const Chunk& tokens,
                         const Cursor<config.stages>& at) {
    at.wait_full(shared.ring);
    auto& stage = shared.stage[at.stage];
    if (config.ragged && tokens.len < q) zero_rows_behind<config>(tokens.len, stage);
    weigh_B<config>(A, tokens, stage);
  }

  // One chunk, whose weighted B is A; the next one's goes to A_next.
  __device__ void step(u32 (&A)[q / 16][4], u32 (&A_next)[q / 16][4]) {
    if (starts_empty<config.packing>(walk.chunk)) {
#pragma unroll
      for (int i = 0; i < kAccumulators; ++i) S[i] = 0.0f;
    }
    u32 entering[kAccumulators / 2];
#pragma unroll
    for (int i = 0; i < kAccumulators; i += 2) {
      entering[i / 2] = pack<config.io>(S[i], S[i + 1]);
      S[i] *= decay;
      S[i + 1] *= decay;
    }
    const u32 x = shared_address(shared.stage[cursor.stage].x);
    wgmma_fence();
#pragma unroll
    for (int k = 0; k < q; k += 16) {
      product<config.io, config.p_tile, config.width(), q>(S, A[k / 16], x, k, 1);
    }
    wgmma_commit();

    // The tensor cores work: everything that does not need the new S.
    auto next = walk;
    next.next(params.chunking);
    if (next.chunk.len > 0) decay = decay_over(next.chunk, slot + 1);
    if (kMayWriteMore && params.log_decay.data) {
      log_decay += params.decay.chunk_log[slot * params.h + work.head];
    }
    if (has_state<config.packing>(walk.chunk, params.initial_states.data)) {
      const i64 at = state_slot<q, config.packing>(params.chunking, walk.chunk, slot);
      write_tile<config>(params.states + (at * params.h + work.head) * kTileElements, work,
                         entering, shared);
    }
    Cursor<config.stages> next_cursor = cursor;
    next_cursor.next();
    if (next.chunk.len > 0) arrive(A_next, next.chunk, next_cursor);

    wgmma_wait<0>();
    hold(S);
    hold(A);
    cursor.release(shared.ring);
    if (kMayWriteMore && params.chunk_states.data) {
      const i64* strides = params.chunk_states.strides;
      const i64 row = walk.chunk_states_row(params.chunking, rows_before);
      if (row >= 0) {
        write<config>(params.chunk_states, walk.chunk.row * strides[0] + row * strides[1], work, S);
      }
    }
    walk = next;
    cursor = next_cursor;
    ++slot;
  }
};

}  // namespace fwd_pass_state_roles

template <FwdPassStateConfig config>
__device__ void fwd_pass_state(const FwdPassStateParams& params) {
  extern __shared__ __align__(1024) u8 memory[];
  static_assert(sizeof(FwdPassStateShared<config>) == config.shared_bytes());
  auto& shared = *reinterpret_cast<FwdPassStateShared<config>*>(memory);
  if (threadIdx.x == 0) {
    shared.ring.init(4 * config.warpgroups);
    fence_barrier_init();
    prefetch_map(params.x_map);
    prefetch_map(params.B_map);
  }
  __syncthreads();
  launch_dependents();
  wait_for_dependencies();
  if (threadIdx.x >= 128 * config.warpgroups) {
    if (threadIdx.x % 32 == 0) fwd_pass_state_roles::load<config>(params, shared);
  } else {
    fwd_pass_state_roles::Walker<config>(params, shared).run();
  }
}

}  // namespace chunkscan::cuda
