// The matrix products of a chunk.
//
//   y_i = exp(cs_i) C_i S^T + sum over j <= i of (C B^T)_ij exp(cs_i - cs_j) dt'_j x_j + D x_i
//   S'  = exp(cs_q) S + sum over j of exp(cs_q - cs_j) dt'_j x_j (outer) B_j
//
// S is kept transposed, (n, p), so that vectors run along p in every product. `Products` is the
// arithmetic: Fp32 or NativeBf16, with its operands' words and its register tile. Per-target
// include guard, see Highway.
#if defined(CHUNKSCAN_CPU_PRODUCTS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef CHUNKSCAN_CPU_PRODUCTS_INL_H
#undef CHUNKSCAN_CPU_PRODUCTS_INL_H
#else
#define CHUNKSCAN_CPU_PRODUCTS_INL_H
#endif

#include "cpu/call.h"
#include "cpu/chunk-inl.h"
#include "cpu/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace chunkscan::HWY_NAMESPACE {

template <class Products>
constexpr std::int64_t words(std::int64_t numbers) {
  return (numbers + Products::kNumbers - 1) / Products::kNumbers;
}

// CB[i][j] = sum over n of C[i][n] B[j][n], for the tiles that touch j <= i; the rest is
// undefined.
template <class Products>
HWY_NOINLINE void multiply_CB(const CpuLayout& layout, const BlockScratch& scratch, std::int64_t w,
                              const WorkerScratch& worker) {
  const std::int64_t len = scratch.chunk(w).len;
  const std::int64_t row = words<Products>(layout.n16);
  const auto* C = Products::C(worker, w);
  const auto* Bt = Products::turned_B(layout, w, len, worker);
  for_each_row_tile(len, [&](std::int64_t i, auto rows) HWY_ATTR {
    for_each_column_tile(i + rows, [&](std::int64_t j, auto vecs) HWY_ATTR {
      typename Products::template Tile<rows, vecs> tile;
      tile.clear();
      tile.multiply(C + i * row, row, 1, Bt + j, layout.q16, words<Products>(layout.n));
      tile.store(scratch.CB(w) + i * layout.q16 + j, layout.q16);
    });
  });
}

// y of the chunk's first `tokens`, from them and the entering state (nullptr = 0).
template <class Products>
HWY_NOINLINE void output_chunk(const CpuCall& call, const Block& block, std::int64_t w,
                               const Slice& slice, std::int64_t tokens, const float* state,
                               const Ahead& ahead, const WorkerScratch& worker) {
  const CpuLayout& layout = call.layout;
  const BlockScratch& scratch = block.scratch;
  const Chunk& chunk = scratch.chunk(w);
  const auto decay = [&](DecayRow row) { return scratch.decay(w, slice.head_in_block, row); };
  const std::int64_t C_row = words<Products>(layout.n16);
  const std::int64_t M_row = words<Products>(layout.q16);
  const auto* C = Products::C(worker, w);
  const auto* X = Products::X(layout, tokens, padded(slice.count), worker);
  const auto* S =
      state == nullptr ? nullptr : Products::S(layout, state, padded(slice.count), worker);
  auto* M = reinterpret_cast<typename Products::Word*>(worker.M());
  const bool at_once = finishes_at_once(call);
  float* y = worker.y();
  load_D(call, slice, worker.D());
  for_each_row_tile(tokens, [&](std::int64_t i, auto rows) HWY_ATTR {
    prefetch_around(call, block, chunk, slice, ahead, i, rows);
    float* sum = at_once ? y + i * layout.slice : y;
    decayed_CB<rows>(layout, scratch.CB(w), decay(kCsHigh), decay(kCsLow), decay(kDt), i,
                     [&](int r, std::int64_t j, V v)
                         HWY_ATTR { Products::store(v, M + r * M_row, j); });
    for_each_column_tile(slice.count, [&](std::int64_t k, auto vecs) HWY_ATTR {
      typename Products::template Tile<rows, vecs> tile;
      tile.clear();
      if (S != nullptr) {
        tile.multiply(C + i * C_row, C_row, 1, S + k, layout.slice, words<Products>(layout.n));
        tile.scale_rows(decay(kDecayIn) + i);
        tile.scale_rows(decay(kDecayInRest) + i);
      }
      tile.multiply_causal(M, M_row, X + k, layout.slice, i);
      tile.store(sum + k, layout.slice);
    });
    if (!at_once) finish_rows(call, block, w, slice, i, rows, sum, worker);
  });
  if (at_once) finish_rows(call, block, w, slice, 0, tokens, y, worker);
}

// The state after the chunk, in place; `has_state` is false where the entering one is 0. Leaves X
// scaled.
template <class Products>
HWY_NOINLINE void state_chunk(const CpuLayout& layout, const BlockScratch& scratch, std::int64_t w,
                              const Slice& slice, const Carried& entering, float* state,
                              bool has_state, const WorkerScratch& worker) {
  const std::int64_t len = scratch.chunk(w).len;
  const HeadSums& sums = scratch.sums(w, slice.head_in_block);
  const float rest = scratch.decay(w, slice.head_in_block, kDecayInRest)[len - 1];
  if (has_state && rest != 1.0f) {
    for (std::int64_t i = 0; i < layout.n * layout.slice; ++i) state[i] *= rest;
  }
  const bool slow = has_state && sums.slow;
  float* lost = scratch.lost(slice.head_in_block);
  scratch.carried(slice.head_in_block).lost = slow;
  scale_X(layout, scratch, w, slice, worker);
  const auto* B = Products::B(worker, w);
  const auto* X = Products::X(layout, len, padded(slice.count), worker);
  for_each_row_tile(layout.n, [&](std::int64_t k, auto rows) HWY_ATTR {
    for_each_column_tile(slice.count, [&](std::int64_t c, auto vecs) HWY_ATTR {
      float* at = state + k * layout.slice + c;
      typename Products::template Tile<rows, vecs> tile;
      tile.clear();
      tile.multiply(B + k, 1, layout.n16, X + c, layout.slice, words<Products>(len));
      // Last, so that a state much larger than what the tokens add is rounded once a chunk.
      if (slow) {
        tile.add_slow_state(at, lost + (at - state), layout.slice, sums.part, entering.lost);
      } else if (has_state) {
        tile.add_state(at, layout.slice, sums.part);
      }
      tile.store(at, layout.slice);
    });
  });
}

}  // namespace chunkscan::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // per-target guard
