#include "c_structs.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <string>
#include <type_traits>

#include "chunkscan/version.h"
#include "op/sentence.h"

namespace chunkscan {

namespace {

// The caller's struct in this library's size: fields that an older caller does not have are as in
// `defaults`, and those that only a newer one has must be 0.
template <class Struct>
Struct in_our_size(const char* name, const Struct* given, Struct defaults = {}) {
  static_assert(std::is_trivially_copyable_v<Struct>);
  if (given == nullptr) refuse_input(name, "a struct", "NULL");
  const std::size_t size = given->size;
  const char* bytes = reinterpret_cast<const char*>(given);
  if (size < sizeof size || size > 65536) {
    refuse_input(name, "size = sizeof of the struct, " + std::to_string(sizeof(Struct)),
                 std::to_string(size));
  }
  for (std::size_t i = sizeof(Struct); i < size; ++i) {
    if (bytes[i] != 0) {
      refuse_input(name, "fields of chunkscan " + std::string(version()), "one of a later version");
    }
  }
  std::memcpy(&defaults, given, std::min(size, sizeof(Struct)));
  return defaults;
}

TensorView view_of(const char* name, const chunkscan_tensor& tensor) {
  const auto require = [&](const char* what, int value, int most) {
    if (value >= 0 && value <= most) return;
    refuse_input(name, std::string(what) + " from 0 to " + std::to_string(most),
                 std::to_string(value));
  };
  require("rank", tensor.rank, kMaxRank);
  require("dtype", tensor.dtype, static_cast<int>(DType::kI64));
  require("device", tensor.device, static_cast<int>(DeviceKind::kCuda));
  TensorView view;
  view.data = tensor.data;
  view.dtype = static_cast<DType>(tensor.dtype);
  view.device = {static_cast<DeviceKind>(tensor.device), tensor.device_index};
  view.rank = tensor.rank;
  std::copy(tensor.shape, tensor.shape + kMaxRank, view.shape.begin());
  std::copy(tensor.strides, tensor.strides + kMaxRank, view.strides.begin());
  return view;
}

}  // namespace

Inputs inputs_of(const chunkscan_inputs* given) {
  const chunkscan_inputs in = in_our_size("inputs", given);
  Inputs inputs;
  inputs.x = view_of("x", in.x);
  inputs.dt = view_of("dt", in.dt);
  inputs.A = view_of("A", in.A);
  inputs.B = view_of("B", in.B);
  inputs.C = view_of("C", in.C);
  inputs.D = view_of("D", in.D);
  inputs.z = view_of("z", in.z);
  inputs.dt_bias = view_of("dt_bias", in.dt_bias);
  inputs.initial_states = view_of("initial_states", in.initial_states);
  inputs.seq_idx = view_of("seq_idx", in.seq_idx);
  inputs.cu_seqlens = view_of("cu_seqlens", in.cu_seqlens);
  return inputs;
}

Outputs outputs_of(const chunkscan_outputs* given) {
  const chunkscan_outputs out = in_our_size("outputs", given);
  Outputs outputs;
  outputs.y = view_of("y", out.y);
  outputs.final_states = view_of("final_states", out.final_states);
  outputs.chunk_states = view_of("chunk_states", out.chunk_states);
  outputs.log_decay = view_of("log_decay", out.log_decay);
  return outputs;
}

Options options_of(const chunkscan_options* given) {
  if (given == nullptr) return {};
  const chunkscan_options o = in_our_size("options", given, default_options());
  Options options;
  options.dt_softplus = o.dt_softplus != 0;
  options.dt_min = o.dt_min;
  options.dt_max = o.dt_max;
  options.state_every = o.state_every;
  options.chunk_size = o.chunk_size;
  options.batch_invariant = o.batch_invariant != 0;
  options.check_contents = o.check_contents != 0;
  options.threads = o.threads;
  if (o.backend != nullptr) options.backend = o.backend;
  if (o.config != nullptr) options.config = o.config;
  if (o.architecture != nullptr) options.architecture = o.architecture;
  return options;
}

chunkscan_options default_options() {
  const Options defaults;
  chunkscan_options options = {};
  options.size = sizeof options;
  options.dt_min = defaults.dt_min;
  options.dt_max = defaults.dt_max;
  return options;
}

}  // namespace chunkscan
