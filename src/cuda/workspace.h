// The workspace of the staged route: where each array lies in it.
#pragma once

#include <cstddef>

#include "cuda/kernels/params.h"
#include "op/buffers.h"
#include "op/problem.h"

namespace chunkscan::cuda {

// Offsets in bytes.
struct Workspace {
  std::size_t cs_dt = 0, cs_low = 0, weight = 0, chunk = 0, chunk_log = 0, states = 0, total = 0;
};

// `tile_bytes`: of one head's state. Throws Error(kUnsupported) where no memory could hold it.
Workspace workspace_of(const Problem& problem, int q, bool compensated, std::int64_t tile_bytes);

// How many chunks of q tokens there are at most.
std::int64_t slots_of(const Problem& problem, int q);

Chunking chunking_of(const Problem& problem, const Buffers& buffers, int q);
Decay decay_of(const Problem& problem, const Workspace& layout, std::byte* workspace);

}  // namespace chunkscan::cuda
