// What a chunk of a head needs around its matrix products: x in, decays, y out; and the token by
// token form. Per-target include guard, see Highway.
#if defined(CHUNKSCAN_CPU_CHUNK_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef CHUNKSCAN_CPU_CHUNK_INL_H
#undef CHUNKSCAN_CPU_CHUNK_INL_H
#else
#define CHUNKSCAN_CPU_CHUNK_INL_H
#endif

#include "cpu/call.h"
#include "cpu/range.h"
#include "cpu/rows-inl.h"
#include "cpu/tile-inl.h"
#include "cpu/tokens-inl.h"

HWY_BEFORE_NAMESPACE();
namespace chunkscan::HWY_NAMESPACE {

inline Tokens tokens_of(const Array& array, DType dtype, const Block& block, const Chunk& chunk,
                        const Slice& slice) {
  return {array,     dtype,      block.sequence.batch, chunk.begin,
          chunk.len, slice.head, slice.begin,          slice.count};
}

// X = the slice's columns of x, in fp32. Returns the largest magnitude of all the head's columns.
HWY_INLINE float load_X(const CpuCall& call, const Block& block, std::int64_t w, const Slice& slice,
                        const WorkerScratch& worker) {
  const Chunk& chunk = block.scratch.chunk(w);
  const auto load = [&](const Slice& part) {
    return load_tokens(tokens_of(call.buffers.x, call.problem.x, block, chunk, part), worker.X(),
                       call.layout.slice, worker);
  };
  float most = 0.0f;
  for (std::int64_t begin = 0; begin < call.layout.p; begin += call.layout.slice) {
    const std::int64_t count = std::min(call.layout.slice, call.layout.p - begin);
    if (begin != slice.begin) {
      most = std::max(most, load({slice.head_in_block, slice.head, begin, count}));
    }
  }
  return std::max(most, load(slice));
}

// X_j *= exp(cs_q - cs_j) dt'_j
HWY_INLINE void scale_X(const CpuLayout& layout, const BlockScratch& scratch, std::int64_t w,
                        const Slice& slice, const WorkerScratch& worker) {
  const float* weight = scratch.decay(w, slice.head_in_block, kWeight);
  const float* rest = scratch.decay(w, slice.head_in_block, kWeightRest);
  for (std::int64_t j = 0; j < scratch.chunk(w).len; ++j) {
    const V factor = hn::Set(f32, weight[j]);
    const V factor_rest = hn::Set(f32, rest[j]);
    float* row = worker.X() + j * layout.slice;
    for (std::int64_t k = 0; k < slice.count; k += lanes()) {
      hn::StoreU(hn::Mul(hn::Mul(factor, hn::LoadU(f32, row + k)), factor_rest), f32, row + k);
    }
  }
}

// The skip connection's factors for the slice; zeros without one.
HWY_INLINE void load_D(const CpuCall& call, const Slice& slice, float* to) {
  const Array& D = call.buffers.D;
  if (call.problem.D_per_head_dim) {
    load_row(*call.problem.D, D.at(slice.head, slice.begin), D.strides[1], slice.count, to);
    return;
  }
  const float value = D ? load_scalar(*call.problem.D, D.at(slice.head)) : 0.0f;
  for (std::int64_t k = 0; k < slice.count; k += lanes()) {
    hn::StoreU(hn::Set(f32, value), f32, to + k);
  }
}

// Rows [i, i + rows) of y = (sum + D x) silu(z), rounded to y's dtype. `sum` holds `rows` rows.
HWY_NOINLINE void finish_rows(const CpuCall& call, const Block& block, std::int64_t w,
                              const Slice& slice, std::int64_t i, std::int64_t rows, float* sum,
                              const WorkerScratch& worker) {
  const Problem& problem = call.problem;
  const Buffers& buffers = call.buffers;
  const CpuLayout& layout = call.layout;
  const Chunk part{block.scratch.chunk(w).begin + i, rows};
  if (buffers.z) {
    load_tokens(tokens_of(buffers.z, *problem.z, block, part, slice), worker.z(), layout.slice,
                worker);
  }
  for (std::int64_t r = 0; r < rows && buffers.D; ++r) {
    float* row = sum + r * layout.slice;
    const float* x = worker.X() + (i + r) * layout.slice;
    for (std::int64_t k = 0; k < slice.count; k += lanes()) {
      const V skip = hn::Mul(hn::LoadU(f32, worker.D() + k), hn::LoadU(f32, x + k));
      hn::StoreU(hn::Add(hn::LoadU(f32, row + k), skip), f32, row + k);
    }
  }
  for (std::int64_t r = 0; r < rows && buffers.z; ++r) {
    float* row = sum + r * layout.slice;
    const float* z = worker.z() + r * layout.slice;
    for (std::int64_t k = 0; k < slice.count; k += lanes()) {
      hn::StoreU(gate(hn::LoadU(f32, row + k), hn::LoadU(f32, z + k)), f32, row + k);
    }
  }
  store_tokens(tokens_of(buffers.y, problem.y, block, part, slice), sum, layout.slice,
               call.stream_y, worker);
}

// Where tokens are contiguous, cache lines hold those of several row tiles.
inline bool finishes_at_once(const CpuCall& call) {
  return along_tokens(call.buffers.y) || along_tokens(call.buffers.z);
}

// M = C B^T o L o dt' for `kRows` rows from i on, as vectors: store(r, j, M[i + r][j ...]),
// up to the tile's last column.
// L_ij = exp(cs_i - cs_j) for j <= i, else 0. Both masks matter: before the exponential, where it
// could overflow, and after the product, since what lies above the diagonal may be anything.
template <int kRows, class Store>
HWY_INLINE void decayed_CB(const CpuLayout& layout, const float* CB, const float* high,
                           const float* low, const float* dt, std::int64_t i, Store&& store) {
  for (int r = 0; r < kRows; ++r) {
    const V high_i = hn::Set(f32, high[i + r]);
    const V low_i = hn::Set(f32, low[i + r]);
    const float* row = CB + (i + r) * layout.q16;
    const auto product = [&](std::int64_t j) HWY_ATTR {
      const V difference_high = hn::Sub(high_i, hn::LoadU(f32, high + j));
      const V difference_low = hn::Sub(low_i, hn::LoadU(f32, low + j));
      return times_exp2(hn::Mul(hn::LoadU(f32, row + j), hn::LoadU(f32, dt + j)), difference_high,
                        difference_low);
    };
    std::int64_t j = 0;
    for (; j + lanes() <= i + r + 1; j += lanes()) store(r, j, product(j));
    if (j <= i + r) {
      const auto causal = hn::FirstN(f32, static_cast<std::size_t>(i + r + 1 - j));
      store(r, j, hn::IfThenElseZero(causal, product(j)));
      j += lanes();
    }
    for (; j < i + kRows; j += lanes()) store(r, j, hn::Zero(f32));
  }
}

// The tokens of x that the thread will want next.
struct Ahead {
  Slice slice;
  Chunk chunk;
};

// Rows [i, i + rows) of the chunk's y, soon to be stored, and as many of x ahead.
HWY_INLINE void prefetch_around(const CpuCall& call, const Block& block, const Chunk& chunk,
                                const Slice& slice, const Ahead& ahead, std::int64_t i,
                                std::int64_t rows) {
  const Array& y = call.buffers.y;
  if (!call.stream_y || along_tokens(y)) {
    prefetch<1>(tokens_of(y, call.problem.y, block, chunk, slice), i, i + rows);
  }
  prefetch<0>(tokens_of(call.buffers.x, call.problem.x, block, ahead.chunk, ahead.slice), i,
              i + rows);
}

// B and dt' as token by token they are multiplied: a dt' that would take x out of fp32 goes to B.
struct Steps {
  const float* B;
  const float* dt;
};
HWY_INLINE Steps steps_of(const CpuLayout& layout, const float* B, const float* dt,
                          std::int64_t len, float most_x, const WorkerScratch& worker) {
  const auto moves = [&](std::int64_t t) { return dt_belongs_to_B(most_x, dt[t]); };
  std::int64_t t = 0;
  while (t < len && !moves(t)) ++t;
  if (t == len) return {B, dt};
  float* scaled_B = worker.columns();
  float* rest_dt = worker.M();
  for (t = 0; t < len; ++t) {
    const float to_B = moves(t) ? dt[t] : 1.0f;
    rest_dt[t] = moves(t) ? 1.0f : dt[t];
    for (std::int64_t k = 0; k < layout.n16; ++k) {
      scaled_B[t * layout.n16 + k] = to_B * B[t * layout.n16 + k];
    }
  }
  return {scaled_B, rest_dt};
}

// y_i = exp(cs_i) C_i S^T
HWY_NOINLINE void output_of_state(const CpuLayout& layout, const float* C, const float* state,
                                  double most_state, std::int64_t columns, std::int64_t len,
                                  const float* decay_in, const float* decay_in_rest, float* y) {
  for_each_row_tile(len, [&](std::int64_t i, auto rows) HWY_ATTR {
    for_each_column_tile(columns, [&](std::int64_t c, auto vecs) HWY_ATTR {
      Tile<rows, vecs> tile;
      tile.clear();
      tile.multiply(C + i * layout.n16, layout.n16, 1, state + c, layout.slice, layout.n);
      tile.scale_rows(decay_in + i);
      tile.scale_rows(decay_in_rest + i);
      tile.store(y + i * layout.slice + c, layout.slice);
    });
  });
  // Where C S might overflow before it decays, the state decays first.
  for (std::int64_t i = 0; i < len; ++i) {
    const float* C_i = C + i * layout.n16;
    if (most_of(C_i, layout.n) * most_state * static_cast<double>(layout.n) < 1e37) continue;
    float* y_i = y + i * layout.slice;
    std::fill(y_i, y_i + padded(columns), 0.0f);
    for (std::int64_t k = 0; k < layout.n; ++k) {
      for (std::int64_t c = 0; c < columns; ++c) {
        y_i[c] += C_i[k] * (state[k * layout.slice + c] * decay_in[i] * decay_in_rest[i]);
      }
    }
  }
}

// y from token `first` of the chunk on and the next state, token by token, the state of a few n at
// a time in registers: the sequential recurrence in its fastest form. Needs no C B^T.
// A state that stays for long would collect the rounding of every token: it is kept apart, beside a
// state that begins as 0, where the chunk before was slow. (Not this one: what follows a token may
// not change its bits.)
HWY_NOINLINE void recurrence_chunk(const CpuCall& call, const Block& block, std::int64_t w,
                                   const Slice& slice, std::int64_t first, float most_x,
                                   const Carried& entering, float* state, bool has_state,
                                   const WorkerScratch& worker) {
  const CpuLayout& layout = call.layout;
  const BlockScratch& scratch = block.scratch;
  const auto decay = [&](DecayRow row) { return scratch.decay(w, slice.head_in_block, row); };
  const float* factor = decay(kFactor);
  const float* factor_rest = decay(kFactorRest);
  const std::int64_t len = scratch.chunk(w).len;
  const Steps steps = steps_of(layout, worker.B(w), decay(kDt), len, most_x, worker);
  const HeadSums& sums = scratch.sums(w, slice.head_in_block);
  const bool apart = has_state && entering.slow;
  const bool slow = apart && sums.slow;
  const float state_rest = decay(kDecayInRest)[len - 1];
  float* lost = scratch.lost(slice.head_in_block);
  scratch.carried(slice.head_in_block).lost = slow;
  if (apart) {
    output_of_state(layout, worker.C(w), state, entering.most, slice.count, len, decay(kDecayIn),
                    decay(kDecayInRest), worker.y());
  } else {
    std::fill(worker.y(), worker.y() + len * layout.slice, 0.0f);
  }
  if (apart && state_rest != 1.0f) {
    for (std::int64_t i = 0; i < layout.n * layout.slice; ++i) state[i] *= state_rest;
  }
  cover_rows<kTileRows * 2 / 3, 4, 2, 1>(0, layout.n, [&](std::int64_t k, auto rows) HWY_ATTR {
    for_each_column_tile(slice.count, [&](std::int64_t c, auto vecs) HWY_ATTR {
      float* at = state + k * layout.slice + c;
      Tile<rows, vecs> S;
      if (has_state && !apart) {
        S.load(at, layout.slice);
      } else {
        S.clear();
      }
      for (std::int64_t t = 0; t < len; ++t) {
        if (HWY_UNLIKELY(factor_rest[t] != 1.0f)) S.scale(factor_rest[t]);
        S.step(factor[t], steps.dt[t], steps.B + t * layout.n16 + k,
               worker.C(w) + t * layout.n16 + k, worker.X() + t * layout.slice + c,
               worker.y() + t * layout.slice + c);
      }
      if (slow) {
        S.add_slow_state(at, lost + (at - state), layout.slice, sums.part, entering.lost);
      } else if (apart) {
        S.add_state(at, layout.slice, sums.part);
      }
      S.store(at, layout.slice);
    });
  });
  load_D(call, slice, worker.D());
  finish_rows(call, block, w, slice, first, len - first, worker.y() + first * layout.slice, worker);
}

}  // namespace chunkscan::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // per-target guard
