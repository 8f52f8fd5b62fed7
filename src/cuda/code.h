// From a key to code: what this process has seen | pack | disk cache | NVRTC. Needs no GPU.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "cuda/kernel_key.h"

namespace chunkscan::cuda {

// The translation unit of a key.
std::string source_of(const KernelKey& key);

// Throws Error(kRuntime) where neither pack, cache nor NVRTC has it.
Compiled code_of(const KernelKey& key);

// The same for all of them, in parallel. `progress`: called in the calling thread alone.
using Progress = std::function<void(std::size_t done, std::size_t all)>;
std::vector<Compiled> codes_of(std::span<const KernelKey> keys, const Progress& progress = {});

// "" = a driver for CUDA `driver_version` loads that code, else "expected ..., got ...".
std::string refuses_code(const Compiled& code, int driver_version);

// How often NVRTC has compiled a kernel in this process.
std::uint64_t compilations();

// For tests: forget the code that this process has seen, so that pack, cache and NVRTC are asked
// again.
void forget_code();

}  // namespace chunkscan::cuda
