// From the library's words to those of the kernels, and the launch itself.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "cuda/staged.h"

namespace chunkscan::cuda {

Element element_of(DType dtype);
Packing packing_of(const Problem& problem);

Tensor tensor_of(const Array& array, std::optional<DType> dtype);

// Template arguments as text: expression("FwdPassStateConfig", 64, Element::kBF16, true).
inline std::string argument(int value) { return std::to_string(value); }
inline std::string argument(bool value) { return value ? "true" : "false"; }
template <class E>
  requires std::is_enum_v<E>
std::string argument(E value);

// Launches a loaded kernel; throws Error(kRuntime) where it was not prepared, and
// Error(kUnsupported) where a launch cannot have so many blocks.
void launch(const Step& step, std::int64_t blocks, const void* params, CUstream stream);

}  // namespace chunkscan::cuda
