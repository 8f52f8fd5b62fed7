// Who can run the operation here.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace chunkscan {

struct BackendInfo {
  std::string name;
  bool available = false;
  std::string reason;  // why not, in a sentence; empty when available
};

// All backends of this build, best first. `Options::backend` forces one by name.
std::vector<BackendInfo> backends();

// Instruction sets that the CPU backend was compiled for and this machine has, best first:
// "avx512_bf16", "avx512", "avx2", "sse4", "neon", "baseline". Options::config forces one
// ("walk,isa=avx2"). "avx512_bf16" rounds operands to bf16 and is never chosen unasked.
std::vector<std::string> cpu_instruction_sets();

// All that there are, this machine's or not, best first: what a plan can be made for.
std::vector<std::string> all_cpu_instruction_sets();

// Threads that Options::threads = 0 stands for in the calling thread.
int default_threads();

// What the CUDA backends find on this machine. A text that is empty has a reason beside it.
struct CudaInfo {
  struct Gpu {
    std::string name;
    int major = 0, minor = 0;  // compute capability
    std::int64_t memory_bytes = 0;
    std::string architecture;  // what kernels are compiled for; "" = too old for this library
  };
  std::vector<Gpu> gpus;
  std::string driver;         // the CUDA version that the driver is for: "13.0"
  std::string driver_reason;  // why no GPU can be used, a sentence
  std::string nvrtc;          // version of the run-time compiler
  std::string nvrtc_path;     // its file
  std::string nvrtc_reason;   // why there is none, a sentence
  std::string pack;           // the file of kernels compiled ahead
  std::string pack_reason;    // why there is none, or why it is not used
  std::string cache;          // the directory of compiled kernels
  std::string cache_reason;   // why there is none
};

CudaInfo cuda_info();

}  // namespace chunkscan
