#include "cuda/sources.h"

#include "cuda/hash.h"

namespace chunkscan::cuda {

std::uint64_t sources_hash() {
  static const std::uint64_t result = [] {
    std::uint64_t hash = kHashSeed;
    for (const Source& source : kernel_sources()) {
      hash = hash_bytes(source.text, hash_bytes(source.name, hash));
    }
    return hash;
  }();
  return result;
}

}  // namespace chunkscan::cuda
