// A file of compiled kernels. A pack is one with many kernels, each file of the disk cache one
// with a single kernel.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "cuda/kernel_key.h"

namespace chunkscan::cuda {

struct Image {
  KernelKey key;
  Compiled code;
};

// The bytes of a file with these images, of this library's sources.
std::string encode(std::span<const Image> images);

// Open for reading: the index is read and checked at once, an image when it is asked for.
class ImageFile {
 public:
  // Trusts nothing in the file. Throws Error(kInput): no such file, no image file, damaged, or of
  // other sources than this library's.
  explicit ImageFile(const std::string& path);

  // Nothing where the file has no such kernel, or a damaged one.
  std::optional<Compiled> find(const KernelKey& key) const;

  std::size_t size() const { return index_.size(); }

  struct Listed {
    KernelKey key;
    std::uint64_t bytes;
    int compiler;
    bool ptx;
  };
  std::vector<Listed> list() const;  // in the order of encode()

 private:
  struct Entry {
    std::uint64_t offset, bytes, checksum;
    int compiler;
    bool ptx;
  };
  class File;

  bool parse_index(std::string_view index, std::uint64_t count, std::uint64_t file_bytes);

  std::shared_ptr<const File> file_;
  std::unordered_map<KernelKey, Entry, KernelKeyHash> index_;
};

}  // namespace chunkscan::cuda
