// NVIDIA's run-time compiler, opened on first use from wherever a toolkit or a Python package
// keeps it. Versions 12 and 13 serve.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "cuda/kernel_key.h"
#include "cuda/sources.h"

namespace chunkscan::cuda {

// "" = a compiler is here; else why not, a sentence.
std::string nvrtc_unavailable();

// The file it was loaded from; "" where there is none.
std::string nvrtc_path();

// 1000 * major + 10 * minor; 0 where there is none.
int nvrtc_version();

// 80, 86, 90, ...: ascending; empty where there is no compiler.
std::vector<int> nvrtc_architectures();

// `architecture`: "sm_90a" gives a cubin. A chip that this compiler does not know gets PTX of the
// newest older one that it knows. Throws Error(kRuntime): no compiler, or the compiler's first
// error; several threads may compile at once.
Compiled compile(const std::string& source, std::span<const Source> headers,
                 const std::string& architecture, std::span<const std::string> options = {});

// For tests: forget the compiler that was found; use that file, and with "" search again.
void set_nvrtc_path(std::string path);

}  // namespace chunkscan::cuda
