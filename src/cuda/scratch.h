// Scratch on a device, in the order of a stream.
#pragma once

#include <cstddef>

#include "cuda/driver_types.h"

namespace chunkscan::cuda {

// From a pool of the library's own for each device, which keeps what is given back. Both may be
// captured in a graph.
void* take_scratch(int device_index, std::size_t bytes, CUstream stream);
void give_scratch(void* memory, CUstream stream);

}  // namespace chunkscan::cuda
