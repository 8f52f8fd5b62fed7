// One chunk of one slice of a head: y and the next state, from what prepare-inl.h left.
//
//   y_i   = exp(cs_i) C_i S^T + sum over j <= i of (C B^T)_ij exp(cs_i - cs_j) dt'_j x_j + D x_i
//   S'    = exp(cs_q) S + sum over j of exp(cs_q - cs_j) dt'_j x_j (outer) B_j
//
// S is kept transposed, (n, p), so that vectors run along p in every product. Per-target include
// guard, see Highway.
#if defined(CHUNKSCAN_CPU_CHUNK_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef CHUNKSCAN_CPU_CHUNK_INL_H
#undef CHUNKSCAN_CPU_CHUNK_INL_H
#else
#define CHUNKSCAN_CPU_CHUNK_INL_H
#endif

#include "cpu/call.h"
#include "cpu/rows-inl.h"
#include "cpu/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace chunkscan::HWY_NAMESPACE {

// Xdt = dt'_j x_j, Xw = exp(cs_q - cs_j) dt'_j x_j, y = D x.
HWY_NOINLINE void load_X(const CpuCall& call, const Pair& pair, std::int64_t w, const Slice& slice,
                         const WorkerScratch& worker) {
  const Problem& problem = call.problem;
  const Buffers& buffers = call.buffers;
  const CpuLayout& layout = call.layout;
  const Chunk& chunk = pair.scratch.chunk(w);
  const float* dt = pair.scratch.decay(w, slice.head_in_group, kDt);
  const float* weight = pair.scratch.decay(w, slice.head_in_group, kWeight);

  float* D = worker.rows();
  if (problem.D_per_head_dim) {
    load_row(*problem.D, buffers.D.at(slice.head, slice.begin), buffers.D.strides[1], slice.count,
             D);
  } else {
    const float value = buffers.D ? load_scalar(*problem.D, buffers.D.at(slice.head)) : 0.0f;
    for (std::int64_t k = 0; k < padded(slice.count); ++k) D[k] = value;
  }

  with_dtype(problem.x, [&](auto type) HWY_ATTR {
    for (std::int64_t j = 0; j < chunk.len; ++j) {
      const V dt_j = hn::Set(f32, dt[j]);
      const V weight_j = hn::Set(f32, weight[j]);
      const std::int64_t row = j * layout.slice;
      for_each_vector<decltype(type)>(
          buffers.x.at(pair.sequence.batch, chunk.begin + j, slice.head, slice.begin),
          buffers.x.strides[3], slice.count, [&](std::int64_t k, V x) HWY_ATTR {
            const V xdt = hn::Mul(dt_j, x);
            hn::StoreU(xdt, f32, worker.Xdt() + row + k);
            hn::StoreU(hn::Mul(weight_j, xdt), f32, worker.Xw() + row + k);
            hn::StoreU(hn::Mul(hn::LoadU(f32, D + k), x), f32, worker.y() + row + k);
          });
    }
  });
}

// M = C B^T o L for `rows` rows from i on: L_ij = exp(cs_i - cs_j) for j <= i, else 0. Both masks
// matter: before the exponential, where it could overflow, and after the product, since what lies
// above the diagonal may be anything.
template <int kRows>
HWY_INLINE void decayed_CB(const CpuLayout& layout, const float* CB, const float* high,
                           const float* low, std::int64_t i, float* M) {
  for (int r = 0; r < kRows; ++r) {
    const V high_i = hn::Set(f32, high[i + r]);
    const V low_i = hn::Set(f32, low[i + r]);
    const float* from = CB + (i + r) * layout.q16;
    float* to = M + r * layout.q16;
    std::int64_t j = 0;
    const auto product = [&]() HWY_ATTR {
      const V difference_high = hn::Sub(high_i, hn::LoadU(f32, high + j));
      const V difference_low = hn::Sub(low_i, hn::LoadU(f32, low + j));
      return hn::Mul(hn::LoadU(f32, from + j), exp2_pair(difference_high, difference_low));
    };
    for (; j + lanes() <= i + r + 1; j += lanes()) hn::StoreU(product(), f32, to + j);
    if (j <= i + r) {
      const auto causal = hn::FirstN(f32, static_cast<std::size_t>(i + r + 1 - j));
      hn::StoreU(hn::IfThenElseZero(causal, product()), f32, to + j);
    }
  }
}

// y += what the chunk's tokens and the entering state (nullptr = 0) give, before the gate.
HWY_NOINLINE void output_chunk(const CpuLayout& layout, const PairScratch& scratch, std::int64_t w,
                               const Slice& slice, const float* state,
                               const WorkerScratch& worker) {
  const float* C = scratch.C(w);
  const float* high = scratch.decay(w, slice.head_in_group, kCsHigh);
  const float* low = scratch.decay(w, slice.head_in_group, kCsLow);
  const float* decay_in = scratch.decay(w, slice.head_in_group, kDecayIn);
  float* M = worker.M();
  for_each_row_tile(scratch.chunk(w).len, [&](std::int64_t i, auto rows) HWY_ATTR {
    decayed_CB<rows>(layout, scratch.CB(w), high, low, i, M);
    for_each_column_tile(slice.count, [&](std::int64_t k, auto vecs) HWY_ATTR {
      Tile<rows, vecs> tile;
      tile.clear();
      if (state != nullptr) {
        tile.multiply(C + i * layout.n16, layout.n16, 1, state + slice.begin + k, layout.p16,
                      layout.n);
        tile.scale_rows(decay_in + i);
      }
      const float* X = worker.Xdt() + k;
      tile.multiply(M, layout.q16, 1, X, layout.slice, i);
      tile.multiply_triangle(M + i, layout.q16, X + i * layout.slice, layout.slice);
      tile.add_to(worker.y() + i * layout.slice + k, layout.slice);
    });
  });
}

// The state after the chunk, in place; `has_state` is false where the entering one is 0.
HWY_NOINLINE void state_chunk(const CpuLayout& layout, const PairScratch& scratch, std::int64_t w,
                              const Slice& slice, float* state, bool has_state,
                              const WorkerScratch& worker) {
  const std::int64_t len = scratch.chunk(w).len;
  const float decay = scratch.decay(w, slice.head_in_group, kDecayIn)[len - 1];
  for_each_row_tile(layout.n, [&](std::int64_t k, auto rows) HWY_ATTR {
    for_each_column_tile(slice.count, [&](std::int64_t c, auto vecs) HWY_ATTR {
      float* at = state + k * layout.p16 + slice.begin + c;
      Tile<rows, vecs> tile;
      if (has_state) {
        tile.load_scaled(at, layout.p16, decay);
      } else {
        tile.clear();
      }
      tile.multiply(scratch.B(w) + k, 1, layout.n16, worker.Xw() + c, layout.slice, len);
      tile.store(at, layout.p16);
    });
  });
}

// Both of the above token by token, the state of a few n at a time in registers: the sequential
// recurrence in its fastest form. Needs no C B^T.
HWY_NOINLINE void recurrence_chunk(const CpuLayout& layout, const PairScratch& scratch,
                                   std::int64_t w, const Slice& slice, float* state, bool has_state,
                                   const WorkerScratch& worker) {
  constexpr int kMost = 4;  // rows of n: 16 sums, 4 x, 4 y and the broadcasts fit 32 registers
  const float* factor = scratch.decay(w, slice.head_in_group, kFactor);
  const std::int64_t len = scratch.chunk(w).len;
  const auto walk = [&](std::int64_t k, auto rows) HWY_ATTR {
    for_each_column_tile(slice.count, [&](std::int64_t c, auto vecs) HWY_ATTR {
      float* at = state + k * layout.p16 + slice.begin + c;
      Tile<rows, vecs> S;
      if (has_state) {
        S.load_scaled(at, layout.p16, 1.0f);
      } else {
        S.clear();
      }
      for (std::int64_t t = 0; t < len; ++t) {
        S.step(factor[t], scratch.B(w) + t * layout.n16 + k, scratch.C(w) + t * layout.n16 + k,
               worker.Xdt() + t * layout.slice + c, worker.y() + t * layout.slice + c);
      }
      S.store(at, layout.p16);
    });
  };
  std::int64_t k = 0;
  for (; k + kMost <= layout.n; k += kMost) walk(k, Constant<kMost>());
  if (k < layout.n) {
    with_constant<kMost - 1>(layout.n - k, [&](auto rows) HWY_ATTR { walk(k, rows); });
  }
}

// y * silu(z), rounded to y's dtype.
HWY_NOINLINE void store_y(const CpuCall& call, const Pair& pair, std::int64_t w, const Slice& slice,
                          const WorkerScratch& worker) {
  const Problem& problem = call.problem;
  const Buffers& buffers = call.buffers;
  const Chunk& chunk = pair.scratch.chunk(w);
  float* z = worker.rows();
  for (std::int64_t i = 0; i < chunk.len; ++i) {
    float* row = worker.y() + i * call.layout.slice;
    if (buffers.z) {
      load_row(*problem.z,
               buffers.z.at(pair.sequence.batch, chunk.begin + i, slice.head, slice.begin),
               buffers.z.strides[3], slice.count, z);
      for (std::int64_t k = 0; k < slice.count; k += lanes()) {
        hn::StoreU(hn::Mul(hn::LoadU(f32, row + k), silu(hn::LoadU(f32, z + k))), f32, row + k);
      }
    }
    store_row(problem.y, buffers.y.at(pair.sequence.batch, chunk.begin + i, slice.head, slice.begin),
              buffers.y.strides[3], slice.count, row);
  }
}

}  // namespace chunkscan::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // per-target guard
