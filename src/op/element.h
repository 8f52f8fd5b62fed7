// One element of any dtype: bits to numbers and back. Scalar code; vector code has its own loads.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <limits>

#include "chunkscan/tensor.h"

namespace chunkscan {

inline float f32_from_bf16(std::uint16_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits) << 16);
}

// Rounds to nearest, ties to even. NaN stays NaN, its payload cut.
inline std::uint16_t bf16_from_f32(float value) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  if (std::isnan(value)) return static_cast<std::uint16_t>((bits >> 16) | 0x40u);
  return static_cast<std::uint16_t>((bits + 0x7fffu + ((bits >> 16) & 1u)) >> 16);
}

inline float f32_from_f16(std::uint16_t bits) {
  constexpr std::uint32_t kRebias = (127 - 15) << 23;
  const std::uint32_t sign = static_cast<std::uint32_t>(bits & 0x8000u) << 16;
  const std::uint32_t magnitude = bits & 0x7fffu;
  if (magnitude >= 0x7c00u) {  // infinity or NaN
    return std::bit_cast<float>(sign | 0x7f800000u | (magnitude & 0x3ffu) << 13);
  }
  if (magnitude < 0x400u) {  // zero or denormal
    return std::copysign(static_cast<float>(magnitude) * 0x1p-24f, std::bit_cast<float>(sign));
  }
  return std::bit_cast<float>(sign | ((magnitude << 13) + kRebias));
}

// Rounds to nearest, ties to even; from 65520 on to infinity. NaN stays NaN.
inline std::uint16_t f16_from_f32(float value) {
  constexpr std::uint32_t kRebias = (127 - 15) << 23;
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16) & 0x8000u;
  std::uint32_t magnitude = bits & 0x7fffffffu;
  if (std::isnan(value)) {
    magnitude = 0x7e00u;
  } else if (magnitude >= std::bit_cast<std::uint32_t>(65520.0f)) {
    magnitude = 0x7c00u;
  } else if (magnitude < std::bit_cast<std::uint32_t>(0x1p-14f)) {
    // Denormal, a multiple of 2^-24: what 0.5's unit in the last place is, so the adder rounds.
    magnitude =
        std::bit_cast<std::uint32_t>(std::fabs(value) + 0.5f) - std::bit_cast<std::uint32_t>(0.5f);
  } else {
    magnitude = (magnitude - kRebias + 0xfffu + ((magnitude >> 13) & 1u)) >> 13;
  }
  return static_cast<std::uint16_t>(sign | magnitude);
}

// The float that rounds to a 16-bit type as `value` itself would. Rounding to nearest twice, to
// float and then on, can go the wrong way at ties, so inexact values get an odd last bit.
inline float f32_to_round_again(double value) {
  const float nearest = static_cast<float>(value);
  if (std::isnan(value) || static_cast<double>(nearest) == value) return nearest;
  std::uint32_t bits = std::bit_cast<std::uint32_t>(nearest);
  if (std::fabs(static_cast<double>(nearest)) > std::fabs(value)) --bits;  // towards zero
  return std::bit_cast<float>(bits | 1u);
}

template <typename T>
T load_as(const std::byte* address) {
  T value;
  std::memcpy(&value, address, sizeof value);
  return value;
}

inline double load_element(DType dtype, const std::byte* address) {
  switch (dtype) {
    case DType::kF64: return load_as<double>(address);
    case DType::kF32: return load_as<float>(address);
    case DType::kBF16: return f32_from_bf16(load_as<std::uint16_t>(address));
    case DType::kF16: return f32_from_f16(load_as<std::uint16_t>(address));
    case DType::kI32: return load_as<std::int32_t>(address);
    case DType::kI64: return static_cast<double>(load_as<std::int64_t>(address));
  }
  return std::numeric_limits<double>::quiet_NaN();
}

// Rounds once, to nearest even, whatever the dtype. Integer dtypes take whole numbers in range.
inline void store_element(DType dtype, std::byte* address, double value) {
  const auto put = [address](auto element) { std::memcpy(address, &element, sizeof element); };
  switch (dtype) {
    case DType::kF64: return put(value);
    case DType::kF32: return put(static_cast<float>(value));
    case DType::kBF16: return put(bf16_from_f32(f32_to_round_again(value)));
    case DType::kF16: return put(f16_from_f32(f32_to_round_again(value)));
    case DType::kI32: return put(static_cast<std::int32_t>(value));
    case DType::kI64: return put(static_cast<std::int64_t>(value));
  }
}

}  // namespace chunkscan
