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

std::int64_t divide_up(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// Fewer heads than this a block, and preparing chunks once for each block costs too much.
constexpr std::int64_t kFewestHeads = 6;

// Into how many blocks to cut a group so that threads which take whole blocks stay busy to the end:
// a multiple of the threads where all blocks cost the same, else several for each. 0 = there is no
// such number.
std::int64_t blocks_for(const Problem& problem, int threads) {
  const std::int64_t groups = problem.sequences * problem.g;
  const bool all_alike = problem.packing == Packing::kNone;
  const std::int64_t most = std::max<std::int64_t>(problem.heads_per_group() / kFewestHeads, 1);
  for (std::int64_t count = 1; count <= most; ++count) {
    const std::int64_t blocks = groups * count;
    if (blocks >= 4 * threads || (all_alike && blocks % threads == 0)) return count;
  }
  return 0;
}

// Enough (head, slice) items that the threads sharing a block stay busy to the end.
std::int64_t slices_for(std::int64_t heads, std::int64_t p16, int threads) {
  const std::int64_t most = p16 / kRowPad;
  std::int64_t slices = 1;
  while (slices < most && heads * slices < 4 * threads && heads * slices % threads != 0) ++slices;
  return slices;
}

}  // namespace

CpuLayout::CpuLayout(const Problem& problem, const Config& config, int threads)
    : q(std::max(config.q, 1)),
      n(problem.n),
      p(problem.p),
      q16(padded(q)),
      n16(padded(n)),
      p16(padded(p)) {
  const std::int64_t cut = blocks_for(problem, threads);
  blocks_in_parallel = cut > 0;
  heads = divide_up(problem.heads_per_group(), std::max<std::int64_t>(cut, 1));
  blocks_per_group = divide_up(problem.heads_per_group(), heads);
  slices = blocks_in_parallel ? 1 : slices_for(heads, p16, threads);
  slice = padded(divide_up(p16, slices));
  slices = divide_up(p16, slice);
  // A window's B, C and C B^T should stay in a core's L2 while the heads pass over them; with few
  // heads each pass is short, and there are barriers, so windows are longer.
  window = blocks_in_parallel ? 4 : std::clamp<std::int64_t>(32 / heads, 4, 16);
  native_bf16 = config.isa == Isa::kAvx512Bf16;
  keeps_entering = config.route == Route::kStaged;

  slots = blocks_in_parallel ? window : 2 * window;

  Offsets block;
  chunks = block.take<Chunk>(slots);
  CB = block.take<float>(slots * q * q16);
  decay = block.take<float>(slots * heads * kDecayRows * q16);
  log_sums = block.take<double>(slots * heads);
  log_decay = block.take<double>(heads);
  states = block.take<float>(heads * n16 * p16);
  entering = block.take<float>(keeps_entering ? slots * heads * n16 * p16 : 0);
  block_bytes = block.end();

  Offsets worker;
  held = worker.take<Held>(slots);
  risky = worker.take<bool>(slots);
  B = worker.take<float>(slots * q16 * n16);
  C = worker.take<float>(slots * q16 * n16);
  B_pairs = worker.take<std::uint32_t>(native_bf16 ? slots * q16 / 2 * n16 : 0);
  C_pairs = worker.take<std::uint32_t>(native_bf16 ? slots * q * n16 / 2 : 0);
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
  const std::int64_t in_flight =
      blocks_in_parallel
          ? std::min<std::int64_t>(threads, problem.sequences * problem.g * blocks_per_group)
          : 1;
  blocks = all.take<std::byte>(static_cast<std::int64_t>(block_bytes) * in_flight);
  workers = all.take<std::byte>(static_cast<std::int64_t>(worker_bytes) * threads);
  total = all.end();
}

}  // namespace chunkscan
