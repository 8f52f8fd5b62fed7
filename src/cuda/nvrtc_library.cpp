#include "cuda/nvrtc_library.h"

#include <dlfcn.h>

#include <algorithm>
#include <limits>
#include <mutex>

#include "cuda/driver.h"
#include "cuda/nvrtc.h"
#include "cuda/nvrtc_search.h"

namespace chunkscan::cuda {

namespace {

template <class Function>
bool find(void* handle, Function*& function, const char* symbol) {
  function = reinterpret_cast<Function*>(dlsym(handle, symbol));
  return function != nullptr;
}

bool find_all(void* handle, NvrtcLibrary& library) {
  return find(handle, library.error_string, "nvrtcGetErrorString") &&
         find(handle, library.version, "nvrtcVersion") &&
         find(handle, library.architecture_count, "nvrtcGetNumSupportedArchs") &&
         find(handle, library.architectures, "nvrtcGetSupportedArchs") &&
         find(handle, library.create, "nvrtcCreateProgram") &&
         find(handle, library.destroy, "nvrtcDestroyProgram") &&
         find(handle, library.compile, "nvrtcCompileProgram") &&
         find(handle, library.cubin_size, "nvrtcGetCUBINSize") &&
         find(handle, library.cubin, "nvrtcGetCUBIN") &&
         find(handle, library.ptx_size, "nvrtcGetPTXSize") &&
         find(handle, library.ptx, "nvrtcGetPTX") &&
         find(handle, library.log_size, "nvrtcGetProgramLogSize") &&
         find(handle, library.log, "nvrtcGetProgramLog");
}

// Null where that is no NVRTC from 12.0 on.
std::shared_ptr<const NvrtcLibrary> open(const std::string& candidate) {
  void* handle = dlopen(candidate.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return nullptr;
  auto library = std::make_shared<NvrtcLibrary>();
  int major = 0, minor = 0, count = 0;
  if (!find_all(handle, *library) || library->version(&major, &minor) != kNvrtcSuccess ||
      major < 12 || library->architecture_count(&count) != kNvrtcSuccess) {
    dlclose(handle);
    return nullptr;
  }
  library->number = 1000 * major + 10 * minor;
  library->known.resize(static_cast<std::size_t>(count));
  library->architectures(library->known.data());
  std::sort(library->known.begin(), library->known.end());
  Dl_info info = {};
  const bool told = dladdr(reinterpret_cast<void*>(library->version), &info) != 0;
  library->path = told ? info.dli_fname : candidate;
  return library;  // the library stays open: other threads may be compiling with it
}

struct State {
  std::mutex mutex;
  std::string forced;
  bool searched = false;
  std::shared_ptr<const NvrtcLibrary> library;
};

State& state() {
  static State& the_state = *new State;  // never destroyed: threads may outlive main()
  return the_state;
}

}  // namespace

std::shared_ptr<const NvrtcLibrary> nvrtc_library() {
  State& s = state();
  std::scoped_lock lock(s.mutex);
  if (s.searched) return s.library;
  if (!s.forced.empty()) {
    s.library = open(s.forced);
  } else {
    const int driver = driver_version() / 1000;
    for (const std::string& candidate :
         nvrtc_candidates(driver > 0 ? driver : std::numeric_limits<int>::max())) {
      s.library = open(candidate);
      if (s.library != nullptr) break;
    }
  }
  s.searched = true;
  return s.library;
}

void set_nvrtc_path(std::string path) {
  State& s = state();
  std::scoped_lock lock(s.mutex);
  s.forced = std::move(path);
  s.searched = false;
  s.library = nullptr;
}

}  // namespace chunkscan::cuda
