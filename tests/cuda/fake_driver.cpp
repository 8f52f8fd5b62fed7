// A libcuda without a GPU: two devices, contexts and modules that are numbers. What it reports
// follows FAKE_CUDA_VERSION, FAKE_CUDA_INIT (a CUresult) and FAKE_CUDA_DEVICES.
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <vector>

#include "cuda/driver_types.h"

using namespace chunkscan::cuda;

namespace {

int setting(const char* name, int otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::atoi(text);
}

std::uintptr_t number(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

void* memory_at(CUdeviceptr pointer) { return reinterpret_cast<void*>(pointer); }

// Context 100 + d is the primary one of device d, 200 + d another one.
thread_local std::vector<CUcontext> current;

std::atomic<int> modules{0}, unloaded{0}, dynamic_shared{0};
std::atomic<int> allocated{0};  // memory, streams, events, graphs that have not been given back
std::atomic<int> events{0}, launched{0};
std::atomic<bool> capturing{false};

}  // namespace

extern "C" {

int fake_modules() { return modules; }
int fake_unloaded() { return unloaded; }
int fake_dynamic_shared() { return dynamic_shared; }

CUresult cuInit(unsigned) { return CUresult(setting("FAKE_CUDA_INIT", 0)); }
CUresult cuDriverGetVersion(int* version) {
  *version = setting("FAKE_CUDA_VERSION", 13000);
  return CUDA_SUCCESS;
}
CUresult cuGetErrorName(CUresult, const char** text) {
  *text = "CUDA_ERROR_FAKE";
  return CUDA_SUCCESS;
}
CUresult cuGetErrorString(CUresult, const char** text) {
  *text = "not really";
  return CUDA_SUCCESS;
}

CUresult cuDeviceGetCount(int* count) {
  *count = setting("FAKE_CUDA_DEVICES", 2);
  return CUDA_SUCCESS;
}
CUresult cuDeviceGet(CUdevice* device, int ordinal) {
  *device = ordinal;
  return ordinal < setting("FAKE_CUDA_DEVICES", 2) ? CUDA_SUCCESS : CUresult(101);
}
CUresult cuDeviceGetName(char* name, int, CUdevice device) {
  std::strcpy(name, device == 0 ? "Fake H200" : "Fake T4");
  return CUDA_SUCCESS;
}
CUresult cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  switch (attribute) {
    case CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT: *value = 132; break;
    case CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE: *value = 50 << 20; break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR: *value = device == 0 ? 9 : 7; break;
    case CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR: *value = device == 0 ? 0 : 5; break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR: *value = 233472; break;
    case CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: *value = 232448; break;
  }
  return CUDA_SUCCESS;
}
CUresult cuDeviceTotalMem_v2(std::size_t* bytes, CUdevice) {
  *bytes = std::size_t{141} << 30;
  return CUDA_SUCCESS;
}
CUresult cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  *context = reinterpret_cast<CUcontext>(std::uintptr_t(100 + device));
  return CUDA_SUCCESS;
}

CUresult cuCtxGetCurrent(CUcontext* context) {
  *context = current.empty() ? nullptr : current.back();
  return CUDA_SUCCESS;
}
CUresult cuCtxPushCurrent_v2(CUcontext context) {
  current.push_back(context);
  return CUDA_SUCCESS;
}
CUresult cuCtxPopCurrent_v2(CUcontext* context) {
  *context = current.back();
  current.pop_back();
  return CUDA_SUCCESS;
}
CUresult cuCtxGetDevice(CUdevice* device) {
  *device = static_cast<int>(number(current.back()) % 100);
  return CUDA_SUCCESS;
}
CUresult cuCtxGetId(CUcontext context, unsigned long long* id) {
  *id = number(context);
  return CUDA_SUCCESS;
}

CUresult cuModuleLoadData(CUmodule* module, const void*) {
  *module = reinterpret_cast<CUmodule>(std::uintptr_t(++modules));
  return CUDA_SUCCESS;
}
CUresult cuModuleUnload(CUmodule) {
  ++unloaded;
  return CUDA_SUCCESS;
}
CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  if (std::strcmp(name, "chunkscan_kernel") != 0) return CUresult(500);
  *function = reinterpret_cast<CUfunction>(module);
  return CUDA_SUCCESS;
}
CUresult cuFuncSetAttribute(CUfunction, CUfunction_attribute, int value) {
  dynamic_shared = value;
  return CUDA_SUCCESS;
}
CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction) {
  *value = attribute == CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK ? 128
           : attribute == CU_FUNC_ATTRIBUTE_NUM_REGS            ? 40
           : attribute == CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES   ? 1024
                                                                : 0;
  return CUDA_SUCCESS;
}

// Memory of the device is the host's, and whatever is enqueued has been done.
int fake_allocated() { return allocated; }

CUresult cuMemAlloc_v2(CUdeviceptr* pointer, std::size_t bytes) {
  ++allocated;
  *pointer = number(std::aligned_alloc(256, (bytes + 255) / 256 * 256));
  return *pointer == 0 ? CUDA_ERROR_OUT_OF_MEMORY : CUDA_SUCCESS;
}
CUresult cuMemFree_v2(CUdeviceptr pointer) {
  --allocated;
  std::free(memory_at(pointer));
  return CUDA_SUCCESS;
}
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, std::size_t bytes, CUstream) {
  std::memcpy(memory_at(to), from, bytes);
  return CUDA_SUCCESS;
}
CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, std::size_t bytes, CUstream) {
  std::memcpy(to, memory_at(from), bytes);
  return CUDA_SUCCESS;
}
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream) {
  std::memcpy(memory_at(to), memory_at(from), bytes);
  return CUDA_SUCCESS;
}
CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, std::size_t bytes, CUstream) {
  std::memset(memory_at(to), value, bytes);
  return CUDA_SUCCESS;
}

CUresult cuStreamCreate(CUstream* stream, unsigned) {
  ++allocated;
  *stream = reinterpret_cast<CUstream>(std::uintptr_t{300});
  return CUDA_SUCCESS;
}
CUresult cuStreamDestroy_v2(CUstream) {
  --allocated;
  return CUDA_SUCCESS;
}
CUresult cuStreamSynchronize(CUstream) {
  return capturing ? CUresult(900) : CUDA_SUCCESS;  // CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
}

// A graph is a number, and its launches are counted. What is captured is done at once.
int fake_launched() { return launched; }

CUresult cuStreamBeginCapture_v2(CUstream, CUstreamCaptureMode) {
  capturing = true;
  return CUDA_SUCCESS;
}
CUresult cuStreamEndCapture(CUstream, CUgraph* graph) {
  capturing = false;
  ++allocated;
  *graph = reinterpret_cast<CUgraph>(std::uintptr_t{400});
  return CUDA_SUCCESS;
}
CUresult cuGraphInstantiateWithFlags(CUgraphExec* exec, CUgraph, unsigned long long) {
  ++allocated;
  *exec = reinterpret_cast<CUgraphExec>(std::uintptr_t{500});
  return CUDA_SUCCESS;
}
CUresult cuGraphLaunch(CUgraphExec, CUstream) {
  ++launched;
  return CUDA_SUCCESS;
}
CUresult cuGraphDestroy(CUgraph) {
  --allocated;
  return CUDA_SUCCESS;
}
CUresult cuGraphExecDestroy(CUgraphExec) {
  --allocated;
  return CUDA_SUCCESS;
}

// Events are numbers: each is recorded 1 ms after the one before.
CUresult cuEventCreate(CUevent* event, unsigned) {
  ++allocated;
  *event = reinterpret_cast<CUevent>(std::uintptr_t(++events));
  return CUDA_SUCCESS;
}
CUresult cuEventRecord(CUevent, CUstream) { return CUDA_SUCCESS; }
CUresult cuEventSynchronize(CUevent) { return CUDA_SUCCESS; }
CUresult cuEventElapsedTime(float* milliseconds, CUevent start, CUevent end) {
  *milliseconds = static_cast<float>(number(end) - number(start));
  return CUDA_SUCCESS;
}
CUresult cuEventDestroy_v2(CUevent) {
  --allocated;
  return CUDA_SUCCESS;
}

// Looked up, never called here.
void cuModuleLoadDataEx() {}
void cuLaunchKernelEx() {}
void cuOccupancyMaxActiveBlocksPerMultiprocessor() {}
void cuMemPoolCreate() {}
void cuMemPoolSetAttribute() {}
void cuMemAllocFromPoolAsync() {}
void cuMemFreeAsync() {}
void cuMemcpyHtoD_v2() {}
void cuMemcpyDtoH_v2() {}
void cuTensorMapEncodeTiled() {}

}  // extern "C"
