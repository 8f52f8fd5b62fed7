// Which kernel, and the code it becomes.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace chunkscan::cuda {

// A kernel is a device function of one parameter struct, with its choices as template arguments.
struct KernelKey {
  std::string file;          // "sm90/compute_out.cuh"
  std::string body;          // "chunkscan::compute_out<chunkscan::ComputeOutConfig{...}>"
  std::string params;        // the parameter struct: "chunkscan::ComputeOutParams"
  int threads = 0;           // of a block
  int min_blocks = 1;        // per multiprocessor, as in __launch_bounds__
  std::string architecture;  // DeviceInfo::architecture

  friend bool operator==(const KernelKey&, const KernelKey&) = default;
};

std::size_t hash_of(const KernelKey& key);

// For people: "sm90/compute_out", and the members of its config.
std::string name_of(const KernelKey& key);
std::string config_of(const KernelKey& key);

struct KernelKeyHash {
  std::size_t operator()(const KernelKey& key) const { return hash_of(key); }
};

struct Compiled {
  std::vector<char> image;  // what cuModuleLoadData takes
  bool ptx = false;         // text that the driver compiles, else a cubin
  std::string log;          // what the compiler said; not kept on disk
  int compiler = 0;         // NVRTC's version: 1000 * major + 10 * minor
};

}  // namespace chunkscan::cuda
