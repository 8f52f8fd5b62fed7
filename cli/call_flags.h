// Flags that say how a call is carried out, shared by the subcommands.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>

#include "chunkscan/chunkscan.h"

namespace chunkscan::cli {

struct CallFlags {
  std::string backend, config;
  std::int64_t chunk_size = 0;  // 0 = not given
  int threads = 0;

  void add(CLI::App& app);
  // Writes what was given over `options`.
  void apply(Options& options) const;
  // Where the tensors of such a call are.
  Device device() const;
  // Throws with the reason where that device is not here.
  void require_device() const;
};

// Refuses whole numbers below `least` in a sentence of the usual form; CLI11's own range prints the
// limits of its type.
CLI::Validator at_least(std::int64_t least);

DType dtype_named(std::string_view flag, std::string_view name);

}  // namespace chunkscan::cli
