// The device code that this library carries as text.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace chunkscan::cuda {

struct Source {
  const char* name;       // as in #include: "sm90/compute_out.cuh"
  std::string_view text;  // a zero follows
};

// Every file of src/cuda/kernels, sorted by name.
std::span<const Source> kernel_sources();

// Of all names and texts.
std::uint64_t sources_hash();

}  // namespace chunkscan::cuda
