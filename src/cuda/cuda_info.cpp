#include "chunkscan/backends.h"
#include "cuda/cache.h"
#include "cuda/device.h"
#include "cuda/driver.h"
#include "cuda/nvrtc.h"
#include "cuda/pack.h"

namespace chunkscan {

CudaInfo cuda_info() {
  CudaInfo info;
  for (const DeviceInfo& device : cuda::devices()) {
    info.gpus.push_back(
        {device.name, device.major, device.minor, device.memory_bytes, device.architecture});
  }
  info.driver_reason = cuda::driver_unavailable();
  if (cuda::driver_version() > 0) info.driver = cuda::version_text(cuda::driver_version());
  info.nvrtc_reason = cuda::nvrtc_unavailable();
  info.nvrtc_path = cuda::nvrtc_path();
  if (info.nvrtc_reason.empty()) info.nvrtc = cuda::version_text(cuda::nvrtc_version());
  const cuda::PackState pack = cuda::default_pack();
  info.pack = pack.path;
  info.pack_reason =
      pack.path.empty() ? "not beside the library, nor named by CHUNKSCAN_PACK" : pack.reason;
  info.cache = cuda::cache_directory();
  if (info.cache.empty()) info.cache_reason = "switched off, or no home directory";
  return info;
}

}  // namespace chunkscan
