// Memory on the CPU that starts where vectors like it to: for workspaces, and for tensors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>

namespace chunkscan {

// Bytes. A workspace has to start at a multiple of it, a tensor need not.
inline constexpr std::size_t kAlignment = 64;

struct FreeMemory {
  void operator()(void* memory) const { std::free(memory); }
};
using Memory = std::unique_ptr<void, FreeMemory>;

// At least `bytes`, rounded up to whole kAlignment; null where there is no such memory.
inline Memory aligned_memory(std::size_t bytes) {
  if (bytes > SIZE_MAX - kAlignment) return nullptr;
  const std::size_t lines = bytes / kAlignment + (bytes % kAlignment != 0 || bytes == 0 ? 1 : 0);
  return Memory(std::aligned_alloc(kAlignment, lines * kAlignment));
}

}  // namespace chunkscan
