// The right outputs of a call: the reference backend's, in f64.
#pragma once

#include <functional>
#include <iterator>
#include <string>
#include <vector>

#include "chunkscan/chunkscan.h"
#include "testkit/compare.h"
#include "testkit/generate.h"

namespace chunkscan::testkit {

// Runs the reference on construction, into memory of its own.
class Oracle {
 public:
  // `wanted` says which outputs, by presence; nothing is written to it. `config` is the
  // reference's: "" for the token-by-token recurrence.
  Oracle(const Inputs& inputs, const Outputs& wanted, const Options& options,
         const std::string& config = "");

  const Outputs& outputs() const { return outputs_; }

  // Every output that `got` has against the right one.
  std::vector<Comparison> check(const Outputs& got, Data data) const;

 private:
  OwnedTensor memory_[std::size(kOutputs)];
  Outputs outputs_;
  DType inputs_dtype_;
};

// How a call on tensors in host memory is made: forward() itself, or copies on a GPU.
using Forward = std::function<void(const Inputs&, const Outputs&, const Options&)>;
void forward_here(const Inputs& inputs, const Outputs& outputs, const Options& options);

// Poisons the outputs, runs the case with `options` (the case's own with another backend, config
// or thread count) and compares every output.
std::vector<Comparison> check_case(Case& c, const Options& options,
                                   const Forward& call = forward_here);

bool all_ok(const std::vector<Comparison>& comparisons);

// One line each.
std::string to_string(const std::vector<Comparison>& comparisons);

}  // namespace chunkscan::testkit
