#include "cuda/pack.h"

#include <filesystem>
#include <mutex>
#include <vector>

#include "chunkscan/error.h"
#include "chunkscan/pack.h"
#include "cuda/atomic_file.h"
#include "cuda/driver.h"
#include "cuda/environment.h"
#include "cuda/image_file.h"
#include "cuda/nvrtc_search.h"

namespace chunkscan::cuda {

namespace {

struct Packs {
  std::mutex mutex;
  std::vector<std::shared_ptr<const ImageFile>> loaded;  // the latest first
  bool searched = false;
  PackState default_state;
};

Packs& packs() {
  static Packs& the_packs = *new Packs;  // never destroyed: threads may outlive main()
  return the_packs;
}

std::string default_path() {
  if (std::string named = environment("CHUNKSCAN_PACK"); !named.empty()) return named;
  const std::string folder = library_folder();
  if (folder.empty()) return "";
  const std::filesystem::path beside = std::filesystem::path(folder) / "chunkscan.pack";
  std::error_code error;
  return std::filesystem::exists(beside, error) ? beside.string() : "";
}

// With the mutex held. A default pack that does not serve is a reason in `info`, not a failure.
void search_default(Packs& p) {
  if (p.searched) return;
  p.searched = true;
  p.default_state.path = default_path();
  if (p.default_state.path.empty()) return;
  try {
    p.loaded.push_back(std::make_shared<ImageFile>(p.default_state.path));
  } catch (const Error& error) {
    p.default_state.reason = error.what();
  }
}

}  // namespace

std::optional<Compiled> find_packed(const KernelKey& key) {
  Packs& p = packs();
  std::scoped_lock lock(p.mutex);
  search_default(p);
  for (const auto& pack : p.loaded) {
    if (std::optional<Compiled> code = pack->find(key)) return code;
  }
  return std::nullopt;
}

void write_pack(std::span<const KernelKey> keys, const std::string& path,
                const Progress& progress) {
  std::vector<Compiled> codes = codes_of(keys, progress);
  std::vector<Image> images;
  for (std::size_t i = 0; i < keys.size(); ++i) images.push_back({keys[i], std::move(codes[i])});
  if (std::string why = write_whole(path, encode(images)); !why.empty()) {
    throw Error(ErrorKind::kRuntime,
                "[pack] " + path + ": expected a file that can be written, got " + why);
  }
}

PackState default_pack() {
  Packs& p = packs();
  std::scoped_lock lock(p.mutex);
  search_default(p);
  return p.default_state;
}

void forget_packs() {
  Packs& p = packs();
  std::scoped_lock lock(p.mutex);
  p.loaded.clear();
  p.searched = false;
  p.default_state = {};
}

}  // namespace chunkscan::cuda

namespace chunkscan {

void load_pack(const std::string& path) {
  auto pack = std::make_shared<cuda::ImageFile>(path);
  cuda::Packs& p = cuda::packs();
  std::scoped_lock lock(p.mutex);
  cuda::search_default(p);
  p.loaded.insert(p.loaded.begin(), std::move(pack));
}

std::vector<PackedKernel> list_pack(const std::string& path) {
  std::vector<PackedKernel> kernels;
  for (const cuda::ImageFile::Listed& row : cuda::ImageFile(path).list()) {
    kernels.push_back({cuda::name_of(row.key), cuda::config_of(row.key), row.key.architecture,
                       cuda::version_text(row.compiler), row.ptx, row.bytes});
  }
  return kernels;
}

}  // namespace chunkscan
