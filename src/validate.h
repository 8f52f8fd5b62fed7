// The only place that refuses a user's input.
#pragma once

#include <cstddef>

#include "op/buffers.h"
#include "op/problem.h"

namespace chunkscan {

// Shapes, dtypes, options: all that can be seen without memory. Returns what is to be computed.
Problem validate_problem(const Inputs& inputs, const Outputs& outputs, const Options& options);

// Memory: null pointers, devices (all tensors on one, which is returned), alignment, overlap.
Device validate_memory(const Inputs& inputs, const Outputs& outputs);

// The values of cu_seqlens, on the CPU. (Every seq_idx is legal.)
void validate_contents(const Problem& problem, const Buffers& buffers);

// The address of a run()'s scratch.
void require_workspace(const void* workspace, std::size_t bytes);

// Throws where the tensors of a run() differ from those its plan was made for.
void require_fits(const Problem& problem, const Inputs& inputs, const Outputs& outputs);

}  // namespace chunkscan
