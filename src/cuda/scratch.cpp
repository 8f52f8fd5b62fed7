#include "cuda/scratch.h"

#include <mutex>
#include <vector>

#include "cuda/device.h"
#include "cuda/driver.h"

namespace chunkscan::cuda {

namespace {

CUmemoryPool pool_of(int device_index) {
  static std::mutex mutex;
  static std::vector<CUmemoryPool> pools(devices().size(), nullptr);
  std::scoped_lock lock(mutex);
  CUmemoryPool& pool = pools.at(static_cast<std::size_t>(device_index));
  if (pool == nullptr) {
    CUmemPoolProps props{};
    props.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
    props.location = {CU_MEM_LOCATION_TYPE_DEVICE, device_index};
    check(driver().cuMemPoolCreate(&pool, &props), "make a pool of memory");
    std::uint64_t keep = ~std::uint64_t{0};
    check(driver().cuMemPoolSetAttribute(pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &keep),
          "make a pool keep its memory");
  }
  return pool;
}

}  // namespace

void* take_scratch(int device_index, std::size_t bytes, CUstream stream) {
  CUdeviceptr memory = 0;
  if (bytes == 0) return nullptr;
  check(driver().cuMemAllocFromPoolAsync(&memory, bytes, pool_of(device_index), stream),
        "get memory for the workspace");
  return reinterpret_cast<void*>(memory);
}

void give_scratch(void* memory, CUstream stream) {
  // An error here surfaces at the caller's next synchronisation.
  if (memory != nullptr) driver().cuMemFreeAsync(reinterpret_cast<CUdeviceptr>(memory), stream);
}

}  // namespace chunkscan::cuda
