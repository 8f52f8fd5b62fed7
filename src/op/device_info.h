// What planning knows about the device of a call.
#pragma once

#include <cstdint>
#include <string>

namespace chunkscan {

// A GPU; on the CPU all stay as they are.
struct DeviceInfo {
  std::string name;
  int major = 0, minor = 0;  // compute capability
  int multiprocessors = 0;
  std::int64_t shared_per_block_optin = 0;  // bytes, as the next three
  std::int64_t shared_per_multiprocessor = 0;
  std::int64_t l2_bytes = 0;
  std::int64_t memory_bytes = 0;
  std::string architecture;  // what its kernels are compiled for: "sm_90a"; "" = not supported
};

}  // namespace chunkscan
