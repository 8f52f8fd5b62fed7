#include "cuda/image_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <type_traits>

#include "chunkscan/error.h"
#include "cuda/hash.h"
#include "cuda/sources.h"

namespace chunkscan::cuda {

namespace {

// Layout, little-endian: Header, index (a Row and its four texts for each image), images.
struct Header {
  char magic[8];
  std::uint64_t sources;  // sources_hash() of the library that wrote it
  std::uint64_t file_bytes;
  std::uint64_t index_bytes;
  std::uint64_t count;
  std::uint64_t checksum;  // of the header with 0 here, and the index
};

struct Row {
  std::uint64_t offset, bytes, checksum;  // of the image
  std::int32_t threads, min_blocks, compiler, ptx;
  std::uint32_t text_bytes[4];  // file, body, params, architecture: they follow
};

constexpr std::uint64_t kMost = 64u << 20;  // bytes of an index or an image: far above any real one

constexpr char kMagic[8] = {'c', 'h', 'u', 'n', 'k', 'p', 'k', '1'};

template <class T>
std::string_view bytes_of(const T& value) {
  static_assert(std::has_unique_object_representations_v<T>);
  return {reinterpret_cast<const char*>(&value), sizeof value};
}

std::uint64_t checksum_of(Header header, std::string_view index) {
  header.checksum = 0;
  return hash_bytes(index, hash_bytes(bytes_of(header)));
}

// The front of `bytes`, taken off it; false where there is less.
bool take(std::string_view& bytes, std::size_t count, std::string_view& front) {
  if (count > bytes.size()) return false;
  front = bytes.substr(0, count);
  bytes.remove_prefix(count);
  return true;
}

[[noreturn]] void refuse_file(const std::string& path, const std::string& got) {
  throw Error(ErrorKind::kInput,
              "[pack] " + path + ": expected a pack of this version of chunkscan, got " + got);
}

}  // namespace

std::string encode(std::span<const Image> images) {
  std::size_t index_bytes = 0;
  for (const Image& image : images) {
    const KernelKey& key = image.key;
    index_bytes += sizeof(Row) + key.file.size() + key.body.size() + key.params.size() +
                   key.architecture.size();
  }
  std::string index, code;
  for (const Image& image : images) {
    const KernelKey& key = image.key;
    Row row = {};
    const std::string* texts[] = {&key.file, &key.body, &key.params, &key.architecture};
    for (int i = 0; i < 4; ++i) row.text_bytes[i] = static_cast<std::uint32_t>(texts[i]->size());
    const std::string_view bytes(image.code.image.data(), image.code.image.size());
    row.offset = sizeof(Header) + index_bytes + code.size();
    row.bytes = bytes.size();
    row.checksum = hash_bytes(bytes);
    row.threads = key.threads;
    row.min_blocks = key.min_blocks;
    row.compiler = image.code.compiler;
    row.ptx = image.code.ptx;
    index += bytes_of(row);
    for (const std::string* text : texts) index += *text;
    code += bytes;
  }
  Header header = {};
  std::memcpy(header.magic, kMagic, sizeof kMagic);
  header.sources = sources_hash();
  header.file_bytes = sizeof header + index.size() + code.size();
  header.index_bytes = index.size();
  header.count = images.size();
  header.checksum = checksum_of(header, index);
  return std::string(bytes_of(header)) + index + code;
}

// A descriptor stays valid when the file is replaced, and reading past a cut gives an error where a
// mapping would give a signal.
class ImageFile::File {
 public:
  explicit File(const std::string& path) : descriptor_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    struct stat status = {};
    if (descriptor_ < 0) refuse_file(path, std::strerror(errno));
    if (::fstat(descriptor_, &status) != 0 || !S_ISREG(status.st_mode)) {
      ::close(descriptor_);
      refuse_file(path, "something that is no file");
    }
    bytes_ = static_cast<std::uint64_t>(status.st_size);
  }
  ~File() { ::close(descriptor_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;

  std::uint64_t bytes() const { return bytes_; }

  bool read(std::uint64_t offset, void* to, std::uint64_t bytes) const {
    char* at = static_cast<char*>(to);
    while (bytes > 0) {
      const ssize_t got = ::pread(descriptor_, at, bytes, static_cast<off_t>(offset));
      if (got < 0 && errno == EINTR) continue;
      if (got <= 0) return false;
      at += got;
      offset += static_cast<std::uint64_t>(got);
      bytes -= static_cast<std::uint64_t>(got);
    }
    return true;
  }

 private:
  int descriptor_;
  std::uint64_t bytes_ = 0;
};

ImageFile::ImageFile(const std::string& path) : file_(std::make_shared<File>(path)) {
  Header header = {};
  if (!file_->read(0, &header, sizeof header) ||
      std::memcmp(header.magic, kMagic, sizeof kMagic) != 0) {
    refuse_file(path, "another kind of file");
  }
  if (header.file_bytes != file_->bytes() || header.index_bytes > kMost ||
      header.index_bytes > file_->bytes() - sizeof header) {
    refuse_file(path, "a file that was cut or extended");
  }
  std::string index(header.index_bytes, '\0');
  if (!file_->read(sizeof header, index.data(), index.size()) ||
      header.checksum != checksum_of(header, index) ||
      !parse_index(index, header.count, header.file_bytes)) {
    refuse_file(path, "a damaged file");
  }
  if (header.sources != sources_hash()) refuse_file(path, "another version's");
}

bool ImageFile::parse_index(std::string_view index, std::uint64_t count, std::uint64_t file_bytes) {
  for (std::uint64_t i = 0; i < count; ++i) {
    Row row = {};
    std::string_view front, texts[4];
    if (!take(index, sizeof row, front)) return false;
    std::memcpy(&row, front.data(), sizeof row);
    for (int t = 0; t < 4; ++t) {
      if (!take(index, row.text_bytes[t], texts[t])) return false;
    }
    if (row.bytes > kMost || row.offset > file_bytes || row.bytes > file_bytes - row.offset) {
      return false;
    }
    KernelKey key = {std::string(texts[0]), std::string(texts[1]), std::string(texts[2]),
                     row.threads,           row.min_blocks,        std::string(texts[3])};
    index_[std::move(key)] = {row.offset, row.bytes, row.checksum, row.compiler, row.ptx != 0};
  }
  return index.empty();
}

std::vector<ImageFile::Listed> ImageFile::list() const {
  std::vector<std::pair<std::uint64_t, Listed>> rows;
  for (const auto& [key, entry] : index_) {
    rows.push_back({entry.offset, {key, entry.bytes, entry.compiler, entry.ptx}});
  }
  std::sort(rows.begin(), rows.end(),
            [](const auto& a, const auto& b) { return a.first < b.first; });
  std::vector<Listed> listed;
  for (auto& row : rows) listed.push_back(std::move(row.second));
  return listed;
}

std::optional<Compiled> ImageFile::find(const KernelKey& key) const {
  const auto found = index_.find(key);
  if (found == index_.end()) return std::nullopt;
  const Entry& entry = found->second;
  Compiled code;
  code.ptx = entry.ptx;
  code.compiler = entry.compiler;
  code.image.resize(entry.bytes);
  if (!file_->read(entry.offset, code.image.data(), entry.bytes)) return std::nullopt;
  if (hash_bytes({code.image.data(), code.image.size()}) != entry.checksum) return std::nullopt;
  return code;
}

}  // namespace chunkscan::cuda
