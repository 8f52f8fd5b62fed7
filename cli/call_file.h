// A call out of a safetensors file.
#pragma once

#include <CLI/CLI.hpp>
#include <map>
#include <string>

#include "chunkscan/chunkscan.h"
#include "cli/call_flags.h"
#include "io/safetensors.h"

namespace chunkscan::cli {

// For --help: which tensors and metadata a file may hold.
extern const char* const kFileHelp;

struct FileFlags {
  std::string input;
  std::string dt_softplus, dt_limit;  // empty = not given

  void add(CLI::App& app);  // all but --input, which not every subcommand requires
};

struct FileCall {
  io::Safetensors file;  // owns the memory
  Inputs inputs;
  Options options;
  std::map<std::string, io::Tensor> expected;  // outputs found in the file, by the outputs' names
};

// Reads the tensors by name; refuses a file without a required one, and one with a name that means
// nothing: a misspelt optional tensor would otherwise be left out silently. Flags win over
// metadata.
FileCall read_call(const FileFlags& flags, const CallFlags& how);

// The outputs that a file holds; refuses one without any.
FileCall read_expected(const std::string& path);

}  // namespace chunkscan::cli
