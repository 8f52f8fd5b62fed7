#include "testkit/device_memory.h"

#include <algorithm>
#include <exception>

#include "cuda/device.h"
#include "cuda/driver.h"

namespace chunkscan::testkit {

namespace {

using cuda::check;
using cuda::ContextGuard;
using cuda::CUdeviceptr;
using cuda::CUstream;
using cuda::driver;

CUdeviceptr number(const void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }

CUstream handle(const Stream& stream) { return static_cast<CUstream>(stream.get()); }

// For destructors: after a fault of the device every call fails, and the test has said so already.
template <typename Work>
void in_context(Device device, const Work& work) {
  try {
    const ContextGuard guard(device.index);
    work();
  } catch (const std::exception&) {
  }
}

}  // namespace

Device device_of_backend(std::string_view name) {
  return name.starts_with("cuda") ? kGpu : Device{};
}

std::string gpu_unavailable() { return cuda::driver_unavailable(); }

std::size_t gpu_memory_bytes() {
  const auto devices = cuda::devices();
  return devices.empty() ? 0 : static_cast<std::size_t>(devices.front().memory_bytes);
}

Stream::Stream(Device device) : device_(device) {
  const ContextGuard guard(device_.index);
  CUstream stream = nullptr;
  check(driver().cuStreamCreate(&stream, cuda::CU_STREAM_NON_BLOCKING), "create a stream");
  stream_ = stream;
}

Stream::~Stream() {
  in_context(device_, [this] { driver().cuStreamDestroy(handle(*this)); });
}

void Stream::synchronize() const {
  const ContextGuard guard(device_.index);
  check(driver().cuStreamSynchronize(handle(*this)), "wait for a stream");
}

void Stream::copy_to_device(void* to, const void* from, std::size_t bytes) const {
  const ContextGuard guard(device_.index);
  check(driver().cuMemcpyHtoDAsync(number(to), from, bytes, handle(*this)), "copy to the device");
  synchronize();
}

void Stream::copy_to_host(void* to, const void* from, std::size_t bytes) const {
  const ContextGuard guard(device_.index);
  check(driver().cuMemcpyDtoHAsync(to, number(from), bytes, handle(*this)), "copy to the host");
  synchronize();
}

DeviceMemory::DeviceMemory(std::size_t bytes, Device device) : device_(device), bytes_(bytes) {
  const ContextGuard guard(device_.index);
  CUdeviceptr pointer = 0;
  check(driver().cuMemAlloc(&pointer, std::max<std::size_t>(bytes, 1)), "allocate memory");
  data_ = reinterpret_cast<std::byte*>(pointer);
  fill(0xff);
}

DeviceMemory::~DeviceMemory() {
  in_context(device_, [this] { driver().cuMemFree(number(data_)); });
}

void DeviceMemory::fill(unsigned char value) const {
  if (bytes_ == 0) return;
  const Stream stream(device_);
  const ContextGuard guard(device_.index);
  check(driver().cuMemsetD8Async(number(data_), value, bytes_, handle(stream)), "fill memory");
  stream.synchronize();
}

}  // namespace chunkscan::testkit
