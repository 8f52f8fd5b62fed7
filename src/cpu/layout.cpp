#include "cpu/layout.h"

#include <algorithm>
#include <cmath>
#include <limits>

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

struct Cut {
  std::int64_t heads;   // of a block
  std::int64_t slices;  // of a head; 1 where a block has several
};

// What preparing a chunk costs, beside the chunk's own work for one head (Zen 5, p 64, n 128, q 36
// to 64: 0.2 to 0.3).
constexpr double kPrepare = 0.25;

// A block of more heads would prepare less often, but saves less than 0.1 % by it and asks for more
// scratch. It also bounds the search where a call without tokens names any number of heads.
constexpr std::int64_t kMostHeads = 256;

// The cut that is done first. Whole heads before slices, since these prepare more often.
Cut best_cut(const Problem& problem, int threads) {
  const std::int64_t group_heads = problem.heads_per_group();
  const double groups = static_cast<double>(problem.sequences * problem.g);
  const bool all_alike = problem.packing == Packing::kNone;
  const std::int64_t most_heads = std::min(group_heads, kMostHeads);
  Cut best{most_heads, 1};
  double least = std::numeric_limits<double>::infinity();
  const auto consider = [&](Cut cut) {
    const double blocks =
        groups * static_cast<double>(divide_up(group_heads, cut.heads) * cut.slices);
    const double rounds = blocks / threads;
    const double work = static_cast<double>(cut.heads) / static_cast<double>(cut.slices);
    // Blocks of different lengths balance, but for the last one of each thread.
    const double time = (all_alike ? std::ceil(rounds) : rounds + 1.0) * (kPrepare + work);
    if (time < least) {
      least = time;
      best = cut;
    }
  };
  for (std::int64_t heads = most_heads; heads >= 1; --heads) consider({heads, 1});
  const std::int64_t most_slices = padded(problem.p) / kRowPad;
  for (std::int64_t slices = 2; slices <= most_slices; ++slices) consider({1, slices});
  return best;
}

}  // namespace

CpuLayout::CpuLayout(const Problem& problem, const Config& config, int threads)
    : q(std::max(config.q, 1)), n(problem.n), p(problem.p), q16(padded(q)), n16(padded(n)) {
  const Cut cut = best_cut(problem, threads);
  heads = cut.heads;
  blocks_per_group = divide_up(problem.heads_per_group(), heads);
  slice = padded(divide_up(padded(p), cut.slices));
  slices = divide_up(padded(p), slice);
  // A window's B, C and C B^T should stay in a core's L2 while the heads pass over them.
  window = 4;
  native_bf16 = config.isa == Isa::kAvx512Bf16;
  keeps_entering = config.route == Route::kStaged;

  Offsets block;
  chunks = block.take<Chunk>(window);
  CB = block.take<float>(window * q * q16);
  decay = block.take<float>(window * heads * kDecayRows * q16);
  sums = block.take<HeadSums>(window * heads);
  log_decay = block.take<double>(heads);
  carried = block.take<Carried>(heads);
  lost = block.take<float>(heads * n16 * slice);
  states = block.take<float>(heads * n16 * slice);
  entering = block.take<float>(keeps_entering ? window * heads * n16 * slice : 0);
  block_bytes = block.end();

  Offsets worker;
  operands = worker.take<Operands>(window);
  B = worker.take<float>(window * q16 * n16);
  C = worker.take<float>(window * q16 * n16);
  B_pairs = worker.take<std::uint32_t>(native_bf16 ? window * q16 / 2 * n16 : 0);
  C_pairs = worker.take<std::uint32_t>(native_bf16 ? window * q * n16 / 2 : 0);
  columns = worker.take<float>(std::max(n16, slice) * q16);
  X = worker.take<float>(q16 * slice);
  X_pairs = worker.take<std::uint32_t>(native_bf16 ? q16 / 2 * slice : 0);
  S_pairs = worker.take<std::uint32_t>(native_bf16 ? n16 / 2 * slice : 0);
  M = worker.take<float>(kMostTileRows * q16);
  y = worker.take<float>(q16 * slice);
  z = worker.take<float>(q16 * slice);
  D = worker.take<float>(slice);
  rows = worker.take<float>(slice * n16);
  worker_bytes = worker.end();

  Offsets all;
  sequences = all.take<Sequence>(problem.sequences);
  initial_most =
      all.take<float>(slices > 1 && problem.initial_states ? problem.sequences * problem.h : 0);
  const std::int64_t in_flight =
      std::min<std::int64_t>(threads, problem.sequences * problem.g * blocks_per_group * slices);
  blocks = all.take<std::byte>(static_cast<std::int64_t>(block_bytes) * in_flight);
  workers = all.take<std::byte>(static_cast<std::int64_t>(worker_bytes) * in_flight);
  total = all.end();
}

}  // namespace chunkscan
