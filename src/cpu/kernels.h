// The CPU kernels as compiled for one instruction set.
#pragma once

#include <cstddef>
#include <span>

#include "op/buffers.h"
#include "op/config.h"
#include "op/problem.h"

namespace chunkscan {

struct CpuKernels {
  Isa isa;  // what this table was compiled for
  void (*run)(const Problem& problem, const Config& config, const Buffers& buffers, int threads,
              std::byte* workspace);
};

// Compiled in and supported by this machine, best first.
std::span<const Isa> cpu_isas();

// The table of a member of cpu_isas().
const CpuKernels& cpu_kernels(Isa isa);

}  // namespace chunkscan
