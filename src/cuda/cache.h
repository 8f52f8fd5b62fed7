// Compiled kernels on disk, one small file each. Nothing here throws: a cache that does not work
// costs time only.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cuda/kernel_key.h"

namespace chunkscan::cuda {

// $CHUNKSCAN_CACHE | $XDG_CACHE_HOME/chunkscan | ~/.cache/chunkscan; "" = none, or switched off by
// CHUNKSCAN_CACHE=off.
std::string cache_directory();

// Only what this library's sources and that compiler gave.
std::optional<Compiled> read_cached(const KernelKey& key, int compiler);

// Afterwards the oldest files go until the directory holds at most `limit_bytes`.
inline constexpr std::uint64_t kCacheBytes = 256u << 20;
void write_cached(const KernelKey& key, const Compiled& code,
                  std::uint64_t limit_bytes = kCacheBytes);

}  // namespace chunkscan::cuda
