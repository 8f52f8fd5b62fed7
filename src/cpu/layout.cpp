#include "cpu/layout.h"

#include <algorithm>

namespace chunkscan {

namespace {

constexpr std::size_t kLine = 64;

// Hands out consecutive, cache-line aligned byte ranges.
class Offsets {
 public:
  template <typename T>
  std::size_t take(std::int64_t count) {
    const std::size_t at = next_;
    next_ += (static_cast<std::size_t>(count) * sizeof(T) + kLine - 1) / kLine * kLine;
    return at;
  }
  std::size_t end() const { return next_; }

 private:
  std::size_t next_ = 0;
};

// Enough (head, slice) items that the threads sharing a pair stay busy to the end.
std::int64_t slices_for(std::int64_t heads, std::int64_t p16, int threads) {
  const std::int64_t most = p16 / kRowPad;
  std::int64_t slices = 1;
  while (slices < most && heads * slices < 4 * threads && heads * slices % threads != 0) ++slices;
  return slices;
}

}  // namespace

CpuLayout::CpuLayout(const Problem& problem, const Config& config, int threads)
    : heads(problem.heads_per_group()),
      q(std::max(config.q, 1)),
      n(problem.n),
      p(problem.p),
      q16(padded(q)),
      n16(padded(n)),
      p16(padded(p)) {
  const std::int64_t pair_count = problem.sequences * problem.g;
  // Whole pairs need no barriers, but only balance when there are several a thread.
  pairs_in_parallel = threads == 1 || pair_count >= 4 * threads;
  slices = pairs_in_parallel ? 1 : slices_for(heads, p16, threads);
  slice = padded((p16 + slices - 1) / slices);
  slices = (p16 + slice - 1) / slice;
  // A window's B, C and C B^T should stay in a core's L2 while the heads pass over them, yet each
  // pass between two barriers should be long: few heads, longer windows.
  window = std::clamp<std::int64_t>(32 / heads, 4, 16);
  native_bf16 = config.isa == Isa::kAvx512Bf16;
  keeps_entering = config.route == Route::kStaged;

  const std::int64_t slots = 2 * window;

  Offsets pair;
  chunks = pair.take<Chunk>(slots);
  risky = pair.take<bool>(slots);
  B = pair.take<float>(slots * q16 * n16);
  C = pair.take<float>(slots * q16 * n16);
  CB = pair.take<float>(slots * q * q16);
  C_pairs = pair.take<std::uint32_t>(native_bf16 ? slots * q * n16 / 2 : 0);
  B_pairs = pair.take<std::uint32_t>(native_bf16 ? slots * q16 / 2 * n16 : 0);
  decay = pair.take<float>(slots * heads * kDecayRows * q16);
  log_sums = pair.take<double>(slots * heads);
  log_decay = pair.take<double>(heads);
  states = pair.take<float>(heads * n16 * p16);
  entering = pair.take<float>(keeps_entering ? slots * heads * n16 * p16 : 0);
  pair_bytes = pair.end();

  Offsets worker;
  Bt = worker.take<float>(n16 * q16);
  X = worker.take<float>(q * slice);
  X_pairs = worker.take<std::uint32_t>(native_bf16 ? q16 / 2 * slice : 0);
  S_pairs = worker.take<std::uint32_t>(native_bf16 ? n16 / 2 * slice : 0);
  M = worker.take<float>(kMostTileRows * q16);
  y = worker.take<float>(q * slice);
  z = worker.take<float>(slice);
  D = worker.take<float>(slice);
  rows = worker.take<float>(p16 * n16);
  worker_bytes = worker.end();

  Offsets all;
  sequences = all.take<Sequence>(problem.sequences);
  pairs =
      all.take<std::byte>(static_cast<std::int64_t>(pair_bytes) *
                          (pairs_in_parallel ? std::min<std::int64_t>(threads, pair_count) : 1));
  workers = all.take<std::byte>(static_cast<std::int64_t>(worker_bytes) * threads);
  total = all.end();
}

}  // namespace chunkscan
