#include "cuda/device.h"

#include <mutex>
#include <vector>

#include "cuda/driver.h"
#include "op/sentence.h"

namespace chunkscan::cuda {

namespace {

struct Typical {
  const char* name;
  const char* architecture;
  int major, minor;
  int multiprocessors;
  int shared_per_block_optin;
  int shared_per_multiprocessor;
  int l2_mib;
  int memory_gib;
};

constexpr int kKib = 1024;

// One usual product for each architecture. Shared memory: CUDA C++ Programming Guide, table of
// technical specifications; a block may have 1 KiB less than a multiprocessor.
constexpr Typical kTypical[] = {
    {"A100", "sm_80", 8, 0, 108, 163 * kKib, 164 * kKib, 40, 80},
    {"RTX A6000", "sm_86", 8, 6, 84, 99 * kKib, 100 * kKib, 6, 48},
    {"Jetson AGX Orin", "sm_87", 8, 7, 16, 163 * kKib, 164 * kKib, 4, 64},
    {"RTX 4090", "sm_89", 8, 9, 128, 99 * kKib, 100 * kKib, 72, 24},
    {"H100", "sm_90a", 9, 0, 132, 227 * kKib, 228 * kKib, 50, 80},
    {"B200", "sm_100a", 10, 0, 148, 227 * kKib, 228 * kKib, 126, 180},
    {"B300", "sm_103a", 10, 3, 148, 227 * kKib, 228 * kKib, 126, 270},
    {"Jetson Thor", "sm_110a", 11, 0, 20, 227 * kKib, 228 * kKib, 32, 128},
    {"RTX 5090", "sm_120a", 12, 0, 170, 99 * kKib, 100 * kKib, 96, 32},
    {"GB10", "sm_121a", 12, 1, 48, 99 * kKib, 100 * kKib, 24, 128},
};

int attribute(CUdevice device, CUdevice_attribute which) {
  int value = 0;
  check(driver().cuDeviceGetAttribute(&value, which, device), "ask a device for an attribute");
  return value;
}

DeviceInfo info_of(int index) {
  CUdevice device = 0;
  check(driver().cuDeviceGet(&device, index), "find a device");
  char name[256] = "";
  check(driver().cuDeviceGetName(name, sizeof name, device), "ask a device for its name");
  std::size_t memory = 0;
  check(driver().cuDeviceTotalMem(&memory, device), "ask a device for its memory");
  DeviceInfo info;
  info.name = name;
  info.major = attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR);
  info.minor = attribute(device, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR);
  info.multiprocessors = attribute(device, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  info.shared_per_block_optin =
      attribute(device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN);
  info.shared_per_multiprocessor =
      attribute(device, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR);
  info.l2_bytes = attribute(device, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE);
  info.memory_bytes = static_cast<std::int64_t>(memory);
  info.architecture = architecture_of(info.major, info.minor);
  return info;
}

// Retained once for each device and never released: the kernels loaded into it live as long.
CUcontext primary_context(int index, CUdevice device) {
  struct Primary {
    std::once_flag once;
    CUcontext context = nullptr;
  };
  static std::vector<Primary> all(devices().size());
  Primary& primary = all.at(static_cast<std::size_t>(index));
  std::call_once(primary.once, [&] {
    check(driver().cuDevicePrimaryCtxRetain(&primary.context, device), "open a device's context");
  });
  return primary.context;
}

}  // namespace

std::span<const DeviceInfo> devices() {
  static const std::vector<DeviceInfo> all = [] {
    std::vector<DeviceInfo> infos;
    int count = 0;
    if (driver_unavailable().empty()) check(driver().cuDeviceGetCount(&count), "count devices");
    infos.reserve(static_cast<std::size_t>(count));
    for (int i = 0; i < count; ++i) infos.push_back(info_of(i));
    return infos;
  }();
  return all;
}

DeviceInfo device_named(std::string_view architecture) {
  std::string names;
  for (const Typical& row : kTypical) {
    if (architecture == row.architecture) {
      return {row.name,
              row.major,
              row.minor,
              row.multiprocessors,
              row.shared_per_block_optin,
              row.shared_per_multiprocessor,
              std::int64_t{row.l2_mib} << 20,
              std::int64_t{row.memory_gib} << 30,
              row.architecture};
    }
    names.append(names.empty() ? "" : " | ").append(row.architecture);
  }
  refuse_input("architecture", names, std::string("\"").append(architecture).append("\""));
}

std::string architecture_of(int major, int minor) {
  if (major < 8) return "";
  for (const Typical& row : kTypical) {
    if (row.major == major && row.minor == minor) return row.architecture;
  }
  return "sm_" + std::to_string(major) + std::to_string(minor);
}

std::string refuses_device(const DeviceInfo& device) {
  if (!device.architecture.empty()) return "";
  return "device: expected compute capability 8.0 or later, got " + std::to_string(device.major) +
         "." + std::to_string(device.minor) + " (" + device.name + ")";
}

ContextGuard::ContextGuard(int device_index) {
  const Driver& cuda = driver();
  CUdevice wanted = 0;
  check(cuda.cuDeviceGet(&wanted, device_index), "find a device");
  CUcontext current = nullptr;
  check(cuda.cuCtxGetCurrent(&current), "ask for the current context");
  if (current != nullptr) {
    CUdevice device = 0;
    check(cuda.cuCtxGetDevice(&device), "ask for the current device");
    if (device == wanted) return;
  }
  const CUcontext primary = primary_context(device_index, wanted);
  check(cuda.cuCtxPushCurrent(primary), "make a context current");
  pushed_ = true;
}

ContextGuard::~ContextGuard() {
  CUcontext popped = nullptr;
  if (pushed_) driver().cuCtxPopCurrent(&popped);
}

}  // namespace chunkscan::cuda
