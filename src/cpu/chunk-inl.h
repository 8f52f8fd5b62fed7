// What a chunk of a head needs around its matrix products: x in, decays, y out; and the token by
// token form. Per-target include guard, see Highway.
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

// Rows of a head lie h * p elements apart, which no hardware prefetcher follows. x is
// fetched twice: a chunk ahead into L2, and a few rows ahead into L1, where rows of a power-of-two
// stride would have pushed each other out in between (the second is worth 4 % at
// (1, 4096, 80, 64, 128, 1) in fp32 on two Zen 5 cores).
template <int kForWrite>
HWY_INLINE void prefetch_rows(const Array& array, std::int64_t batch, std::int64_t begin,
                              std::int64_t end, const Slice& slice) {
  constexpr std::int64_t kLine = 64;
  for (std::int64_t t = begin; t < end; ++t) {
    const std::byte* row = array.at(batch, t, slice.head, slice.begin);
    for (std::int64_t byte = 0; byte < slice.count * array.element_bytes; byte += kLine) {
      __builtin_prefetch(row + byte, kForWrite);
    }
  }
}

// X = the slice's columns of x, in fp32.
HWY_NOINLINE void load_X(const CpuCall& call, const Block& block, std::int64_t w,
                         const Slice& slice, const WorkerScratch& worker) {
  constexpr std::int64_t kRowsAhead = 12;
  const Array& x = call.buffers.x;
  const Chunk& chunk = block.scratch.chunk(w);
  const std::int64_t end = chunk.begin + chunk.len;
  with_dtype(call.problem.x, [&](auto type) HWY_ATTR {
    for (std::int64_t j = 0; j < chunk.len; ++j) {
      const std::int64_t t = chunk.begin + j;
      prefetch_rows<0>(x, block.sequence.batch, std::min(t + kRowsAhead, end),
                       std::min(t + kRowsAhead + 1, end), slice);
      float* row = worker.X() + j * call.layout.slice;
      for_each_vector<decltype(type)>(
          x.at(block.sequence.batch, t, slice.head, slice.begin), x.strides[3], slice.count,
          [&](std::int64_t k, V v) HWY_ATTR { hn::StoreU(v, f32, row + k); });
    }
  });
}

// X_j *= exp(cs_q - cs_j) dt'_j
HWY_INLINE void scale_X(const CpuLayout& layout, const BlockScratch& scratch, std::int64_t w,
                        const Slice& slice, const WorkerScratch& worker) {
  const float* dt = scratch.decay(w, slice.head_in_block, kDt);
  const float* weight = scratch.decay(w, slice.head_in_block, kWeight);
  for (std::int64_t j = 0; j < scratch.chunk(w).len; ++j) {
    const V factor = hn::Set(f32, weight[j] * dt[j]);
    float* row = worker.X() + j * layout.slice;
    for (std::int64_t k = 0; k < slice.count; k += lanes()) {
      hn::StoreU(hn::Mul(factor, hn::LoadU(f32, row + k)), f32, row + k);
    }
  }
}

// The skip connection's factors for the slice; zeros without one.
HWY_INLINE void load_D(const CpuCall& call, const Slice& slice, float* to) {
  const Array& D = call.buffers.D;
  if (call.problem.D_per_head_dim) {
    return load_row(*call.problem.D, D.at(slice.head, slice.begin), D.strides[1], slice.count, to);
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
  const std::int64_t batch = block.sequence.batch;
  const std::int64_t t = block.scratch.chunk(w).begin + i;
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
    load_row(*problem.z, buffers.z.at(batch, t + r, slice.head, slice.begin), buffers.z.strides[3],
             slice.count, worker.z());
    for (std::int64_t k = 0; k < slice.count; k += lanes()) {
      const V gate = silu(hn::LoadU(f32, worker.z() + k));
      hn::StoreU(hn::Mul(hn::LoadU(f32, row + k), gate), f32, row + k);
    }
  }
  with_dtype(problem.y, [&](auto type) HWY_ATTR {
    using Type = decltype(type);
    const std::int64_t stride = buffers.y.strides[3];
    for (std::int64_t r = 0; r < rows; ++r) {
      const float* row = sum + r * layout.slice;
      std::byte* to = buffers.y.at(batch, t + r, slice.head, slice.begin);
      std::int64_t k = 0;
      if (call.stream_y && stride == 1 && reinterpret_cast<std::uintptr_t>(to) % 64 == 0) {
        for (; k + lanes() <= slice.count; k += lanes()) {
          Type::stream(hn::LoadU(f32, row + k), reinterpret_cast<typename Type::T*>(to) + k);
        }
      }
      for (; k < slice.count; k += lanes()) {
        store_vector<Type>(hn::LoadU(f32, row + k), to, stride, k, slice.count);
      }
    }
  });
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
      return hn::Mul(hn::Mul(hn::LoadU(f32, row + j), hn::LoadU(f32, dt + j)),
                     exp2_pair(difference_high, difference_low));
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

// The rows of x that the thread will want next.
struct Ahead {
  Slice slice;
  std::int64_t begin;
  std::int64_t end;
};

// Tokens [t, t + rows) of y, soon to be stored, and as many rows of x from the i-th one ahead.
HWY_INLINE void prefetch_around(const CpuCall& call, const Block& block, std::int64_t t,
                                std::int64_t rows, const Slice& slice, const Ahead& ahead,
                                std::int64_t i) {
  const std::int64_t next = ahead.begin + i;
  if (!call.stream_y) {
    prefetch_rows<1>(call.buffers.y, block.sequence.batch, t, t + rows, slice);
  }
  prefetch_rows<0>(call.buffers.x, block.sequence.batch, next, std::min(next + rows, ahead.end),
                   ahead.slice);
}

// y and the next state token by token, the state of a few n at a time in registers: the sequential
// recurrence in its fastest form. Needs no C B^T.
HWY_NOINLINE void recurrence_chunk(const CpuCall& call, const Block& block, std::int64_t w,
                                   const Slice& slice, float* state, bool has_state,
                                   const WorkerScratch& worker) {
  const CpuLayout& layout = call.layout;
  const BlockScratch& scratch = block.scratch;
  const float* factor = scratch.decay(w, slice.head_in_block, kFactor);
  const float* dt = scratch.decay(w, slice.head_in_block, kDt);
  const std::int64_t len = scratch.chunk(w).len;
  std::fill(worker.y(), worker.y() + len * layout.slice, 0.0f);
  cover_rows<kTileRows * 2 / 3, 4, 2, 1>(0, layout.n, [&](std::int64_t k, auto rows) HWY_ATTR {
    for_each_column_tile(slice.count, [&](std::int64_t c, auto vecs) HWY_ATTR {
      float* at = state + k * layout.slice + c;
      Tile<rows, vecs> S;
      if (has_state) {
        S.load_scaled(at, layout.slice, 1.0f);
      } else {
        S.clear();
      }
      for (std::int64_t t = 0; t < len; ++t) {
        S.step(factor[t], dt[t], worker.B(w) + t * layout.n16 + k, worker.C(w) + t * layout.n16 + k,
               worker.X() + t * layout.slice + c, worker.y() + t * layout.slice + c);
      }
      S.store(at, layout.slice);
    });
  });
  load_D(call, slice, worker.D());
  finish_rows(call, block, w, slice, 0, len, worker.y(), worker);
}

}  // namespace chunkscan::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // per-target guard
