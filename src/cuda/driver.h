// libcuda, opened on first use. Its absence is a sentence, never a failure to start.
#pragma once

#include <string>

#include "cuda/driver_types.h"

namespace chunkscan::cuda {

// The functions of libcuda that we call, under their names in cuda.h.
struct Driver {
  CUresult (*cuInit)(unsigned flags);
  CUresult (*cuDriverGetVersion)(int* version);
  CUresult (*cuGetErrorName)(CUresult error, const char** text);
  CUresult (*cuGetErrorString)(CUresult error, const char** text);

  CUresult (*cuDeviceGetCount)(int* count);
  CUresult (*cuDeviceGet)(CUdevice* device, int ordinal);
  CUresult (*cuDeviceGetName)(char* name, int bytes, CUdevice device);
  CUresult (*cuDeviceGetAttribute)(int* value, CUdevice_attribute attribute, CUdevice device);
  CUresult (*cuDeviceTotalMem)(std::size_t* bytes, CUdevice device);
  CUresult (*cuDevicePrimaryCtxRetain)(CUcontext* context, CUdevice device);

  CUresult (*cuCtxGetCurrent)(CUcontext* context);
  CUresult (*cuCtxPushCurrent)(CUcontext context);
  CUresult (*cuCtxPopCurrent)(CUcontext* context);
  CUresult (*cuCtxGetDevice)(CUdevice* device);
  CUresult (*cuCtxGetId)(CUcontext context, unsigned long long* id);

  CUresult (*cuModuleLoadData)(CUmodule* module, const void* image);
  CUresult (*cuModuleLoadDataEx)(CUmodule* module, const void* image, unsigned options,
                                 CUjit_option* names, void** values);
  CUresult (*cuModuleUnload)(CUmodule module);
  CUresult (*cuModuleGetFunction)(CUfunction* function, CUmodule module, const char* name);
  CUresult (*cuFuncSetAttribute)(CUfunction function, CUfunction_attribute attribute, int value);
  CUresult (*cuFuncGetAttribute)(int* value, CUfunction_attribute attribute, CUfunction function);
  CUresult (*cuLaunchKernelEx)(const CUlaunchConfig* config, CUfunction function, void** params,
                               void** extra);
  CUresult (*cuOccupancyMaxActiveBlocksPerMultiprocessor)(int* blocks, CUfunction function,
                                                          int threads, std::size_t shared_bytes);

  CUresult (*cuMemAlloc)(CUdeviceptr* pointer, std::size_t bytes);
  CUresult (*cuMemFree)(CUdeviceptr pointer);
  CUresult (*cuMemPoolCreate)(CUmemoryPool* pool, const CUmemPoolProps* props);
  CUresult (*cuMemPoolSetAttribute)(CUmemoryPool pool, CUmemPool_attribute attribute, void* value);
  CUresult (*cuMemAllocFromPoolAsync)(CUdeviceptr* pointer, std::size_t bytes, CUmemoryPool pool,
                                      CUstream stream);
  CUresult (*cuMemFreeAsync)(CUdeviceptr pointer, CUstream stream);
  CUresult (*cuMemcpyHtoD)(CUdeviceptr to, const void* from, std::size_t bytes);
  CUresult (*cuMemcpyDtoH)(void* to, CUdeviceptr from, std::size_t bytes);
  CUresult (*cuMemcpyHtoDAsync)(CUdeviceptr to, const void* from, std::size_t bytes,
                                CUstream stream);
  CUresult (*cuMemcpyDtoHAsync)(void* to, CUdeviceptr from, std::size_t bytes, CUstream stream);
  CUresult (*cuMemsetD8Async)(CUdeviceptr to, unsigned char value, std::size_t bytes,
                              CUstream stream);

  CUresult (*cuStreamCreate)(CUstream* stream, unsigned flags);
  CUresult (*cuStreamDestroy)(CUstream stream);
  CUresult (*cuStreamSynchronize)(CUstream stream);
  CUresult (*cuStreamBeginCapture)(CUstream stream, CUstreamCaptureMode mode);
  CUresult (*cuStreamEndCapture)(CUstream stream, CUgraph* graph);
  CUresult (*cuGraphInstantiateWithFlags)(CUgraphExec* exec, CUgraph graph,
                                          unsigned long long flags);
  CUresult (*cuGraphLaunch)(CUgraphExec exec, CUstream stream);
  CUresult (*cuGraphDestroy)(CUgraph graph);
  CUresult (*cuGraphExecDestroy)(CUgraphExec exec);

  CUresult (*cuEventCreate)(CUevent* event, unsigned flags);
  CUresult (*cuEventRecord)(CUevent event, CUstream stream);
  CUresult (*cuEventSynchronize)(CUevent event);
  CUresult (*cuEventElapsedTime)(float* milliseconds, CUevent start, CUevent end);
  CUresult (*cuEventDestroy)(CUevent event);

  CUresult (*cuTensorMapEncodeTiled)(CUtensorMap* map, CUtensorMapDataType type, std::uint32_t rank,
                                     void* address, const std::uint64_t* sizes,
                                     const std::uint64_t* strides_in_bytes,
                                     const std::uint32_t* box, const std::uint32_t* element_strides,
                                     CUtensorMapInterleave interleave, CUtensorMapSwizzle swizzle,
                                     CUtensorMapL2promotion promotion,
                                     CUtensorMapFloatOOBfill fill);
};

// "" = a driver and at least one GPU are here; else why not, a sentence.
std::string driver_unavailable();

// Throws Error(kRuntime) with driver_unavailable()'s sentence where there is none.
const Driver& driver();

// 1000 * major + 10 * minor of the CUDA version that the driver is for; 0 where there is none.
int driver_version();

// "13.0" of 13000.
std::string version_text(int version);

// Throws Error(kRuntime) unless `result` is CUDA_SUCCESS; `doing` ends "cuda: failed to ...".
void check(CUresult result, const char* doing);

}  // namespace chunkscan::cuda
