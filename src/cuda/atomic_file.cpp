#include "cuda/atomic_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <system_error>

namespace chunkscan::cuda {

namespace {

std::string last_error() { return std::generic_category().message(errno); }

std::string write_all(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = ::write(file, bytes.data(), bytes.size());
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) return last_error();
    bytes.remove_prefix(static_cast<std::size_t>(written));
  }
  return "";
}

}  // namespace

std::string write_whole(const std::string& path, std::string_view bytes) {
  static std::atomic<unsigned> count{0};
  const std::string temporary = path + std::string(kTemporary) + std::to_string(::getpid()) + "-" +
                                std::to_string(count.fetch_add(1));
  ::unlink(temporary.c_str());  // of an earlier process with this number
  const int file = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file < 0) return last_error();
  std::string why = write_all(file, bytes);
  if (::close(file) != 0 && why.empty()) why = last_error();
  if (why.empty() && std::rename(temporary.c_str(), path.c_str()) != 0) why = last_error();
  if (!why.empty()) ::unlink(temporary.c_str());
  return why;
}

}  // namespace chunkscan::cuda
