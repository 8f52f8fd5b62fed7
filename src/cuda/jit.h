// From a key to a kernel that can be launched: pack | disk cache | NVRTC, then the driver.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "cuda/driver_types.h"
#include "cuda/kernel_key.h"

namespace chunkscan::cuda {

// The translation unit of a key.
std::string source_of(const KernelKey& key);

// Needs no GPU. Throws Error(kRuntime) where neither pack, cache nor NVRTC has it.
Compiled code_of(const KernelKey& key);

// The same for all of them, in parallel.
std::vector<Compiled> codes_of(std::span<const KernelKey> keys);

// A block may use as much dynamic shared memory as the device has beside the static.
struct Kernel {
  CUfunction function = nullptr;
  int registers = 0;            // per thread
  int local_bytes = 0;          // per thread: spills and arrays
  int static_shared_bytes = 0;  // per block
  int max_threads = 0;          // of a block
};

// In the current context, once for each: later calls return the same kernel. It lives as long as
// the process. Throws Error(kRuntime).
const Kernel& load(const KernelKey& key);

// Null where load() has not been called in the current context; allocates nothing.
const Kernel* find_loaded(const KernelKey& key);

// load() for all of them; what has to be compiled is compiled in parallel.
void prepare(std::span<const KernelKey> keys);

// "" = a driver for CUDA `driver_version` loads that code, else "expected ..., got ...".
std::string refuses_code(const Compiled& code, int driver_version);

// How often NVRTC has compiled a kernel in this process.
std::uint64_t compilations();

// For tests: forget the code that this process has seen, so that pack, cache and NVRTC are asked
// again.
void forget_code();

}  // namespace chunkscan::cuda
