#include "cuda/kernel_key.h"

#include "cuda/hash.h"

namespace chunkscan::cuda {

std::size_t hash_of(const KernelKey& key) {
  std::uint64_t hash = kHashSeed;
  for (const std::string* text : {&key.file, &key.body, &key.params, &key.architecture}) {
    hash = hash_bytes(*text, hash);
  }
  hash = hash_step(hash, static_cast<std::uint64_t>(key.threads));
  return hash_step(hash, static_cast<std::uint64_t>(key.min_blocks));
}

}  // namespace chunkscan::cuda
