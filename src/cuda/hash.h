// A 64-bit hash for checksums and names of files: finds damage and tells keys apart, resists
// nobody.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

namespace chunkscan::cuda {

constexpr std::uint64_t kHashSeed = 0x9e3779b97f4a7c15u;

inline std::uint64_t hash_step(std::uint64_t hash, std::uint64_t word) {
  hash = (hash ^ word) * 0xff51afd7ed558ccdu;
  return hash ^ (hash >> 32);
}

inline std::uint64_t hash_bytes(std::string_view bytes, std::uint64_t hash = kHashSeed) {
  hash = hash_step(hash, bytes.size());
  std::size_t at = 0;
  for (std::uint64_t word = 0; at + sizeof word <= bytes.size(); at += sizeof word) {
    std::memcpy(&word, bytes.data() + at, sizeof word);
    hash = hash_step(hash, word);
  }
  std::uint64_t rest = 0;
  if (at < bytes.size()) std::memcpy(&rest, bytes.data() + at, bytes.size() - at);
  return hash_step(hash, rest);
}

}  // namespace chunkscan::cuda
