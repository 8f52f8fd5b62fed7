// From a key to a kernel that can be launched in the current context.
#pragma once

#include <span>

#include "cuda/code.h"
#include "cuda/driver_types.h"
#include "cuda/kernel_key.h"

namespace chunkscan::cuda {

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

}  // namespace chunkscan::cuda
