// Operands of the matrix products for AVX512-BF16's native dot products: pairs of bf16 along the
// summed axis, sums are fp32, two products an instruction and lane. On any path to y at most three
// values are rounded to bf16: the weighted x, the state (or the decayed C B^T), and y itself. B, C
// and x enter as they are. Per-target include guard, see Highway.
#if defined(CHUNKSCAN_CPU_BF16_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef CHUNKSCAN_CPU_BF16_INL_H
#undef CHUNKSCAN_CPU_BF16_INL_H
#else
#define CHUNKSCAN_CPU_BF16_INL_H
#endif

#include "cpu/call.h"
#include "cpu/rows-inl.h"
#include "cpu/tile-inl.h"

#if HWY_TARGET == HWY_AVX3
HWY_BEFORE_NAMESPACE();
namespace chunkscan::HWY_NAMESPACE {

// Assembly, because Highway's AVX3 target does not switch the instructions on for the compiler.
HWY_INLINE V dot_pairs(hn::Vec<I32> a, hn::Vec<I32> b, V sum) {
  asm("vdpbf16ps %2, %1, %0" : "+v"(sum.raw) : "v"(a.raw), "v"(b.raw));
  return sum;
}

// 16 floats to 16 bf16, nearest even, NaN kept.
HWY_INLINE hn::Vec<U16> to_bf16(V v) {
  hn::Vec<U16> result;
  asm("vcvtneps2bf16 %1, %0" : "=v"(result.raw) : "v"(v.raw));
  return result;
}

// (low_0, high_0), (low_1, high_1), ...
HWY_INLINE void store_pairs(V low, V high, std::uint32_t* to) {
  const auto low_bits = hn::PromoteTo(u32, to_bf16(low));
  const auto high_bits = hn::ShiftLeft<16>(hn::PromoteTo(u32, to_bf16(high)));
  hn::StoreU(hn::Or(low_bits, high_bits), u32, to);
}

// `rows` rows of `columns` floats to bf16, which makes pairs along the row.
HWY_NOINLINE void narrow_rows(const float* from, std::int64_t columns, std::int64_t rows,
                              std::uint32_t* to) {
  std::uint16_t* at = reinterpret_cast<std::uint16_t*>(to);
  for (std::int64_t k = 0; k < rows * columns; k += lanes()) {
    hn::StoreU(to_bf16(hn::LoadU(f32, from + k)), u16, at + k);
  }
}

// Rows 2k and 2k + 1 of `rows` rows of `columns` floats become row k of pairs; a missing last row
// is 0.
HWY_NOINLINE void pair_rows(const float* from, std::int64_t from_stride, std::int64_t rows,
                            std::int64_t columns, std::uint32_t* to, std::int64_t to_stride) {
  for (std::int64_t r = 0; r < rows; r += 2) {
    for (std::int64_t c = 0; c < columns; c += lanes()) {
      const float* at = from + r * from_stride + c;
      const V low = hn::LoadU(f32, at);
      const V high = r + 1 < rows ? hn::LoadU(f32, at + from_stride) : hn::Zero(f32);
      store_pairs(low, high, to + r / 2 * to_stride + c);
    }
  }
}

// A register tile over pairs; see Tile.
template <int kRows, int kVecs>
struct PairTile : Tile<kRows, kVecs> {
  HWY_INLINE void multiply(const std::uint32_t* HWY_RESTRICT a, std::int64_t a_row,
                           std::int64_t a_k, const std::uint32_t* HWY_RESTRICT b,
                           std::int64_t b_row, std::int64_t depth) {
    for (std::int64_t k = 0; k < depth; ++k) {
      hn::Vec<I32> operand[kVecs];
#pragma GCC unroll 12
      for (int v = 0; v < kVecs; ++v) {
        operand[v] = hn::BitCast(i32, hn::LoadU(u32, b + v * lanes()));
      }
#pragma GCC unroll 12
      for (int r = 0; r < kRows; ++r) {
        const auto scalar = hn::BitCast(i32, hn::Set(u32, a[r * a_row]));
#pragma GCC unroll 12
        for (int v = 0; v < kVecs; ++v) {
          this->sum[r][v] = dot_pairs(scalar, operand[v], this->sum[r][v]);
        }
      }
      a += a_k;
      b += b_row;
    }
  }

  // The last pair may hold one token more than the rows, as 0 times it.
  HWY_INLINE void multiply_causal(const std::uint32_t* HWY_RESTRICT a, std::int64_t a_row,
                                  const std::uint32_t* HWY_RESTRICT b, std::int64_t b_row,
                                  std::int64_t i) {
    multiply(a, a_row, 1, b, b_row, (i + kRows + 1) / 2);
  }
};

struct NativeBf16 {
  using Word = std::uint32_t;
  static constexpr std::int64_t kNumbers = 2;  // in a word, along the summed axis
  template <int kRows, int kVecs>
  using Tile = PairTile<kRows, kVecs>;

  static HWY_NOINLINE void pack_BC(const CpuLayout& layout, std::int64_t len, std::int64_t w,
                                   const WorkerScratch& worker) {
    narrow_rows(worker.C(w), layout.n16, len, worker.C_pairs(w));
    pair_rows(worker.B(w), layout.n16, len, layout.n16, worker.B_pairs(w), layout.n16);
  }
  static const Word* B(const WorkerScratch& worker, std::int64_t w) { return worker.B_pairs(w); }
  static const Word* C(const WorkerScratch& worker, std::int64_t w) { return worker.C_pairs(w); }
  static const Word* X(const CpuLayout& layout, std::int64_t len, std::int64_t columns,
                       const WorkerScratch& worker) {
    pair_rows(worker.X(), layout.slice, len, columns, worker.X_pairs(), layout.slice);
    return worker.X_pairs();
  }
  static const Word* S(const CpuLayout& layout, const float* state, std::int64_t columns,
                       const WorkerScratch& worker) {
    pair_rows(state, layout.slice, layout.n, columns, worker.S_pairs(), layout.slice);
    return worker.S_pairs();
  }

  // B's pairs along n, and behind them the same turned.
  static const Word* turned_B(const CpuLayout& layout, std::int64_t w, std::int64_t len,
                              const WorkerScratch& worker) {
    const std::int64_t n_pairs = layout.n16 / 2;
    Word* B = reinterpret_cast<Word*>(worker.columns());
    Word* turned = B + layout.q16 * n_pairs;
    narrow_rows(worker.B(w), layout.n16, len, B);
    transpose(reinterpret_cast<const float*>(B), n_pairs, len, n_pairs,
              reinterpret_cast<float*>(turned), layout.q16);
    return turned;
  }

  static HWY_INLINE void store(V v, Word* row, std::int64_t j) {
    hn::StoreU(to_bf16(v), u16, reinterpret_cast<std::uint16_t*>(row) + j);
  }
};

}  // namespace chunkscan::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // HWY_AVX3
#endif  // per-target guard
