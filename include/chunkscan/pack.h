// GPU kernels compiled ahead of time: with a pack, no compiler is needed where the library runs.
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "chunkscan/plan.h"

namespace chunkscan {

// Makes the kernels of a pack available to every later call. A pack belongs to the version of the
// library that wrote it. $CHUNKSCAN_PACK, else a file chunkscan.pack beside the library, is loaded
// without asking. Throws Error(kInput): no such file, damaged, or another version's.
void load_pack(const std::string& path);

// How many of the kernels are there. Called in the thread that waits for them.
using PackProgress = std::function<void(std::size_t done, std::size_t all)>;

// Compiles every kernel that the plans need, and those of plans of the same model with other b and
// l, into one file, which is written whole or not at all; returns how many there are. Needs NVRTC
// but no GPU: plans are made with Options::architecture, for one or several. Throws Error(kInput):
// no plan, or one of a backend without kernels.
std::size_t write_pack(std::span<const Plan> plans, const std::string& path,
                       const PackProgress& progress = {});

struct PackedKernel {
  std::string name;    // "sm90/compute_out"
  std::string config;  // what it was compiled for, as its template argument
  std::string architecture;
  std::string compiler;   // NVRTC's version: "13.0"
  bool ptx = false;       // text that the driver compiles, else machine code
  std::size_t bytes = 0;  // of its code
};

// What is in a pack, in the order in which it was written. Throws as load_pack() does.
std::vector<PackedKernel> list_pack(const std::string& path);

}  // namespace chunkscan
