// The matrix products of a chunk with fp32 operands.
//
//   y_i = exp(cs_i) C_i S^T + sum over j <= i of (C B^T)_ij exp(cs_i - cs_j) dt'_j x_j + D x_i
//   S'  = exp(cs_q) S + sum over j of exp(cs_q - cs_j) dt'_j x_j (outer) B_j
//
// S is kept transposed, (n, p), so that vectors run along p in every product. Per-target include
// guard, see Highway.
#if defined(CHUNKSCAN_CPU_FP32_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef CHUNKSCAN_CPU_FP32_INL_H
#undef CHUNKSCAN_CPU_FP32_INL_H
#else
#define CHUNKSCAN_CPU_FP32_INL_H
#endif

#include "cpu/call.h"
#include "cpu/chunk-inl.h"
#include "cpu/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace chunkscan::HWY_NAMESPACE {

struct Fp32 {
  // The products take B and C as prepare_chunk loads them.
  static void pack_BC(const CpuLayout&, std::int64_t, std::int64_t, const WorkerScratch&) {}

  // CB[i][j] = sum over n of C[i][n] B[j][n], for the tiles that touch j <= i; the rest is
  // undefined.
  static HWY_NOINLINE void multiply_CB(const CpuLayout& layout, const BlockScratch& scratch,
                                       std::int64_t w, const WorkerScratch& worker) {
    const std::int64_t len = scratch.chunk(w).len;
    const float* C = worker.C(w);
    float* Bt = worker.Bt();
    float* CB = scratch.CB(w);
    transpose(worker.B(w), layout.n16, len, layout.n, Bt, layout.q16);
    for_each_row_tile(len, [&](std::int64_t i, auto rows) HWY_ATTR {
      for_each_column_tile(i + rows, [&](std::int64_t j, auto vecs) HWY_ATTR {
        Tile<rows, vecs> tile;
        tile.clear();
        tile.multiply(C + i * layout.n16, layout.n16, 1, Bt + j, layout.q16, layout.n);
        tile.store(CB + i * layout.q16 + j, layout.q16);
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
    const float* C = worker.C(w);
    float* M = worker.M();
    float* y = worker.y();
    load_D(call, slice, worker.D());
    for_each_row_tile(chunk.len, [&](std::int64_t i, auto rows) HWY_ATTR {
      prefetch_around(call, block, chunk.begin + i, rows, slice, ahead, i);
      decayed_CB<rows>(layout, scratch.CB(w), decay(kCsHigh), decay(kCsLow), decay(kDt), i,
                       [&](int r, std::int64_t j, V v)
                           HWY_ATTR { hn::StoreU(v, f32, M + r * layout.q16 + j); });
      for_each_column_tile(slice.count, [&](std::int64_t k, auto vecs) HWY_ATTR {
        Tile<rows, vecs> tile;
        tile.clear();
        if (state != nullptr) {
          tile.multiply(C + i * layout.n16, layout.n16, 1, state + k, layout.slice, layout.n);
          tile.scale_rows(decay(kDecayIn) + i);
        }
        const float* X = worker.X() + k;
        tile.multiply(M, layout.q16, 1, X, layout.slice, i);
        tile.multiply_triangle(M + i, layout.q16, X + i * layout.slice, layout.slice);
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
    scale_X(layout, scratch, w, slice, worker);
    for_each_row_tile(layout.n, [&](std::int64_t k, auto rows) HWY_ATTR {
      for_each_column_tile(slice.count, [&](std::int64_t c, auto vecs) HWY_ATTR {
        float* at = state + k * layout.slice + c;
        Tile<rows, vecs> tile;
        if (has_state) {
          tile.load_scaled(at, layout.slice, decay);
        } else {
          tile.clear();
        }
        tile.multiply(worker.B(w) + k, 1, layout.n16, worker.X() + c, layout.slice, len);
        tile.store(at, layout.slice);
      });
    });
  }
};

}  // namespace chunkscan::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // per-target guard
