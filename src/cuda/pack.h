// Packs: files of kernels compiled ahead of time.
#pragma once

#include <optional>
#include <span>
#include <string>

#include "cuda/code.h"

namespace chunkscan::cuda {

// From the packs loaded so far, the latest first; the first call looks for the default one.
std::optional<Compiled> find_packed(const KernelKey& key);

// Compiles what has to be and writes all of it under a temporary name first.
void write_pack(std::span<const KernelKey> keys, const std::string& path,
                const Progress& progress = {});

struct PackState {
  std::string path;    // of the default pack; "" = none found
  std::string reason;  // why it is not used, a sentence; "" = it is
};

// $CHUNKSCAN_PACK, else chunkscan.pack beside the library's own file.
PackState default_pack();

// For tests: forget all packs, and look for the default one again.
void forget_packs();

}  // namespace chunkscan::cuda
