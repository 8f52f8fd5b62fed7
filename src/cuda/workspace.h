// The workspace of the staged route: where each array lies in it.
#pragma once

#include <cstddef>

#include "cuda/kernels/params.h"
#include "op/buffers.h"
#include "op/problem.h"

namespace chunkscan::cuda {

// Offsets in bytes.
struct Workspace {
  std::size_t cs_dt = 0, cs_low = 0, weight = 0, chunk = 0, chunk_log = 0, states = 0;
  std::size_t runs = 0, row_runs = 0, tile_runs = 0;  // of seq_idx
  std::size_t total = 0;
};

// `tile_bytes`: of one head's state. Throws Error(kUnsupported) where no memory could hold it.
Workspace workspace_of(const Problem& problem, int q, bool compensated, std::int64_t tile_bytes);

// How many chunks of q tokens there are at most; with seq_idx, if no run ended inside one.
std::int64_t slots_of(const Problem& problem, int q);

Chunking chunking_of(const Problem& problem, const Buffers& buffers, int q, const Workspace& layout,
                     std::byte* workspace);
Decay decay_of(const Problem& problem, const Workspace& layout, std::byte* workspace);
FindRunsParams find_runs_of(const Problem& problem, const Buffers& buffers, const Workspace& layout,
                            std::byte* workspace);

}  // namespace chunkscan::cuda
