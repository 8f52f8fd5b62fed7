#include "cuda/workspace.h"

#include <algorithm>

#include "chunkscan/error.h"

namespace chunkscan::cuda {

namespace {

std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return a / b + (a % b != 0 ? 1 : 0); }

std::int64_t padded_tokens(const Problem& problem) { return ceil_div(problem.l, 4) * 4; }

// Beyond the sequence it cuts nothing, and its multiples would overflow.
std::int64_t state_every(const Problem& problem) {
  return std::min(problem.state_every, problem.l + 1);
}

// Adds up arrays, each at a multiple of 256 bytes.
class Arena {
 public:
  // Behind each array there is room for a copy of whole 16 bytes that starts before its end.
  std::size_t array(std::int64_t count, std::int64_t element_bytes) {
    constexpr std::int64_t kBehind = 4096, kMost = std::int64_t{1} << 60;
    const std::int64_t start = total_;
    std::int64_t bytes = 0;
    if (__builtin_mul_overflow(count, element_bytes, &bytes) || bytes > kMost - total_) {
      throw Error(ErrorKind::kUnsupported,
                  "[forward] workspace: expected at most 2^60 bytes, got more");
    }
    total_ += ceil_div(bytes + kBehind, 256) * 256;
    return static_cast<std::size_t>(start);
  }
  std::size_t total() const { return static_cast<std::size_t>(total_); }

 private:
  std::int64_t total_ = 0;
};

}  // namespace

// The same count as in chunks.cuh.
std::int64_t slots_of(const Problem& problem, int q) {
  const std::int64_t K = state_every(problem);
  if (problem.packing == chunkscan::Packing::kCuSeqlens) {
    const std::int64_t before =
        K == 0 ? problem.l / q : problem.l / K * ceil_div(K, q) + problem.l % K / q;
    return before + problem.sequences;
  }
  const std::int64_t row =
      K == 0 ? ceil_div(problem.l, q) : problem.l / K * ceil_div(K, q) + ceil_div(problem.l % K, q);
  return problem.b * row;
}

Workspace workspace_of(const Problem& problem, int q, bool compensated, std::int64_t tile_bytes) {
  const bool runs = problem.packing == chunkscan::Packing::kSeqIdx;
  const std::int64_t tokens = problem.b * problem.h * padded_tokens(problem);
  const std::int64_t chunks = runs ? 0 : slots_of(problem, q) * problem.h;
  const std::int64_t tiles = runs ? run_state_slots(problem.b, problem.l, q) * problem.h : chunks;
  Arena arena;
  Workspace layout;
  layout.cs_dt = arena.array(tokens, sizeof(CsDt));
  layout.weight = arena.array(tokens, sizeof(float));
  layout.cs_low = arena.array(compensated ? tokens : 0, sizeof(float));
  layout.chunk = arena.array(chunks, sizeof(float));
  layout.chunk_log = arena.array(problem.log_decay ? chunks : 0, sizeof(float));
  layout.states = arena.array(tiles, tile_bytes);
  if (runs) {
    layout.runs = arena.array(problem.b * problem.l + 1, sizeof(i64));
    layout.row_runs = arena.array(problem.b + 1, sizeof(i64));
    layout.tile_runs = arena.array(run_tiles(problem.b * problem.l), sizeof(i64));
  }
  layout.total = arena.total();
  return layout;
}

Chunking chunking_of(const Problem& problem, const Buffers& buffers, int q, const Workspace& layout,
                     std::byte* workspace) {
  Chunking chunking{};
  chunking.l = problem.l;
  chunking.slots = slots_of(problem, q);
  chunking.slots_per_row = problem.b > 0 ? chunking.slots / problem.b : 0;
  chunking.state_every = state_every(problem);
  chunking.chunks_per_state = ceil_div(chunking.state_every, q);
  chunking.offsets = buffers.cu_seqlens.data;
  chunking.offsets_stride = buffers.cu_seqlens.strides[0];
  chunking.offsets_64 = problem.cu_seqlens_64;
  chunking.sequences = static_cast<int>(problem.sequences);
  chunking.runs = reinterpret_cast<const i64*>(workspace + layout.runs);
  chunking.row_runs = reinterpret_cast<const i64*>(workspace + layout.row_runs);
  return chunking;
}

FindRunsParams find_runs_of(const Problem& problem, const Buffers& buffers, const Workspace& layout,
                            std::byte* workspace) {
  FindRunsParams params{};
  params.seq_idx = reinterpret_cast<const int*>(buffers.seq_idx.data);
  params.strides[0] = buffers.seq_idx.strides[0];
  params.strides[1] = buffers.seq_idx.strides[1];
  params.rows = problem.b;
  params.l = problem.l;
  params.tile_runs = reinterpret_cast<i64*>(workspace + layout.tile_runs);
  params.runs = reinterpret_cast<i64*>(workspace + layout.runs);
  params.row_runs = reinterpret_cast<i64*>(workspace + layout.row_runs);
  return params;
}

Decay decay_of(const Problem& problem, const Workspace& layout, std::byte* workspace) {
  Decay decay{};
  decay.cs_dt = reinterpret_cast<CsDt*>(workspace + layout.cs_dt);
  decay.cs_low = reinterpret_cast<float*>(workspace + layout.cs_low);
  decay.weight = reinterpret_cast<float*>(workspace + layout.weight);
  decay.chunk = reinterpret_cast<float*>(workspace + layout.chunk);
  decay.chunk_log =
      problem.log_decay ? reinterpret_cast<float*>(workspace + layout.chunk_log) : nullptr;
  decay.l_pad = padded_tokens(problem);
  return decay;
}

}  // namespace chunkscan::cuda
