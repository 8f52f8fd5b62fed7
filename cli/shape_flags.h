// Flags that describe calls on generated numbers: sizes, dtypes, features.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "chunkscan/chunkscan.h"
#include "cli/call_flags.h"
#include "testkit/generate.h"

namespace chunkscan::cli {

struct NamedCase {
  std::string name;  // the model's, or the one in the suite; "-" for a shape without one
  testkit::CaseSpec spec;
};

struct ShapeFlags {
  std::string shape, model, suite;
  std::int64_t seqlen = 2048, batch = 1;
  std::string dtypes = "bf16";
  std::string features = "D,dt_bias,softplus";
  std::string layout = "rows";
  std::uint64_t seed = 1;

  void add(CLI::App& app);
  // Several cases at once: --suite, and more than one --dtype.
  void add_suite(CLI::App& app);
  // How the tensors lie in memory: --layout.
  void add_layout(CLI::App& app);

  bool any() const { return !shape.empty() || !model.empty() || !suite.empty(); }
  // One case per size and dtype, sizes outermost.
  std::vector<NamedCase> cases() const;
  // The one case of subcommands that take one.
  NamedCase one_case() const;
};

// How packed sequences share l tokens: uneven, one of them empty, and some tokens in none.
std::vector<std::int64_t> packed_lengths(std::int64_t l);

Options options_of(const testkit::CaseSpec& spec, const CallFlags& how);

// Plans a case from its shapes alone: bad sizes are refused before anything gets memory.
Plan plan_of(const testkit::CaseSpec& spec, const Options& options, Device device);

// "1,2048,24,64,128,1"
std::string shape_text(const testkit::CaseSpec& spec);

}  // namespace chunkscan::cli
