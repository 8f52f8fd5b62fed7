#include "cli/machine.h"

#include <fstream>
#include <thread>

namespace chunkscan::cli {

std::string cpu_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

int cpu_count() { return static_cast<int>(std::thread::hardware_concurrency()); }

}  // namespace chunkscan::cli
