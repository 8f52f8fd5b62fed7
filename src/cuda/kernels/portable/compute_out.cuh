// compute_out: y from the chunk's own tokens and the state that enters it.
//
//   y_i = decay(i) C_i S  +  sum over j <= i of (C_i B_j) decay(j..i) dt'_j x_j  +  D x_i
//   y_i = y_i silu(z_i)
//
// A block takes rows of one chunk and some heads of one group. C B^T is computed once and stays in
// the accumulators, 16 or 32 rows of i a warp; then head after head (and p_tile after p_tile of p)
// arrives through a ring of stages: the entering state, x, cs. C S comes first and its rows are
// scaled; C B^T, weighed on its way to the registers of operand A, times x adds to them. Tiles
// above the diagonal are never computed. Where n is too large for shared memory, C, B and S come in
// slices of n_tile.
#pragma once

#include "chunks.cuh"
#include "portable/mma.cuh"
#include "portable/tile.cuh"

namespace chunkscan::cuda {

template <PortableComputeOutConfig config>
struct ComputeOutShared {
  using T = TileElement<config.io>;
  static constexpr bool kKeepsC = config.n_slices() == 1;

  struct alignas(16) Head {
    u8 state[config.p_tile / 16][config.n_tile / 16][256 * state_element_bytes(config.io)];
    T x[config.q][config.x_stride()];
    CsDt cs_dt[config.q];
    float cs_low[config.q];  // where products are fp32
  };
  union alignas(16) Stage {
    T B[config.q][config.bc_stride()];
    Head head;
  };
  Stage stage[config.stages];
  T C[kKeepsC ? 1 : config.stages][config.rows()][config.bc_stride()];
};

namespace compute_out_roles {

// Four words of each of four neighbouring lanes change places: word i of lane t and word t of lane
// i.
__device__ inline void transpose(u32 (&w)[4]) {
  const int t = threadIdx.x % 4;
#pragma unroll
  for (int i = 0; i < 4; i += 2) {
    const u32 other = __shfl_xor_sync(~0u, t % 2 ? w[i] : w[i + 1], 1);
    (t % 2 ? w[i] : w[i + 1]) = other;
  }
#pragma unroll
  for (int i = 0; i < 2; ++i) {
    const u32 other = __shfl_xor_sync(~0u, t / 2 ? w[i] : w[i + 2], 2);
    (t / 2 ? w[i] : w[i + 2]) = other;
  }
}

// Whether 16 bytes at a time may be moved where p is a multiple of 8.
__device__ inline bool has_vectors(const Tensor& tensor, Element io) {
  const i64* strides = tensor.strides;
  const u64 bytes = reinterpret_cast<u64>(tensor.data) |
                    static_cast<u64>(2 * (strides[0] | strides[1] | strides[2]));
  return io != Element::kF32 && tensor.dtype == io && strides[3] == 1 && bytes % 16 == 0;
}

__device__ inline float silu(float z) { return z / (1.0f + __expf(-z)); }

template <PortableComputeOutConfig config>
struct Block {
  using Shared = ComputeOutShared<config>;
  static constexpr int q = config.q;
  static constexpr int kTiles = config.row_tiles;
  static constexpr Math kInput = input_math(config.io), kComputed = computed_math(config.io);
  static_assert(config.row_blocks() * config.rows() == q);
  static_assert(config.n_tile % 16 == 0 && config.p_tile % 16 == 0 && config.stages >= 2);

  const PortableComputeOutParams& params;
  Shared& shared;
  bool y_vectors, z_vectors;

  // Of the turn.
  Chunk chunk;
  i64 state;  // slot of the one that enters
  int head0, heads, group;
  int row0;         // of the block, in the chunk
  int warp_row;     // of the warp, in the chunk
  int state_steps;  // stages with a slice of C S, a head and slice of p; 1 where no state enters

  float CB[kTiles][q / 8][4];

  __device__ Block(const PortableComputeOutParams& params, Shared& shared)
      : params(params), shared(shared) {
    y_vectors = has_vectors(params.y, config.io);
    z_vectors = config.z && has_vectors(params.z, config.io);
  }

  __device__ int splits() const {
    return (params.heads_per_group + params.heads - 1) / params.heads;
  }
  __device__ i64 turns() const {
    return slots<q, config.packing>(params.chunking) * (params.h / params.heads_per_group) *
           splits() * config.row_blocks();
  }
  __device__ void take(i64 turn) {
    const int row_block = turn % config.row_blocks();
    turn /= config.row_blocks();
    const int split = turn % splits();
    turn /= splits();
    const int groups = params.h / params.heads_per_group;
    group = turn % groups;
    const i64 slot = turn / groups;
    chunk = chunk_at<q, config.packing>(params.chunking, slot);
    state = state_slot<q, config.packing>(params.chunking, chunk, slot);
    head0 = group * params.heads_per_group + split * params.heads;
    heads = params.heads_per_group - split * params.heads;
    if (heads > params.heads) heads = params.heads;
    row0 = row_block * config.rows();
    // Later rows have more to do. Warps i and i + 4 share a part of the multiprocessor: pair the
    // least with the most.
    const int warp = threadIdx.x / 32, half = config.warps / 2;
    const int place =
        config.warps % 8 != 0 || warp < half ? warp : config.warps - 1 - (warp - half);
    warp_row = row0 + place * (16 * kTiles);
    state_steps = has_state() ? config.n_slices() : 1;
  }
  __device__ bool has_state() const {
    return cuda::has_state<config.packing>(chunk, params.has_initial_states);
  }
  __device__ int steps() const {
    return config.n_slices() + heads * config.p_slices() * state_steps;
  }
  __device__ int tokens() const { return row0 + config.rows(); }  // that the block looks at

  __device__ TileElement<config.io>* C_tile(int stage) const {
    return shared.C[Shared::kKeepsC ? 0 : stage][0];
  }

  __device__ void load_C(int n0, TileElement<config.io>* tile) const {
    const i64* s = params.C.strides;
    const i64 at = chunk.row * s[0] + (chunk.begin + row0) * s[1] + group * s[2] + n0 * s[3];
    load_tile<config.io, config.C_load, config.rows(), config.n_tile, config.bc_stride(),
              config.threads()>(tile, params.C, {at, s[1], s[3], chunk.len - row0, config.n - n0});
  }

  __device__ void load_B(int n0, TileElement<config.io>* tile) const {
    const i64* s = params.B.strides;
    const i64 at = chunk.row * s[0] + chunk.begin * s[1] + group * s[2] + n0 * s[3];
    load_tile<config.io, config.B_load, q, config.n_tile, config.bc_stride(), config.threads()>(
        tile, params.B, {at, s[1], s[3], min(chunk.len, tokens()), config.n - n0});
  }

  __device__ void load_state_slice(int head, int p0, int n0, typename Shared::Head& to) const {
    constexpr int kBlocksP = round_up(config.p, 16) / 16, kBlocksN = round_up(config.n, 16) / 16;
    constexpr int kVectors = 16 * state_element_bytes(config.io);  // of a fragment
    const u8* from =
        params.states + (state * params.h + head) * state_bytes(config.io, config.p, config.n);
#pragma unroll 4
    for (int i = threadIdx.x; i < sizeof(to.state) / 16; i += config.threads()) {
      const int fragment = i / kVectors;
      const int block_p = p0 / 16 + fragment / (config.n_tile / 16);
      const int block_n = n0 / 16 + fragment % (config.n_tile / 16);
      const bool exists = block_p < kBlocksP && block_n < kBlocksN;
      const i64 at = exists ? i64{block_p * kBlocksN + block_n} * kVectors + i % kVectors : 0;
      copy_async<16>(shared_address(to.state) + 16 * i, from + 16 * at, exists ? 16 : 0);
    }
  }

  __device__ void load_x(int head, int p0, typename Shared::Head& to) const {
    const i64* s = params.x.strides;
    const i64 at = chunk.row * s[0] + chunk.begin * s[1] + head * s[2] + p0 * s[3];
    const int valid = min(chunk.len, tokens());
    load_tile<config.io, config.x_load, q, config.p_tile, config.x_stride(), config.threads()>(
        to.x[0], params.x, {at, s[1], s[3], valid, config.p - p0});
    const i64 decay_at = (chunk.row * params.h + head) * params.decay.l_pad + chunk.begin;
    load_values<config.threads()>(to.cs_dt, params.decay.cs_dt + decay_at, q, valid);
    if constexpr (config.compensated()) {
      load_values<config.threads()>(to.cs_low, params.decay.cs_low + decay_at, q, valid);
    }
  }

  // What step `step` of the turn works on: slices of C and B, then for each head and slice of p
  // slices of C and S, the last one with x.
  __device__ void load_step(int step, int stage) const {
    auto& to = shared.stage[stage];
    if (step < config.n_slices()) {
      load_C(step * config.n_tile, C_tile(stage));
      load_B(step * config.n_tile, to.B[0]);
    } else if (step < steps()) {
      step -= config.n_slices();
      const int n_slice = step % state_steps, part = step / state_steps;
      const int head = head0 + part / config.p_slices();
      const int p0 = part % config.p_slices() * config.p_tile, n0 = n_slice * config.n_tile;
      if (has_state()) {
        if (!Shared::kKeepsC) load_C(n0, C_tile(stage));
        load_state_slice(head, p0, n0, to.head);
      }
      if (n_slice == state_steps - 1) load_x(head, p0, to.head);
    }
    copy_async_commit();
  }

  // The stage of step `step`, its tiles in place; starts the copies of a later one.
  __device__ int arrive(int step) const {
    copy_async_wait<config.stages - 2>();
    __syncthreads();
    load_step(step + config.stages - 1, (step + config.stages - 1) % config.stages);
    return step % config.stages;
  }

  __device__ void multiply_C_B(int stage) {
    const auto* C = C_tile(stage) + (warp_row - row0) * config.bc_stride();
    const auto* B = shared.stage[stage].B[0];
#pragma unroll 1
    for (int n = 0; n < config.n_tile; n += 16) {
      FragmentA<kInput> A[kTiles];
#pragma unroll
      for (int i = 0; i < kTiles; ++i) {
        Pair<config.io> c[4];
        load_pairs<config.io>(c, C + 16 * i * config.bc_stride() + n, config.bc_stride());
        set_A<kInput, config.io>(A[i], c);
      }
#pragma unroll
      for (int j = 0; j < q; j += 16) {
        if (j < warp_row + 16 * kTiles) {
          Pair<config.io> b[4];
          load_pairs<config.io>(b, B + j * config.bc_stride() + n, config.bc_stride());
          FragmentB<kInput> fragments[2];
          set_B<kInput, config.io>(fragments, b);
#pragma unroll
          for (int i = 0; i < kTiles; ++i) {
            mma<kInput>(CB[i][j / 8], A[i], fragments[0]);
            mma<kInput>(CB[i][j / 8 + 1], A[i], fragments[1]);
          }
        }
      }
    }
  }

  using Out = float[kTiles][config.p_tile / 8][4];

  __device__ void multiply_C_S(Out& Y, int stage) const {
    const auto* C = C_tile(stage) + (warp_row - row0) * config.bc_stride();
    const auto& state = shared.stage[stage].head.state;
#pragma unroll 2
    for (int n = 0; n < config.n_tile; n += 16) {
      FragmentA<kComputed> A[kTiles];
#pragma unroll
      for (int i = 0; i < kTiles; ++i) {
        Pair<config.io> c[4];
        load_pairs<config.io>(c, C + 16 * i * config.bc_stride() + n, config.bc_stride());
        set_A<kComputed, config.io>(A[i], c);
      }
#pragma unroll
      for (int p = 0; p < config.p_tile; p += 16) {
        FragmentB<kComputed> S[2];
        load_state<config.io, kComputed>(S, state[p / 16][n / 16]);
#pragma unroll
        for (int i = 0; i < kTiles; ++i) {
          mma<kComputed>(Y[i][p / 8], A[i], S[0]);
          mma<kComputed>(Y[i][p / 8 + 1], A[i], S[1]);
        }
      }
    }
  }

  // 2^(high + low)
  static __device__ float decay_of(float high, float low) {
    if constexpr (config.compensated()) return exp2f(high + low);
    return exp2_fast(high);
  }
  static __device__ float low_at(const typename Shared::Head& head, int token) {
    if constexpr (config.compensated()) return head.cs_low[token];
    return 0.0f;
  }

  // The two rows of a tile that a lane holds, `below` = 0 and 1.
  __device__ int row_of(int tile, int below) const {
    return warp_row + 16 * tile + threadIdx.x % 32 / 4 + 8 * below;
  }

  __device__ void scale_rows(Out& Y, const typename Shared::Head& head) const {
#pragma unroll
    for (int i = 0; i < kTiles; ++i) {
#pragma unroll
      for (int below = 0; below < 2; ++below) {
        const int row = row_of(i, below);
        const float decay = decay_of(head.cs_dt[row].cs, low_at(head, row));
#pragma unroll
        for (int j = 0; j < config.p_tile / 8; ++j) {
          Y[i][j][2 * below] *= decay;
          Y[i][j][2 * below + 1] *= decay;
        }
      }
    }
  }

  // (C B^T)_ij decay(j..i) dt'_j for j <= i, else 0, as operand A for tokens k..k+15.
  __device__ void weigh(FragmentA<kComputed>& A, int tile, int k,
                        const typename Shared::Head& head) const {
#pragma unroll
    for (int half = 0; half < 2; ++half) {
      const int j = k + 8 * half + threadIdx.x % 4 * 2;
      const CsDt a = head.cs_dt[j], b = head.cs_dt[j + 1];
      const float a_low = low_at(head, j), b_low = low_at(head, j + 1);
      const float(&cb)[4] = CB[tile][k / 8 + half];
#pragma unroll
      for (int below = 0; below < 2; ++below) {
        const int row = row_of(tile, below);
        const float cs = head.cs_dt[row].cs, low = low_at(head, row);
        float2 m = {cb[2 * below] * (decay_of(cs - a.cs, low - a_low) * a.dt),
                    cb[2 * below + 1] * (decay_of(cs - b.cs, low - b_low) * b.dt)};
        if (k + 15 > warp_row + 16 * tile) {
          if (j > row) m.x = 0.0f;
          if (j + 1 > row) m.y = 0.0f;
        }
        A.set(2 * half + below, m, false);
      }
    }
  }

  __device__ void multiply_CB_x(Out& Y, const typename Shared::Head& head) const {
#pragma unroll
    for (int k = 0; k < q; k += 16) {
      if (k < warp_row + 16 * kTiles) {
        FragmentA<kComputed> A[kTiles];
#pragma unroll
        for (int i = 0; i < kTiles; ++i) weigh(A[i], i, k, head);
#pragma unroll
        for (int p = 0; p < config.p_tile; p += 16) {
          Pair<config.io> x[4];
          load_pairs_across<config.io>(x, &head.x[k][p], config.x_stride());
          FragmentB<kComputed> X[2];
          set_B<kComputed, config.io>(X, x);
#pragma unroll
          for (int i = 0; i < kTiles; ++i) {
            mma<kComputed>(Y[i][p / 8], A[i], X[0]);
            mma<kComputed>(Y[i][p / 8 + 1], A[i], X[1]);
          }
        }
      }
    }
  }

  __device__ void add_D_x(Out& Y, int head_index, int p0, const typename Shared::Head& head) const {
    const i64 D_at = head_index * params.D.strides[0];
    float2 D = {};
    if (!params.D_per_head_dim) D.x = D.y = load(params.D, D_at);
#pragma unroll
    for (int j = 0; j < config.p_tile / 8; ++j) {
      const int p = 8 * j + threadIdx.x % 4 * 2;
      if (params.D_per_head_dim) {
        D.x = p0 + p < config.p ? load(params.D, D_at + (p0 + p) * params.D.strides[1]) : 0.0f;
        D.y = p0 + p + 1 < config.p ? load(params.D, D_at + (p0 + p + 1) * params.D.strides[1])
                                    : 0.0f;
      }
#pragma unroll
      for (int i = 0; i < kTiles; ++i) {
#pragma unroll
        for (int below = 0; below < 2; ++below) {
          const float2 x = to_floats<config.io>(
              *reinterpret_cast<const Pair<config.io>*>(&head.x[row_of(i, below)][p]));
          Y[i][j][2 * below] += D.x * x.x;
          Y[i][j][2 * below + 1] += D.y * x.y;
        }
      }
    }
  }

  // Columns 8 j..8 j + 31 of a row, as 16 bytes a lane (lane t the columns from 8 (j + t)) and as
  // pairs of the accumulators.
  static constexpr int kVectorTiles = 4;

  __device__ void gate(Out& Y, int head, int p0) const {
    const i64* s = params.z.strides;
    const int t = threadIdx.x % 4;
#pragma unroll
    for (int i = 0; i < kTiles; ++i) {
#pragma unroll
      for (int below = 0; below < 2; ++below) {
        const int row = row_of(i, below);
        const i64 at = chunk.row * s[0] + (chunk.begin + row) * s[1] + head * s[2];
#pragma unroll
        for (int j0 = 0; j0 < config.p_tile / 8; j0 += kVectorTiles) {
          u32 words[4] = {};
          if (config.p % 8 == 0 && z_vectors) {
            const int p = p0 + 8 * (j0 + t);
            if (row < chunk.len && p < config.p) {
              const uint4 v = *reinterpret_cast<const uint4*>(params.z.data + 2 * (at + p));
              words[0] = v.x, words[1] = v.y, words[2] = v.z, words[3] = v.w;
            }
            transpose(words);
          }
#pragma unroll
          for (int j = j0; j < j0 + kVectorTiles && j < config.p_tile / 8; ++j) {
            const int p = p0 + 8 * j + 2 * t;
            float2 z = {};
            if (config.p % 8 == 0 && z_vectors) {
              if constexpr (config.io != Element::kF32) z = unpack<config.io>(words[j - j0]);
            } else if (row < chunk.len) {
              if (p < config.p) z.x = load(params.z, at + p * s[3]);
              if (p + 1 < config.p) z.y = load(params.z, at + (p + 1) * s[3]);
            }
            Y[i][j][2 * below] *= silu(z.x);
            Y[i][j][2 * below + 1] *= silu(z.y);
          }
        }
      }
    }
  }

  __device__ void write(const Out& Y, int head, int p0) const {
    const i64* s = params.y.strides;
    const int t = threadIdx.x % 4;
#pragma unroll
    for (int i = 0; i < kTiles; ++i) {
#pragma unroll
      for (int below = 0; below < 2; ++below) {
        const int row = row_of(i, below);
        const i64 at = chunk.row * s[0] + (chunk.begin + row) * s[1] + head * s[2];
#pragma unroll
        for (int j0 = 0; j0 < config.p_tile / 8; j0 += kVectorTiles) {
          if constexpr (config.p % 8 == 0 && config.io != Element::kF32) {
            if (y_vectors) {
              u32 words[4] = {};
#pragma unroll
              for (int j = j0; j < j0 + kVectorTiles && j < config.p_tile / 8; ++j) {
                words[j - j0] = pack<config.io>(Y[i][j][2 * below], Y[i][j][2 * below + 1]);
              }
              transpose(words);
              const int p = p0 + 8 * (j0 + t);
              if (row < chunk.len && j0 + t < config.p_tile / 8 && p < config.p) {
                *reinterpret_cast<uint4*>(params.y.data + 2 * (at + p)) = {words[0], words[1],
                                                                           words[2], words[3]};
              }
              continue;
            }
          }
#pragma unroll
          for (int j = j0; j < j0 + kVectorTiles && j < config.p_tile / 8; ++j) {
            const int p = p0 + 8 * j + 2 * t;
            if (row >= chunk.len) continue;
            if (p < config.p) store(params.y, at + p * s[3], Y[i][j][2 * below]);
            if (p + 1 < config.p) store(params.y, at + (p + 1) * s[3], Y[i][j][2 * below + 1]);
          }
        }
      }
    }
  }

  __device__ void run_turn() {
    __syncthreads();  // the last turn's stages are free
#pragma unroll
    for (int step = 0; step < config.stages - 1; ++step) load_step(step, step);
#pragma unroll
    for (int i = 0; i < kTiles; ++i) {
#pragma unroll
      for (int j = 0; j < q / 8; ++j) {
#pragma unroll
        for (int k = 0; k < 4; ++k) CB[i][j][k] = 0.0f;
      }
    }
    int step = 0;
#pragma unroll 1
    for (int slice = 0; slice < config.n_slices(); ++slice) multiply_C_B(arrive(step++));
#pragma unroll 1
    for (int part = 0; part < heads * config.p_slices(); ++part) {
      const int head = head0 + part / config.p_slices();
      const int p0 = part % config.p_slices() * config.p_tile;
      int stage = arrive(step++);  // before Y takes registers
      Out Y = {};
      if (has_state()) {
        multiply_C_S(Y, stage);
#pragma unroll 1
        for (int slice = 1; slice < config.n_slices(); ++slice) {
          stage = arrive(step++);
          multiply_C_S(Y, stage);
        }
      }
      const auto& tiles = shared.stage[stage].head;
      if (has_state()) scale_rows(Y, tiles);
      multiply_CB_x(Y, tiles);
      if (params.D.data) add_D_x(Y, head, p0, tiles);
      if constexpr (config.z) gate(Y, head, p0);
      write(Y, head, p0);
    }
  }

  __device__ void run() {
    const i64 count = turns();
    for (i64 turn = blockIdx.x; turn < count; turn += gridDim.x) {
      take(turn);
      if (row0 < chunk.len) run_turn();
    }
  }
};

}  // namespace compute_out_roles

template <PortableComputeOutConfig config>
__device__ void compute_out(const PortableComputeOutParams& params) {
  extern __shared__ __align__(16) u8 memory[];
  using Shared = ComputeOutShared<config>;
  static_assert(sizeof(Shared) == config.shared_bytes());
  wait_for_dependencies();
  compute_out_roles::Block<config>(params, *reinterpret_cast<Shared*>(memory)).run();
}

}  // namespace chunkscan::cuda
