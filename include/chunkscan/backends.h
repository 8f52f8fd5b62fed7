// Who can run the operation here.
#pragma once

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

}  // namespace chunkscan
