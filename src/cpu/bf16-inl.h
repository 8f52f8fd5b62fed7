// The matrix products of a chunk with AVX512-BF16's native dot products: operands are pairs of bf16
// along the summed axis, sums are fp32, two products an instruction and lane. The formulas are
// those of fp32-inl.h. On any path to y at most three values are rounded to bf16: the weighted x,
// the state (or the decayed C B^T), and y itself. B, C and x enter as they are. Per-target include
// guard, see Highway.
#if defined(CHUNKSCAN_CPU_BF16_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef CHUNKSCAN_CPU_BF16_INL_H
#undef CHUNKSCAN_CPU_BF16_INL_H
#else
#define CHUNKSCAN_CPU_BF16_INL_H
#endif

#include "cpu/call.h"
#include "cpu/chunk-inl.h"
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
  HWY_INLINE void multiply_pairs(const std::uint32_t* HWY_RESTRICT a, std::int64_t a_row,
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
};

struct NativeBf16 {
  static HWY_NOINLINE void pack_BC(const CpuLayout& layout, std::int64_t len, std::int64_t w,
                                   const WorkerScratch& worker) {
    narrow_rows(worker.C(w), layout.n16, len, worker.C_pairs(w));
    pair_rows(worker.B(w), layout.n16, len, layout.n16, worker.B_pairs(w), layout.n16);
  }

  static HWY_NOINLINE void multiply_CB(const CpuLayout& layout, const BlockScratch& scratch,
                                       std::int64_t w, const WorkerScratch& worker) {
    const std::int64_t len = scratch.chunk(w).len;
    const std::int64_t n_pairs = layout.n16 / 2;
    const std::uint32_t* C = worker.C_pairs(w);
    // B's pairs along n, and behind them the same transposed.
    std::uint32_t* B = reinterpret_cast<std::uint32_t*>(worker.Bt());
    std::uint32_t* Bt = B + layout.q16 * n_pairs;
    narrow_rows(worker.B(w), layout.n16, len, B);
    transpose(reinterpret_cast<const float*>(B), n_pairs, len, n_pairs,
              reinterpret_cast<float*>(Bt), layout.q16);
    for_each_row_tile(len, [&](std::int64_t i, auto rows) HWY_ATTR {
      for_each_column_tile(i + rows, [&](std::int64_t j, auto vecs) HWY_ATTR {
        PairTile<rows, vecs> tile;
        tile.clear();
        tile.multiply_pairs(C + i * n_pairs, n_pairs, 1, Bt + j, layout.q16, n_pairs);
        tile.store(scratch.CB(w) + i * layout.q16 + j, layout.q16);
      });
    });
  }

  // y of the chunk, from its tokens and the entering state (nullptr = 0).
  static HWY_NOINLINE void output_chunk(const CpuCall& call, const Block& block, std::int64_t w,
                                        const Slice& slice, const float* state, const Ahead& ahead,
                                        const WorkerScratch& worker) {
    const CpuLayout& layout = call.layout;
    const BlockScratch& scratch = block.scratch;
    const Chunk& chunk = scratch.chunk(w);
    const auto decay = [&](DecayRow row) { return scratch.decay(w, slice.head_in_block, row); };
    const std::int64_t columns = padded(slice.count);
    const std::int64_t n_pairs = layout.n16 / 2;
    const std::int64_t q_pairs = layout.q16 / 2;
    const std::uint32_t* C = worker.C_pairs(w);
    std::uint32_t* M = reinterpret_cast<std::uint32_t*>(worker.M());
    std::uint32_t* X = worker.X_pairs();
    std::uint32_t* S = worker.S_pairs();
    float* y = worker.y();
    load_D(call, slice, worker.D());
    pair_rows(worker.X(), layout.slice, chunk.len, columns, X, layout.slice);
    if (state != nullptr) {
      pair_rows(state, layout.slice, layout.n, columns, S, layout.slice);
    }
    for_each_row_tile(chunk.len, [&](std::int64_t i, auto rows) HWY_ATTR {
      prefetch_around(call, block, chunk.begin + i, rows, slice, ahead, i);
      decayed_CB<rows>(layout, scratch.CB(w), decay(kCsHigh), decay(kCsLow), decay(kDt), i,
                       [&](int r, std::int64_t j, V v) HWY_ATTR {
                         hn::StoreU(to_bf16(v), u16,
                                    reinterpret_cast<std::uint16_t*>(M + r * q_pairs) + j);
                       });
      for_each_column_tile(slice.count, [&](std::int64_t k, auto vecs) HWY_ATTR {
        PairTile<rows, vecs> tile;
        tile.clear();
        if (state != nullptr) {
          tile.multiply_pairs(C + i * n_pairs, n_pairs, 1, S + k, layout.slice, (layout.n + 1) / 2);
          tile.scale_rows(decay(kDecayIn) + i);
        }
        tile.multiply_pairs(M, q_pairs, 1, X + k, layout.slice, (i + rows + 1) / 2);
        tile.store(y + k, layout.slice);
      });
      finish_rows(call, block, w, slice, i, rows, y, worker);
    });
  }

  // The state after the chunk, in place; `has_state` is false where the entering one is 0. Leaves X
  // scaled.
  static HWY_NOINLINE void state_chunk(const CpuLayout& layout, const BlockScratch& scratch,
                                       std::int64_t w, const Slice& slice, float* state,
                                       bool has_state, const WorkerScratch& worker) {
    const std::int64_t len = scratch.chunk(w).len;
    const float decay = scratch.decay(w, slice.head_in_block, kDecayIn)[len - 1];
    std::uint32_t* X = worker.X_pairs();
    scale_X(layout, scratch, w, slice, worker);
    pair_rows(worker.X(), layout.slice, len, padded(slice.count), X, layout.slice);
    for_each_row_tile(layout.n, [&](std::int64_t k, auto rows) HWY_ATTR {
      for_each_column_tile(slice.count, [&](std::int64_t c, auto vecs) HWY_ATTR {
        float* at = state + k * layout.slice + c;
        PairTile<rows, vecs> tile;
        if (has_state) {
          tile.load_scaled(at, layout.slice, decay);
        } else {
          tile.clear();
        }
        tile.multiply_pairs(worker.B_pairs(w) + k, 1, layout.n16, X + c, layout.slice,
                            (len + 1) / 2);
        tile.store(at, layout.slice);
      });
    });
  }
};

}  // namespace chunkscan::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // HWY_AVX3
#endif  // per-target guard
