#include "io/file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <filesystem>
#include <utility>

#include "io/sentence.h"

namespace chunkscan::io {

namespace {

namespace fs = std::filesystem;

// Linux moves at most 2^31 - 4096 bytes a call.
constexpr std::size_t kMostPerCall = std::size_t{1} << 30;

// A file that disappears again unless it is moved to its final name.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& target) : target_(target) {
    // The process and a counter make the name; O_EXCL settles what is left of chance. mkstemp
    // would make the file unreadable to everyone else, whatever the umask says.
    static std::atomic<int> counter = 0;
    name_ = target + ".tmp-" + std::to_string(getpid()) + "-" + std::to_string(counter++);
    descriptor_ = open(name_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (descriptor_ < 0) fail_on_file(target_, "written", errno);
  }
  ~TemporaryFile() {
    if (descriptor_ >= 0) close(descriptor_);
    if (!moved_) unlink(name_.c_str());
  }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;

  void write(std::span<const std::byte> bytes) {
    while (!bytes.empty()) {
      const ssize_t done = ::write(descriptor_, bytes.data(), std::min(bytes.size(), kMostPerCall));
      if (done < 0 && errno == EINTR) continue;
      if (done < 0) fail_on_file(target_, "written", errno);
      bytes = bytes.subspan(static_cast<std::size_t>(done));
    }
  }

  void move_to_target() {
    if (fsync(descriptor_) != 0) fail_on_file(target_, "written", errno);
    const int status = close(std::exchange(descriptor_, -1));
    if (status != 0) fail_on_file(target_, "written", errno);
    if (rename(name_.c_str(), target_.c_str()) != 0) fail_on_file(target_, "replaced", errno);
    moved_ = true;
  }

 private:
  std::string target_, name_;
  int descriptor_ = -1;
  bool moved_ = false;
};

// The file that writing to `path` replaces or makes. A rename replaces whatever has the name: a
// link would lose its target, /dev/null its device.
std::string target_of(const std::string& path) {
  constexpr const char* kRule = "a regular file or a free name";
  std::error_code ignored;
  if (!fs::exists(path, ignored)) {
    if (fs::is_symlink(path, ignored)) {
      refuse_file(path, "file", kRule, "a symbolic link to nothing");
    }
    return path;
  }
  const fs::path target = fs::canonical(path, ignored);
  if (!fs::is_regular_file(target, ignored)) {
    refuse_file(path, "file", kRule, "a directory, pipe or device");
  }
  return target.string();
}

}  // namespace

InputFile::InputFile(const std::string& path) : path_(path) {
  // Without O_NONBLOCK a pipe without a writer would hang here.
  descriptor_ = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (descriptor_ < 0) fail_on_file(path_, "opened", errno);
  struct stat status {};
  const bool regular = fstat(descriptor_, &status) == 0 && S_ISREG(status.st_mode);
  if (!regular) {
    close(descriptor_);
    refuse_file(path_, "file", "a regular file", "a directory, pipe or device");
  }
  size_ = static_cast<std::uint64_t>(status.st_size);
}

InputFile::~InputFile() { close(descriptor_); }

void InputFile::read(void* to, std::size_t size) {
  std::byte* next = static_cast<std::byte*>(to);
  while (size > 0) {
    const ssize_t done = ::read(descriptor_, next, std::min(size, kMostPerCall));
    if (done < 0 && errno == EINTR) continue;
    if (done < 0) fail_on_file(path_, "read", errno);
    if (done == 0) refuse_file(path_, "file", std::to_string(size) + " bytes more", "its end");
    next += done;
    size -= static_cast<std::size_t>(done);
  }
}

void require_writable_file(const std::string& path) { TemporaryFile trial(target_of(path)); }

void write_file(const std::string& path, std::span<const std::span<const std::byte>> pieces) {
  TemporaryFile file(target_of(path));
  for (std::span<const std::byte> piece : pieces) file.write(piece);
  file.move_to_target();
}

}  // namespace chunkscan::io
