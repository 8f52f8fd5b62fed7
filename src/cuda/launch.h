// From the library's words to those of the kernels, and the launch itself.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <type_traits>

#include "cuda/staged.h"

namespace chunkscan::cuda {

Element element_of(DType dtype);
Packing packing_of(const Problem& problem);

// An absent tensor has no data.
Tensor tensor_of(const Array& array, std::optional<DType> dtype);

// The part of the parameters that all families share; Config::out starts with the heads of a turn.
void fill_common(const StagedCall& call, ChunkCumsumParams& params);
void fill_common(const StagedCall& call, FwdPassStateCommon& params);
void fill_common(const StagedCall& call, ComputeOutCommon& params);

// The text of a config as a template argument, from its members in their order.
template <class... Members>
std::string expression(const char* type, Members... members) {
  const auto text = [](auto member) {
    using Member = decltype(member);
    if constexpr (std::is_same_v<Member, bool>) return std::string(member ? "true" : "false");
    if constexpr (std::is_same_v<Member, Element>) {
      return "chunkscan::cuda::Element{" + std::to_string(static_cast<int>(member)) + "}";
    } else if constexpr (std::is_same_v<Member, Packing>) {
      return "chunkscan::cuda::Packing{" + std::to_string(static_cast<int>(member)) + "}";
    } else if constexpr (std::is_same_v<Member, Load>) {
      return "chunkscan::cuda::Load{" + std::to_string(static_cast<int>(member)) + "}";
    } else {
      return std::to_string(member);
    }
  };
  std::string list;
  ((list += (list.empty() ? "" : ", ") + text(members)), ...);
  return std::string("chunkscan::cuda::") + type + "{" + list + "}";
}

// The key of `function<config>`, which takes a `params`.
KernelKey key_of(const DeviceInfo& device, const char* file, const char* function,
                 const std::string& config, const char* params, int threads, int min_blocks = 1);

// Whether its kernels may start while the one before ends.
inline bool device_overlaps(const DeviceInfo& device) { return device.major >= 9; }

// Launches a loaded kernel. `follows`: it waits by itself for the kernel before it in the stream,
// and may start while that one ends (compute capability 9.0 and later). Throws Error(kRuntime)
// where it has not been prepared. That a grid may have so many blocks the plan has seen to.
void launch(const Step& step, std::int64_t blocks, const void* params, CUstream stream,
            bool follows = false);

}  // namespace chunkscan::cuda
