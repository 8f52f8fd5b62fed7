#include "op/alignment.h"

namespace chunkscan {

namespace {

std::uint8_t bytes_of(const TensorView& view) {
  constexpr std::uint64_t kMost = 16;
  std::uint64_t bits = reinterpret_cast<std::uintptr_t>(view.data) | kMost;
  for (int i = 0; i < view.rank; ++i) {
    if (view.shape[i] <= 1) continue;
    if (i == view.rank - 1) {
      if (view.strides[i] != 1) return 0;
    } else {
      if (view.strides[i] <= 0) return 0;
      bits |= static_cast<std::uint64_t>(view.strides[i]) * size_of(view.dtype);
    }
  }
  return static_cast<std::uint8_t>(bits & (~bits + 1));  // the lowest bit
}

}  // namespace

Alignment alignment_of(const Inputs& inputs, const Outputs& outputs) {
  Alignment alignment;
  alignment.x = bytes_of(inputs.x);
  alignment.B = bytes_of(inputs.B);
  alignment.C = bytes_of(inputs.C);
  alignment.z = bytes_of(inputs.z);
  alignment.y = bytes_of(outputs.y);
  return alignment;
}

}  // namespace chunkscan
