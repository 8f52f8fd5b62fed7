// Which outputs a call is asked for, their shapes, and memory for them.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "chunkscan/chunkscan.h"
#include "testkit/outputs.h"
#include "testkit/tensors.h"

namespace chunkscan::cli {

struct Wanted {
  bool final_states = false, chunk_states = false, log_decay = false;
  DType state_dtype = DType::kF32;
  std::int64_t state_every = 0;
};

struct StateFlags {
  std::string state_dtype = "f32";
  std::int64_t state_every = 0;

  void add(CLI::App& app);
  Wanted wanted() const;  // nothing but y, with these states' dtype and spacing
};

// The outputs' views without memory. Shapes follow from the inputs, whatever these hold: a plan
// made from them refuses what is wrong.
Outputs output_shapes(const Inputs& inputs, const Wanted& wanted);

// Each output that is present, in the order of chunkscan/ssd.h.
struct NamedView {
  std::string name;
  testkit::Output kind;
  TensorView view;
};
std::vector<NamedView> present(const Outputs& outputs);

// Memory for every output of `shapes` that is present; `shapes` have passed make_plan().
class OutputMemory {
 public:
  explicit OutputMemory(const Outputs& shapes);
  const Outputs& outputs() const { return outputs_; }

 private:
  std::vector<testkit::OwnedTensor> tensors_;
  Outputs outputs_;
};

}  // namespace chunkscan::cli
