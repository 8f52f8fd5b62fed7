// The GPUs of this machine, and typical ones to plan for without a GPU.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "cuda/driver_types.h"
#include "op/device_info.h"

namespace chunkscan::cuda {

// In the driver's order; empty where driver_unavailable() says why. Asked once.
std::span<const DeviceInfo> devices();

// A typical GPU of that architecture; throws Error(kInput) with the names there are.
DeviceInfo device_named(std::string_view architecture);

// The name to compile for: (9, 0) -> "sm_90a", a chip newer than this library -> "sm_<xy>",
// compute capability below 8.0 -> "".
std::string architecture_of(int major, int minor);

// "" = kernels run on it, else "expected ..., got ...".
std::string refuses_device(const DeviceInfo& device);

// While it lives, the calling thread's current context belongs to that device: the one that is
// current already, else the device's primary context.
class ContextGuard {
 public:
  explicit ContextGuard(int device_index);
  ~ContextGuard();
  ContextGuard(const ContextGuard&) = delete;
  ContextGuard& operator=(const ContextGuard&) = delete;

 private:
  bool pushed_ = false;
};

}  // namespace chunkscan::cuda
