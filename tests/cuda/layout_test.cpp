// Our declarations against NVIDIA's cuda.h, where it is installed.
#include <cuda.h>
#include <gtest/gtest.h>

#include <cstddef>

#include "cuda/driver_types.h"

namespace {

namespace ours = chunkscan::cuda;

TEST(DriverTypes, StructsAreLaidOutAsInCudaH) {
  EXPECT_EQ(sizeof(ours::CUlaunchConfig), sizeof(CUlaunchConfig));
  EXPECT_EQ(offsetof(ours::CUlaunchConfig, gridDimX), offsetof(CUlaunchConfig, gridDimX));
  EXPECT_EQ(offsetof(ours::CUlaunchConfig, blockDimX), offsetof(CUlaunchConfig, blockDimX));
  EXPECT_EQ(offsetof(ours::CUlaunchConfig, blockDimZ), offsetof(CUlaunchConfig, blockDimZ));
  EXPECT_EQ(offsetof(ours::CUlaunchConfig, sharedMemBytes),
            offsetof(CUlaunchConfig, sharedMemBytes));
  EXPECT_EQ(offsetof(ours::CUlaunchConfig, hStream), offsetof(CUlaunchConfig, hStream));
  EXPECT_EQ(offsetof(ours::CUlaunchConfig, attrs), offsetof(CUlaunchConfig, attrs));
  EXPECT_EQ(offsetof(ours::CUlaunchConfig, numAttrs), offsetof(CUlaunchConfig, numAttrs));

  EXPECT_EQ(sizeof(ours::CUlaunchAttribute), sizeof(CUlaunchAttribute));
  EXPECT_EQ(offsetof(ours::CUlaunchAttribute, value), offsetof(CUlaunchAttribute, value));
  EXPECT_EQ(sizeof(ours::CUlaunchAttributeValue), sizeof(CUlaunchAttributeValue));
  EXPECT_EQ(sizeof(ours::CUlaunchAttributeValue::clusterDim),
            sizeof(CUlaunchAttributeValue::clusterDim));

  EXPECT_EQ(sizeof(ours::CUtensorMap), sizeof(CUtensorMap));
  EXPECT_EQ(alignof(CUtensorMap) % alignof(ours::CUtensorMap), 0u);  // CUDA 12: 64, 13: 128
  EXPECT_EQ(sizeof(ours::CUmemPoolProps), sizeof(CUmemPoolProps));
  EXPECT_EQ(offsetof(ours::CUmemPoolProps, location), offsetof(CUmemPoolProps, location));
  EXPECT_EQ(offsetof(ours::CUmemPoolProps, maxSize), offsetof(CUmemPoolProps, maxSize));
  EXPECT_EQ(sizeof(ours::CUdeviceptr), sizeof(CUdeviceptr));
  EXPECT_EQ(sizeof(ours::CUdevice), sizeof(CUdevice));
  EXPECT_EQ(sizeof(ours::CUresult), sizeof(CUresult));
}

template <class Ours, class Theirs>
void same(Ours mine, Theirs theirs) {
  EXPECT_EQ(static_cast<long>(mine), static_cast<long>(theirs));
  EXPECT_EQ(sizeof mine, sizeof theirs);
}

TEST(DriverTypes, NamesHaveTheValuesOfCudaH) {
  same(ours::CUDA_SUCCESS, CUDA_SUCCESS);
  same(ours::CU_MEM_ALLOCATION_TYPE_PINNED, CU_MEM_ALLOCATION_TYPE_PINNED);
  same(ours::CU_MEM_LOCATION_TYPE_DEVICE, CU_MEM_LOCATION_TYPE_DEVICE);
  same(ours::CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD);
  same(ours::CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_OUT_OF_MEMORY);
  same(ours::CUDA_ERROR_NO_DEVICE, CUDA_ERROR_NO_DEVICE);
  same(ours::CUDA_ERROR_INVALID_IMAGE, CUDA_ERROR_INVALID_IMAGE);
  same(ours::CUDA_ERROR_NO_BINARY_FOR_GPU, CUDA_ERROR_NO_BINARY_FOR_GPU);
  same(ours::CUDA_ERROR_INVALID_PTX, CUDA_ERROR_INVALID_PTX);
  same(ours::CUDA_ERROR_UNSUPPORTED_PTX_VERSION, CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
  same(ours::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  same(ours::CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
  same(ours::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR,
       CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  same(ours::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR,
       CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  same(ours::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR,
       CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
  same(ours::CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN,
       CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  same(ours::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK);
  same(ours::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES);
  same(ours::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES);
  same(ours::CU_FUNC_ATTRIBUTE_NUM_REGS, CU_FUNC_ATTRIBUTE_NUM_REGS);
  same(ours::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
       CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
  same(ours::CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT,
       CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT);
  same(ours::CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED,
       CU_FUNC_ATTRIBUTE_NON_PORTABLE_CLUSTER_SIZE_ALLOWED);
  same(ours::CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER);
  same(ours::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES);
  same(ours::CU_STREAM_DEFAULT, CU_STREAM_DEFAULT);
  same(ours::CU_STREAM_NON_BLOCKING, CU_STREAM_NON_BLOCKING);
  same(ours::CU_EVENT_DEFAULT, CU_EVENT_DEFAULT);
  same(ours::CU_EVENT_DISABLE_TIMING, CU_EVENT_DISABLE_TIMING);
  same(ours::CU_STREAM_CAPTURE_MODE_GLOBAL, CU_STREAM_CAPTURE_MODE_GLOBAL);
  same(ours::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL);
  same(ours::CU_STREAM_CAPTURE_MODE_RELAXED, CU_STREAM_CAPTURE_MODE_RELAXED);
  same(ours::CU_LAUNCH_ATTRIBUTE_IGNORE, CU_LAUNCH_ATTRIBUTE_IGNORE);
  same(ours::CU_LAUNCH_ATTRIBUTE_COOPERATIVE, CU_LAUNCH_ATTRIBUTE_COOPERATIVE);
  same(ours::CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION, CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION);
  same(ours::CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION,
       CU_LAUNCH_ATTRIBUTE_PROGRAMMATIC_STREAM_SERIALIZATION);
  same(ours::CU_TENSOR_MAP_DATA_TYPE_INT32, CU_TENSOR_MAP_DATA_TYPE_INT32);
  same(ours::CU_TENSOR_MAP_DATA_TYPE_FLOAT16, CU_TENSOR_MAP_DATA_TYPE_FLOAT16);
  same(ours::CU_TENSOR_MAP_DATA_TYPE_FLOAT32, CU_TENSOR_MAP_DATA_TYPE_FLOAT32);
  same(ours::CU_TENSOR_MAP_DATA_TYPE_BFLOAT16, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16);
  same(ours::CU_TENSOR_MAP_INTERLEAVE_NONE, CU_TENSOR_MAP_INTERLEAVE_NONE);
  same(ours::CU_TENSOR_MAP_SWIZZLE_NONE, CU_TENSOR_MAP_SWIZZLE_NONE);
  same(ours::CU_TENSOR_MAP_SWIZZLE_32B, CU_TENSOR_MAP_SWIZZLE_32B);
  same(ours::CU_TENSOR_MAP_SWIZZLE_64B, CU_TENSOR_MAP_SWIZZLE_64B);
  same(ours::CU_TENSOR_MAP_SWIZZLE_128B, CU_TENSOR_MAP_SWIZZLE_128B);
  same(ours::CU_TENSOR_MAP_L2_PROMOTION_NONE, CU_TENSOR_MAP_L2_PROMOTION_NONE);
  same(ours::CU_TENSOR_MAP_L2_PROMOTION_L2_64B, CU_TENSOR_MAP_L2_PROMOTION_L2_64B);
  same(ours::CU_TENSOR_MAP_L2_PROMOTION_L2_128B, CU_TENSOR_MAP_L2_PROMOTION_L2_128B);
  same(ours::CU_TENSOR_MAP_L2_PROMOTION_L2_256B, CU_TENSOR_MAP_L2_PROMOTION_L2_256B);
  same(ours::CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE);
}

}  // namespace
