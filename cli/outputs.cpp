#include "cli/outputs.h"

#include <algorithm>
#include <span>

#include "cli/call_flags.h"
#include "cli/text.h"

namespace chunkscan::cli {

void StateFlags::add(CLI::App& app) {
  app.add_option("--state-dtype", state_dtype, "Of the states asked for: f32 | bf16 | f16")
      ->type_name("T")
      ->capture_default_str();
  app.add_option("--state-every", state_every,
                 "Spacing of chunk_states: one after every K tokens of a sequence")
      ->type_name("K")
      ->check(at_least(1));
}

Wanted StateFlags::wanted() const {
  Wanted wanted;
  wanted.state_dtype = dtype_named("--state-dtype", state_dtype);
  wanted.state_every = state_every;
  return wanted;
}

Outputs output_shapes(const Inputs& inputs, const Wanted& wanted) {
  const auto [b, l, h, p, unused] = inputs.x.shape;
  const std::int64_t n = inputs.B.shape[3];
  const std::int64_t sequences =
      inputs.cu_seqlens.present() ? std::max<std::int64_t>(inputs.cu_seqlens.shape[0] - 1, 0) : b;
  const std::int64_t rows = wanted.state_every > 0 ? l / wanted.state_every : 0;
  Outputs outputs;
  outputs.y = TensorView(nullptr, inputs.x.dtype, {b, l, h, p}, inputs.x.device);
  if (wanted.final_states) {
    outputs.final_states = TensorView(nullptr, wanted.state_dtype, {sequences, h, p, n});
  }
  if (wanted.chunk_states) {
    outputs.chunk_states = TensorView(nullptr, wanted.state_dtype, {b, rows, h, p, n});
  }
  if (wanted.log_decay) outputs.log_decay = TensorView(nullptr, DType::kF32, {sequences, h});
  return outputs;
}

std::vector<NamedView> present(const Outputs& outputs) {
  std::vector<NamedView> views;
  for (const testkit::OutputField& field : testkit::kOutputs) {
    const TensorView& view = outputs.*field.view;
    if (view.present()) views.push_back({field.name, field.kind, view});
  }
  return views;
}

OutputMemory::OutputMemory(const Outputs& shapes) : outputs_(shapes) {
  for (const testkit::OutputField& field : testkit::kOutputs) {
    TensorView& view = outputs_.*field.view;
    if (!view.present()) continue;
    const std::span<const std::int64_t> shape(view.shape.data(), view.rank);
    view = tensors_.emplace_back(view.dtype, shape).view();
  }
}

}  // namespace chunkscan::cli
