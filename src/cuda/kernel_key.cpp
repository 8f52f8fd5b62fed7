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

std::string name_of(const KernelKey& key) { return key.file.substr(0, key.file.rfind('.')); }

std::string config_of(const KernelKey& key) {
  const std::size_t brace = key.body.find('{');
  if (brace == std::string::npos) return key.body;
  std::string text = key.body.substr(brace + 1, key.body.rfind('}') - brace - 1);
  constexpr std::string_view kNamespace = "chunkscan::cuda::";
  for (std::size_t at; (at = text.find(kNamespace)) != std::string::npos;) {
    text.erase(at, kNamespace.size());
  }
  return text;
}

}  // namespace chunkscan::cuda
