// Files of the operating system: a whole read, an all-or-nothing write.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>

namespace chunkscan::io {

// A regular file open for reading.
class InputFile {
 public:
  explicit InputFile(const std::string& path);
  ~InputFile();
  InputFile(const InputFile&) = delete;
  InputFile& operator=(const InputFile&) = delete;

  const std::string& path() const { return path_; }
  std::uint64_t size() const { return size_; }  // when it was opened
  // The next `size` bytes; throws when the file has become shorter.
  void read(void* to, std::size_t size);

 private:
  std::string path_;
  int descriptor_ = -1;
  std::uint64_t size_ = 0;
};

// Throws where write_file() would not get as far as writing. Leaves nothing behind.
void require_writable_file(const std::string& path);

// Replaces `path` by the pieces one after the other, or leaves everything as it was and throws.
void write_file(const std::string& path, std::span<const std::span<const std::byte>> pieces);

}  // namespace chunkscan::io
