// The register tile that all matrix products are made of. Per-target include guard, see Highway.
#if defined(CHUNKSCAN_CPU_TILE_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef CHUNKSCAN_CPU_TILE_INL_H
#undef CHUNKSCAN_CPU_TILE_INL_H
#else
#define CHUNKSCAN_CPU_TILE_INL_H
#endif

#include <type_traits>

#include "cpu/layout.h"
#include "cpu/math-inl.h"

HWY_BEFORE_NAMESPACE();
namespace chunkscan::HWY_NAMESPACE {

// kTileRows x kTileVecs accumulators, kTileVecs operands and a broadcast fit the registers: 24 + 2
// + 1 of 32, or 12 + 2 + 1 of 16. Tall and narrow: the operand that streams is the state, and it
// passes once per row tile. (6 x 4 needs fewer loads, but reads the state from L2 twice as often.)
#if HWY_TARGET <= HWY_AVX3 || HWY_TARGET == HWY_NEON
inline constexpr int kTileRows = 12;
#else
inline constexpr int kTileRows = 6;
#endif
inline constexpr int kTileVecs = 2;
static_assert(kTileRows <= kMostTileRows && kTileVecs == 2);

template <int kRows, int kVecs>
struct Tile {
  V sum[kRows][kVecs];

  HWY_INLINE void clear() {
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 12
      for (int v = 0; v < kVecs; ++v) sum[r][v] = hn::Zero(f32);
    }
  }

  // sum[r][:] += sum over k < depth of a[r * a_row + k * a_k] * b[k * b_row + :]
  HWY_INLINE void multiply(const float* HWY_RESTRICT a, std::int64_t a_row, std::int64_t a_k,
                           const float* HWY_RESTRICT b, std::int64_t b_row, std::int64_t depth) {
    for (std::int64_t k = 0; k < depth; ++k) {
      V operand[kVecs];
#pragma GCC unroll 12
      for (int v = 0; v < kVecs; ++v) operand[v] = hn::LoadU(f32, b + v * lanes());
#pragma GCC unroll 12
      for (int r = 0; r < kRows; ++r) {
        const V scalar = hn::Set(f32, a[r * a_row]);
#pragma GCC unroll 12
        for (int v = 0; v < kVecs; ++v) sum[r][v] = hn::MulAdd(scalar, operand[v], sum[r][v]);
      }
      a += a_k;
      b += b_row;
    }
  }

  // The same with rows i ... of a lower triangle (a, from column 0 on) times tokens 0, 1, ... (b).
  // Token k never touches an earlier row, not even as 0 times it.
  HWY_INLINE void multiply_causal(const float* HWY_RESTRICT a, std::int64_t a_row,
                                  const float* HWY_RESTRICT b, std::int64_t b_row, std::int64_t i) {
    multiply(a, a_row, 1, b, b_row, i);
    a += i;
    b += i * b_row;
#pragma GCC unroll 12
    for (int k = 0; k < kRows; ++k) {
#pragma GCC unroll 12
      for (int r = k; r < kRows; ++r) {
        const V scalar = hn::Set(f32, a[r * a_row + k]);
#pragma GCC unroll 12
        for (int v = 0; v < kVecs; ++v) {
          sum[r][v] = hn::MulAdd(scalar, hn::LoadU(f32, b + k * b_row + v * lanes()), sum[r][v]);
        }
      }
    }
  }

  HWY_INLINE void scale_rows(const float* HWY_RESTRICT factor) {
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r) {
      const V scalar = hn::Set(f32, factor[r]);
#pragma GCC unroll 12
      for (int v = 0; v < kVecs; ++v) sum[r][v] = hn::Mul(sum[r][v], scalar);
    }
  }

  HWY_INLINE void scale(float factor) {
    const V scalar = hn::Set(f32, factor);
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 12
      for (int v = 0; v < kVecs; ++v) sum[r][v] = hn::Mul(sum[r][v], scalar);
    }
  }

  HWY_INLINE void load(const float* HWY_RESTRICT from, std::int64_t row) {
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 12
      for (int v = 0; v < kVecs; ++v) sum[r][v] = hn::LoadU(f32, from + r * row + v * lanes());
    }
  }

  // sum = from + (part from + sum + lost), where `lost` is what rounding took the last times.
  // Otherwise a state that stays for long collects one rounding after the other.
  HWY_INLINE void add_slow_state(const float* HWY_RESTRICT from, float* HWY_RESTRICT lost,
                                 std::int64_t row, float part, bool has_lost) {
    const V part_all = hn::Set(f32, part);
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 12
      for (int v = 0; v < kVecs; ++v) {
        const std::int64_t at = r * row + v * lanes();
        const V state = hn::LoadU(f32, from + at);
        V more = hn::MulAdd(state, part_all, sum[r][v]);
        if (has_lost) more = hn::Add(more, hn::LoadU(f32, lost + at));
        sum[r][v] = hn::Add(state, more);
        hn::StoreU(hn::Sub(more, hn::Sub(sum[r][v], state)), f32, lost + at);
      }
    }
  }

  // sum = part from + sum
  HWY_INLINE void add_state(const float* HWY_RESTRICT from, std::int64_t row, float part) {
    const V part_all = hn::Set(f32, part);
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 12
      for (int v = 0; v < kVecs; ++v) {
        const V state = hn::LoadU(f32, from + r * row + v * lanes());
        sum[r][v] = hn::MulAdd(state, part_all, sum[r][v]);
      }
    }
  }

  // One token of the recurrence: sum = factor * sum + b (outer) dt x, y += c . sum.
  HWY_INLINE void step(float factor, float dt, const float* HWY_RESTRICT b,
                       const float* HWY_RESTRICT c, const float* HWY_RESTRICT x,
                       float* HWY_RESTRICT y) {
    // Where registers allow, y is summed in two parts: one chain of additions is longer than the
    // rest of the step (2 % on Zen 5; with 16 registers 5 % slower).
    constexpr int kSums = kTileRows == 12 ? 2 : 1;
    const V scale = hn::Set(f32, factor);
    const V dt_t = hn::Set(f32, dt);
    V x_t[kVecs];
    V y_t[kSums][kVecs];
#pragma GCC unroll 12
    for (int v = 0; v < kVecs; ++v) {
      x_t[v] = hn::Mul(dt_t, hn::LoadU(f32, x + v * lanes()));
      y_t[0][v] = hn::LoadU(f32, y + v * lanes());
      if (kSums > 1) y_t[kSums - 1][v] = hn::Zero(f32);
    }
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r) {
      const V b_r = hn::Set(f32, b[r]);
      const V c_r = hn::Set(f32, c[r]);
#pragma GCC unroll 12
      for (int v = 0; v < kVecs; ++v) {
        sum[r][v] = hn::MulAdd(sum[r][v], scale, hn::Mul(b_r, x_t[v]));
        y_t[r % kSums][v] = hn::MulAdd(c_r, sum[r][v], y_t[r % kSums][v]);
      }
    }
#pragma GCC unroll 12
    for (int v = 0; v < kVecs; ++v) {
      const V all = kSums > 1 ? hn::Add(y_t[0][v], y_t[kSums - 1][v]) : y_t[0][v];
      hn::StoreU(all, f32, y + v * lanes());
    }
  }

  HWY_INLINE void store(float* HWY_RESTRICT to, std::int64_t row) const {
#pragma GCC unroll 12
    for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 12
      for (int v = 0; v < kVecs; ++v) hn::StoreU(sum[r][v], f32, to + r * row + v * lanes());
    }
  }
};

template <int kValue>
using Constant = std::integral_constant<int, kValue>;

// Covers rows [r, rows) with tiles of kFirst rows, then of kRest: body(first row, Constant<rows>).
template <int kFirst, int... kRest, class Body>
HWY_INLINE void cover_rows(std::int64_t r, std::int64_t rows, Body&& body) {
  for (; r + kFirst <= rows; r += kFirst) body(r, Constant<kFirst>());
  if constexpr (sizeof...(kRest) > 0) {
    if (r < rows) cover_rows<kRest...>(r, rows, body);
  }
}

// A few heights are enough: every further one is compiled for each product and instruction set.
template <class Body>
HWY_INLINE void for_each_row_tile(std::int64_t rows, Body&& body) {
  cover_rows<kTileRows, 4, 2, 1>(0, rows, body);
}

// Covers `columns` floats with tiles of whole vectors: body(first column, Constant<vectors>).
template <class Body>
HWY_INLINE void for_each_column_tile(std::int64_t columns, Body&& body) {
  const std::int64_t step = kTileVecs * lanes();
  for (std::int64_t column = 0; column < columns; column += step) {
    if (column + lanes() < columns) {
      body(column, Constant<kTileVecs>());
    } else {
      body(column, Constant<1>());
    }
  }
}

}  // namespace chunkscan::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // per-target guard
