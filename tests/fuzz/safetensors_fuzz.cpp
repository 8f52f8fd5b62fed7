// Reads arbitrary bytes as a safetensors file. They are either refused with an Error or every byte
// of every tensor can be read, and what was read survives being written and read again.
#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string>

#include "io/safetensors.h"

namespace {

using chunkscan::io::Safetensors;
using chunkscan::io::Tensor;

void require(bool holds) {
  if (!holds) std::abort();
}

// A file in memory: the reader gets to it by a path, as it gets to any other.
class MemoryFile {
 public:
  MemoryFile(const std::uint8_t* bytes, std::size_t size) {
    descriptor_ = memfd_create("fuzz", MFD_CLOEXEC);
    require(descriptor_ >= 0 && write(descriptor_, bytes, size) == static_cast<ssize_t>(size));
  }
  ~MemoryFile() { close(descriptor_); }
  std::string path() const { return "/proc/self/fd/" + std::to_string(descriptor_); }

 private:
  int descriptor_;
};

// Where round trips are written.
class ScratchDirectory {
 public:
  ScratchDirectory() { require(mkdtemp(name_.data()) != nullptr); }
  ~ScratchDirectory() { std::filesystem::remove_all(name_); }
  std::string file() const { return name_ + "/file"; }

 private:
  std::string name_ = (std::filesystem::temp_directory_path() / "fuzz-XXXXXX").string();
};

void require_equal(const Safetensors& a, const Safetensors& b) {
  require(a.metadata == b.metadata && a.tensors.size() == b.tensors.size());
  for (const auto& [name, tensor] : a.tensors) {
    const Tensor& other = b.tensors.at(name);
    require(tensor.dtype == other.dtype && tensor.shape == other.shape);
    require(std::memcmp(tensor.data, other.data, tensor.bytes()) == 0);
    require(reinterpret_cast<std::uintptr_t>(other.data) % size_of(other.dtype) == 0);
    require(tensor.view().present());
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* bytes, std::size_t size) {
  static const ScratchDirectory scratch;
  const MemoryFile file(bytes, size);
  try {
    const Safetensors read = chunkscan::io::read_safetensors(file.path());
    chunkscan::io::write_safetensors(scratch.file(), read.tensors, read.metadata);
    require_equal(read, chunkscan::io::read_safetensors(scratch.file()));
  } catch (const chunkscan::Error& error) {
    require(std::strlen(error.what()) < 1000);
  }
  return 0;
}
