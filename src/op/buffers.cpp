#include "op/buffers.h"

namespace chunkscan {

namespace {

Array array_of(const TensorView& view) {
  Array array;
  array.data = static_cast<std::byte*>(view.data);
  array.element_bytes = static_cast<std::int64_t>(size_of(view.dtype));
  // A stride that nobody takes may be any number, and must not overflow what it is multiplied with.
  for (int i = 0; i < view.rank; ++i) {
    const auto at = static_cast<std::size_t>(i);
    array.strides[at] = view.shape[at] > 1 ? view.strides[at] : 0;
  }
  return array;
}

}  // namespace

Buffers buffers_of(const Inputs& inputs, const Outputs& outputs) {
  Buffers buffers;
  buffers.x = array_of(inputs.x);
  buffers.dt = array_of(inputs.dt);
  buffers.A = array_of(inputs.A);
  buffers.B = array_of(inputs.B);
  buffers.C = array_of(inputs.C);
  buffers.D = array_of(inputs.D);
  buffers.z = array_of(inputs.z);
  buffers.dt_bias = array_of(inputs.dt_bias);
  buffers.initial_states = array_of(inputs.initial_states);
  buffers.seq_idx = array_of(inputs.seq_idx);
  buffers.cu_seqlens = array_of(inputs.cu_seqlens);
  buffers.y = array_of(outputs.y);
  buffers.final_states = array_of(outputs.final_states);
  buffers.chunk_states = array_of(outputs.chunk_states);
  buffers.log_decay = array_of(outputs.log_decay);
  return buffers;
}

}  // namespace chunkscan
