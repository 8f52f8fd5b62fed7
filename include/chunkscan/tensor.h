// A view of memory that somebody else owns, with the fields of a DLPack tensor.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <span>

namespace chunkscan {

enum class DType : std::uint8_t { kF64, kF32, kBF16, kF16, kI32, kI64 };

// Bytes of one element.
std::size_t size_of(DType dtype);
// "f64", "f32", "bf16", "f16", "i32", "i64": the spelling of messages, flags and logs.
const char* name_of(DType dtype);

enum class DeviceKind : std::uint8_t { kCpu, kCuda };

struct Device {
  DeviceKind kind = DeviceKind::kCpu;
  int index = 0;
  friend bool operator==(const Device&, const Device&) = default;
};

inline constexpr int kMaxRank = 5;

// `rank` says how many entries of `shape` and `strides` count. Strides are in elements, may be 0
// (a broadcast input) or negative. `data` points at element [0, 0, ...]; inputs are never written
// through it. A default-constructed view means "absent": an optional input not given, an output
// not wanted. A view with a rank but no data has a shape only, which is enough to make a plan.
struct TensorView {
  void* data = nullptr;
  DType dtype = DType::kF32;
  Device device = {};
  int rank = 0;
  std::array<std::int64_t, kMaxRank> shape = {};
  std::array<std::int64_t, kMaxRank> strides = {};

  TensorView() = default;

  // A contiguous (row-major) tensor, the last dimension fastest.
  TensorView(const void* pointer, DType type, std::initializer_list<std::int64_t> sizes,
             Device where = {});
  TensorView(const void* pointer, DType type, std::span<const std::int64_t> sizes,
             Device where = {});

  // A tensor with strides of its own, in elements.
  TensorView(const void* pointer, DType type, std::initializer_list<std::int64_t> sizes,
             std::initializer_list<std::int64_t> strides_in_elements, Device where = {});

  bool present() const { return rank > 0; }
  std::int64_t elements() const;  // product of the sizes; 0 for an absent view
};

}  // namespace chunkscan
