#include "cuda/cache.h"

#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <vector>

#include "chunkscan/error.h"
#include "cuda/atomic_file.h"
#include "cuda/environment.h"
#include "cuda/hash.h"
#include "cuda/image_file.h"
#include "cuda/sources.h"

namespace chunkscan::cuda {

namespace {

namespace fs = std::filesystem;

constexpr std::string_view kExtension = ".kernel";

std::string path_of(const std::string& directory, const KernelKey& key, int compiler) {
  std::uint64_t hash = hash_step(sources_hash(), hash_of(key));
  hash = hash_step(hash, static_cast<std::uint64_t>(compiler));
  char name[17];
  std::snprintf(name, sizeof name, "%016llx", static_cast<unsigned long long>(hash));
  return (fs::path(directory) / name).string() + std::string(kExtension);
}

// Makes the directory and the ones above it, for this user alone.
void make_private(const fs::path& directory) {
  std::error_code error;
  if (fs::exists(directory, error)) return;
  if (directory.has_relative_path()) make_private(directory.parent_path());
  ::mkdir(directory.c_str(), 0700);
}

struct Found {
  fs::path path;
  fs::file_time_type used;
  std::uint64_t bytes;
};

// Removes the files that were used longest ago, temporary ones of dead processes among them.
void trim(const std::string& directory, std::uint64_t limit_bytes) {
  std::vector<Found> files;
  std::uint64_t total = 0;
  std::error_code error;
  for (fs::directory_iterator entry(directory, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->path().filename().string().find(kExtension) == std::string::npos) continue;
    std::error_code gone;  // another process may have removed it
    const Found file = {entry->path(), entry->last_write_time(gone), entry->file_size(gone)};
    if (gone) continue;
    files.push_back(file);
    total += file.bytes;
  }
  std::sort(files.begin(), files.end(),
            [](const Found& a, const Found& b) { return a.used < b.used; });
  for (const Found& file : files) {
    if (total <= limit_bytes) break;
    fs::remove(file.path, error);
    total -= file.bytes;
  }
}

}  // namespace

std::string cache_directory() {
  if (const std::string own = environment("CHUNKSCAN_CACHE"); !own.empty()) {
    return own == "off" ? "" : own;
  }
  // A relative path there is invalid and to be ignored, says the XDG specification.
  if (const fs::path xdg = environment("XDG_CACHE_HOME"); xdg.is_absolute()) {
    return (xdg / "chunkscan").string();
  }
  std::error_code error;  // accounts of services have homes that do not exist
  const fs::path home = environment("HOME");
  return home.is_absolute() && fs::is_directory(home, error)
             ? (home / ".cache" / "chunkscan").string()
             : "";
}

std::optional<Compiled> read_cached(const KernelKey& key, int compiler) {
  const std::string directory = cache_directory();
  if (directory.empty()) return std::nullopt;
  const std::string path = path_of(directory, key, compiler);
  try {
    std::optional<Compiled> code = ImageFile(path).find(key);
    if (!code || code->compiler != compiler) return std::nullopt;
    std::error_code ignored;  // a directory that cannot be written still serves
    fs::last_write_time(path, fs::file_time_type::clock::now(), ignored);
    return code;
  } catch (const Error&) {
    return std::nullopt;  // absent, damaged or of other sources: all the same here
  }
}

void write_cached(const KernelKey& key, const Compiled& code, std::uint64_t limit_bytes) {
  const std::string directory = cache_directory();
  if (directory.empty()) return;
  make_private(directory);
  const Image image = {key, code};
  write_whole(path_of(directory, key, code.compiler), encode({&image, 1}));
  trim(directory, limit_bytes);
}

}  // namespace chunkscan::cuda
