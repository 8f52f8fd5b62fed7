#include "cpu/cpu_backend.h"

namespace chunkscan {

Backend cpu_backend() {
  Backend row{};
  row.name = "cpu";
  row.unavailable = [] { return std::string("its kernels are not built yet"); };
  row.device = DeviceKind::kCpu;
  return row;
}

}  // namespace chunkscan
