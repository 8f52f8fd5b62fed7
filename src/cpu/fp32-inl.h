// Operands of the matrix products in fp32: what scratch holds, as it stands. Per-target include
// guard, see Highway.
#if defined(CHUNKSCAN_CPU_FP32_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef CHUNKSCAN_CPU_FP32_INL_H
#undef CHUNKSCAN_CPU_FP32_INL_H
#else
#define CHUNKSCAN_CPU_FP32_INL_H
#endif

#include "cpu/call.h"
#include "cpu/rows-inl.h"
#include "cpu/tile-inl.h"

HWY_BEFORE_NAMESPACE();
namespace chunkscan::HWY_NAMESPACE {

struct Fp32 {
  using Word = float;
  static constexpr std::int64_t kNumbers = 1;  // in a word, along the summed axis
  template <int kRows, int kVecs>
  using Tile = HWY_NAMESPACE::Tile<kRows, kVecs>;

  static void pack_BC(const CpuLayout&, std::int64_t, std::int64_t, const WorkerScratch&) {}
  static const float* B(const WorkerScratch& worker, std::int64_t w) { return worker.B(w); }
  static const float* C(const WorkerScratch& worker, std::int64_t w) { return worker.C(w); }
  static const float* X(const CpuLayout&, std::int64_t, std::int64_t, const WorkerScratch& worker) {
    return worker.X();
  }
  static const float* S(const CpuLayout&, const float* state, std::int64_t, const WorkerScratch&) {
    return state;
  }

  static const float* turned_B(const CpuLayout& layout, std::int64_t w, std::int64_t len,
                               const WorkerScratch& worker) {
    transpose(worker.B(w), layout.n16, len, layout.n, worker.columns(), layout.q16);
    return worker.columns();
  }

  static HWY_INLINE void store(V v, float* row, std::int64_t j) { hn::StoreU(v, f32, row + j); }
};

}  // namespace chunkscan::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // per-target guard
