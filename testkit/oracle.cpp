#include "testkit/oracle.h"

#include <algorithm>

namespace chunkscan::testkit {

Oracle::Oracle(const Inputs& inputs, const Outputs& wanted, const Options& options,
               const std::string& config)
    : inputs_dtype_(least_precise(inputs)) {
  OwnedTensor* memory = memory_;
  for (const OutputField& output : kOutputs) {
    const TensorView& view = wanted.*output.view;
    if (!view.present()) continue;
    *memory = OwnedTensor(DType::kF64, {view.shape.data(), static_cast<std::size_t>(view.rank)});
    outputs_.*output.view = memory++->view();
  }
  Options reference = options;
  reference.backend = "reference";
  reference.config = config;
  forward(inputs, outputs_, reference);
}

std::vector<Comparison> Oracle::check(const Outputs& got, Data data) const {
  std::vector<Comparison> comparisons;
  for (const OutputField& output : kOutputs) {
    const TensorView& view = got.*output.view;
    const TensorView& want = outputs_.*output.view;
    if (!view.present()) continue;
    comparisons.push_back(
        compare(output.name, view, want,
                allowed_error(output.kind, data, inputs_dtype_, want, view.dtype)));
  }
  return comparisons;
}

void forward_here(const Inputs& inputs, const Outputs& outputs, const Options& options) {
  forward(inputs, outputs, options);
}

std::vector<Comparison> check_case(Case& c, const Options& options, const Forward& call) {
  c.poison_outputs();
  // Before the call: it may write the final states where the initial ones are.
  const Oracle oracle(c.inputs, c.outputs, options);
  call(c.inputs, c.outputs, options);
  return oracle.check(c.outputs, c.standard_data ? Data::kStandard : Data::kAny);
}

bool all_ok(const std::vector<Comparison>& comparisons) {
  return std::all_of(comparisons.begin(), comparisons.end(),
                     [](const Comparison& comparison) { return comparison.ok; });
}

std::string to_string(const std::vector<Comparison>& comparisons) {
  std::string text;
  for (const Comparison& comparison : comparisons) text += to_string(comparison) + "\n";
  return text;
}

}  // namespace chunkscan::testkit
