#include "cuda/code.h"

#include <algorithm>
#include <atomic>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <unordered_map>

#include "chunkscan/error.h"
#include "cuda/cache.h"
#include "cuda/driver.h"
#include "cuda/nvrtc.h"
#include "cuda/pack.h"
#include "cuda/sources.h"

namespace chunkscan::cuda {

namespace {

// A thread that needs what another is compiling waits for it.
struct Slot {
  std::mutex mutex;
  std::optional<Compiled> code;
};

struct Seen {
  std::mutex mutex;
  std::unordered_map<KernelKey, std::shared_ptr<Slot>, KernelKeyHash> slots;
  std::atomic<std::uint64_t> compilations{0};
};

Seen& seen() {
  static Seen& the_seen = *new Seen;  // never destroyed: threads may outlive main()
  return the_seen;
}

std::shared_ptr<Slot> slot_of(const KernelKey& key) {
  Seen& s = seen();
  std::scoped_lock lock(s.mutex);
  std::shared_ptr<Slot>& slot = s.slots[key];
  if (slot == nullptr) slot = std::make_shared<Slot>();
  return slot;
}

Compiled make_code(const KernelKey& key) {
  const std::optional<Compiled> packed = find_packed(key);
  const int driver = driver_version();
  if (packed && (driver == 0 || refuses_code(*packed, driver).empty())) return *packed;
  const int compiler = nvrtc_version();
  if (packed && compiler == 0) return *packed;  // load() will say what this driver is too old for
  if (compiler > 0) {
    if (std::optional<Compiled> cached = read_cached(key, compiler)) return *cached;
  }
  Compiled code = compile(source_of(key), kernel_sources(), key.architecture);
  ++seen().compilations;
  write_cached(key, code);
  return code;
}

}  // namespace

std::string source_of(const KernelKey& key) {
  return "#include \"" + key.file + "\"\nextern \"C\" __global__ void __launch_bounds__(" +
         std::to_string(key.threads) + ", " + std::to_string(key.min_blocks) +
         ")\nchunkscan_kernel(const __grid_constant__ " + key.params + " params) {\n  " + key.body +
         "(params);\n}\n";
}

Compiled code_of(const KernelKey& key) {
  const std::shared_ptr<Slot> slot = slot_of(key);
  std::scoped_lock lock(slot->mutex);
  if (!slot->code) slot->code = make_code(key);
  return *slot->code;
}

std::vector<Compiled> codes_of(std::span<const KernelKey> keys, const Progress& progress) {
  std::vector<Compiled> codes(keys.size());
  std::atomic<std::size_t> next{0}, done{0};
  std::mutex mutex;
  std::exception_ptr failure;
  auto work = [&](const Progress& tell) {
    for (std::size_t i = next++; i < keys.size(); i = next++) {
      try {
        codes[i] = code_of(keys[i]);
        ++done;
        if (tell) tell(done, keys.size());
      } catch (...) {
        std::scoped_lock lock(mutex);
        if (failure == nullptr) failure = std::current_exception();
        next = keys.size();
      }
    }
  };
  {
    const std::size_t most = std::max(1u, std::thread::hardware_concurrency());
    std::vector<std::jthread> helpers;  // joined at the end of this block
    for (std::size_t i = 1; i < std::min(most, keys.size()); ++i)
      helpers.emplace_back(work, Progress());
    work(progress);
  }
  if (failure != nullptr) std::rethrow_exception(failure);
  return codes;
}

std::string refuses_code(const Compiled& code, int driver_version) {
  // A driver takes cubins of its whole CUDA major version, but PTX of no newer compiler at all.
  const int needed = code.ptx ? code.compiler : code.compiler / 1000 * 1000;
  if (driver_version >= needed) return "";
  return "expected a driver for CUDA " + version_text(needed) + " or later, which NVRTC " +
         version_text(code.compiler) + "'s kernels need, got one for CUDA " +
         version_text(driver_version);
}

std::uint64_t compilations() { return seen().compilations; }

void forget_code() {
  Seen& s = seen();
  std::scoped_lock lock(s.mutex);
  s.slots.clear();
}

}  // namespace chunkscan::cuda
