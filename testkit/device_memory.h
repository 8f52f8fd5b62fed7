// Memory and streams of a GPU, for tests and measurements.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "chunkscan/tensor.h"

namespace chunkscan::testkit {

inline constexpr Device kGpu = {DeviceKind::kCuda, 0};

// Where the tensors of a backend of that name live: "cuda" and "cuda/..." on the first GPU.
Device device_of_backend(std::string_view name);

// "" = there is a GPU, else why not, a sentence.
std::string gpu_unavailable();

// The first GPU's; 0 where there is none.
std::size_t gpu_memory_bytes();

// A stream that waits for no other.
class Stream {
 public:
  explicit Stream(Device device = kGpu);
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  Device device() const { return device_; }
  void* get() const { return stream_; }  // a CUstream
  void synchronize() const;

  // Both wait until the bytes have arrived.
  void copy_to_device(void* to, const void* from, std::size_t bytes) const;
  void copy_to_host(void* to, const void* from, std::size_t bytes) const;

 private:
  Device device_;
  void* stream_ = nullptr;
};

// Memory that starts at a multiple of 256, filled with NaN bytes (as testkit::Block).
class DeviceMemory {
 public:
  explicit DeviceMemory(std::size_t bytes, Device device = kGpu);
  ~DeviceMemory();
  DeviceMemory(const DeviceMemory&) = delete;
  DeviceMemory& operator=(const DeviceMemory&) = delete;

  std::byte* data() const { return data_; }
  std::size_t size() const { return bytes_; }
  // Waits for nothing else that the device does.
  void fill(unsigned char value) const;

 private:
  Device device_;
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

}  // namespace chunkscan::testkit
