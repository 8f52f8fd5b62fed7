#include "cuda/driver.h"

#include <dlfcn.h>

#include "chunkscan/error.h"

namespace chunkscan::cuda {

namespace {

constexpr int kOldest = 12000;  // the first with cuTensorMapEncodeTiled and cuCtxGetId

struct Loaded {
  Driver table = {};
  int version = 0;
  std::string unavailable;
};

// Looks functions up and remembers the first that is missing.
class Library {
 public:
  explicit Library(void* handle) : handle_(handle) {}

  template <class Function>
  void find(Function*& function, const char* symbol) {
    function = reinterpret_cast<Function*>(dlsym(handle_, symbol));
    if (function == nullptr && missing_ == nullptr) missing_ = symbol;
  }

  const char* missing() const { return missing_; }

 private:
  void* handle_;
  const char* missing_ = nullptr;
};

// The suffixes are those that cuda.h's macros add.
void find_all(Library& library, Driver& table) {
  library.find(table.cuGetErrorName, "cuGetErrorName");
  library.find(table.cuGetErrorString, "cuGetErrorString");
  library.find(table.cuDeviceGetCount, "cuDeviceGetCount");
  library.find(table.cuDeviceGet, "cuDeviceGet");
  library.find(table.cuDeviceGetName, "cuDeviceGetName");
  library.find(table.cuDeviceGetAttribute, "cuDeviceGetAttribute");
  library.find(table.cuDeviceTotalMem, "cuDeviceTotalMem_v2");
  library.find(table.cuDevicePrimaryCtxRetain, "cuDevicePrimaryCtxRetain");
  library.find(table.cuCtxGetCurrent, "cuCtxGetCurrent");
  library.find(table.cuCtxPushCurrent, "cuCtxPushCurrent_v2");
  library.find(table.cuCtxPopCurrent, "cuCtxPopCurrent_v2");
  library.find(table.cuCtxGetDevice, "cuCtxGetDevice");
  library.find(table.cuCtxGetId, "cuCtxGetId");
  library.find(table.cuModuleLoadData, "cuModuleLoadData");
  library.find(table.cuModuleLoadDataEx, "cuModuleLoadDataEx");
  library.find(table.cuModuleUnload, "cuModuleUnload");
  library.find(table.cuModuleGetFunction, "cuModuleGetFunction");
  library.find(table.cuFuncSetAttribute, "cuFuncSetAttribute");
  library.find(table.cuFuncGetAttribute, "cuFuncGetAttribute");
  library.find(table.cuLaunchKernelEx, "cuLaunchKernelEx");
  library.find(table.cuOccupancyMaxActiveBlocksPerMultiprocessor,
               "cuOccupancyMaxActiveBlocksPerMultiprocessor");
  library.find(table.cuMemAlloc, "cuMemAlloc_v2");
  library.find(table.cuMemFree, "cuMemFree_v2");
  library.find(table.cuMemPoolCreate, "cuMemPoolCreate");
  library.find(table.cuMemPoolSetAttribute, "cuMemPoolSetAttribute");
  library.find(table.cuMemAllocFromPoolAsync, "cuMemAllocFromPoolAsync");
  library.find(table.cuMemFreeAsync, "cuMemFreeAsync");
  library.find(table.cuMemcpyHtoD, "cuMemcpyHtoD_v2");
  library.find(table.cuMemcpyDtoH, "cuMemcpyDtoH_v2");
  library.find(table.cuMemcpyHtoDAsync, "cuMemcpyHtoDAsync_v2");
  library.find(table.cuMemcpyDtoHAsync, "cuMemcpyDtoHAsync_v2");
  library.find(table.cuMemsetD8Async, "cuMemsetD8Async");
  library.find(table.cuStreamCreate, "cuStreamCreate");
  library.find(table.cuStreamDestroy, "cuStreamDestroy_v2");
  library.find(table.cuStreamSynchronize, "cuStreamSynchronize");
  library.find(table.cuStreamBeginCapture, "cuStreamBeginCapture_v2");
  library.find(table.cuStreamEndCapture, "cuStreamEndCapture");
  library.find(table.cuGraphInstantiateWithFlags, "cuGraphInstantiateWithFlags");
  library.find(table.cuGraphLaunch, "cuGraphLaunch");
  library.find(table.cuGraphDestroy, "cuGraphDestroy");
  library.find(table.cuGraphExecDestroy, "cuGraphExecDestroy");
  library.find(table.cuEventCreate, "cuEventCreate");
  library.find(table.cuEventRecord, "cuEventRecord");
  library.find(table.cuEventSynchronize, "cuEventSynchronize");
  library.find(table.cuEventElapsedTime, "cuEventElapsedTime");
  library.find(table.cuEventDestroy, "cuEventDestroy_v2");
  library.find(table.cuTensorMapEncodeTiled, "cuTensorMapEncodeTiled");
}

std::string error_text(const Driver& table, CUresult result) {
  const char* name = nullptr;
  const char* text = nullptr;
  if (table.cuGetErrorName != nullptr) table.cuGetErrorName(result, &name);
  if (table.cuGetErrorString != nullptr) table.cuGetErrorString(result, &text);
  if (name == nullptr) return "error " + std::to_string(result);
  return text == nullptr ? name : std::string(name) + " (" + text + ")";
}

std::string open_driver(Loaded& loaded) {
  void* handle = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) return "expected an NVIDIA driver, got no libcuda.so.1";
  Driver& table = loaded.table;
  Library library(handle);
  library.find(table.cuInit, "cuInit");
  library.find(table.cuDriverGetVersion, "cuDriverGetVersion");
  if (library.missing() != nullptr) return "expected an NVIDIA driver, got another libcuda.so.1";
  find_all(library, table);
  int version = 0;
  table.cuDriverGetVersion(&version);
  if (version < kOldest) {
    return "expected a driver for CUDA " + version_text(kOldest) + " or later, got one for CUDA " +
           version_text(version);
  }
  if (library.missing() != nullptr) {
    return std::string("expected a complete libcuda.so.1, got one without ") + library.missing();
  }
  if (CUresult result = table.cuInit(0); result != CUDA_SUCCESS) {
    return "expected a working GPU, got " + error_text(table, result) + " from cuInit";
  }
  loaded.version = version;
  int count = 0;
  if (CUresult result = table.cuDeviceGetCount(&count); result != CUDA_SUCCESS) {
    return "expected a working GPU, got " + error_text(table, result) + " from cuDeviceGetCount";
  }
  return count > 0 ? "" : "expected a GPU, got a driver without one";
}

const Loaded& loaded_driver() {
  static const Loaded loaded = [] {
    Loaded result;
    result.unavailable = open_driver(result);
    return result;
  }();
  return loaded;
}

}  // namespace

std::string driver_unavailable() { return loaded_driver().unavailable; }

const Driver& driver() {
  const Loaded& loaded = loaded_driver();
  if (!loaded.unavailable.empty()) {
    throw Error(ErrorKind::kRuntime, "[forward] cuda: " + loaded.unavailable);
  }
  return loaded.table;
}

int driver_version() { return loaded_driver().version; }

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

void check(CUresult result, const char* doing) {
  if (result == CUDA_SUCCESS) return;
  throw Error(ErrorKind::kRuntime, std::string("[forward] cuda: failed to ") + doing + ": " +
                                       error_text(loaded_driver().table, result));
}

}  // namespace chunkscan::cuda
