// Elements of any dtype, one at a time: for tensors that are small or rarely touched.
#pragma once

#include "params.h"

namespace chunkscan::cuda {

__device__ inline float bf16_to_float(u16 bits) { return __uint_as_float(u32{bits} << 16); }

__device__ inline float f16_to_float(u16 bits) {
  float value;
  asm("cvt.f32.f16 %0, %1;" : "=f"(value) : "h"(bits));
  return value;
}

__device__ inline u16 bf16_bits(float value) {
  u16 bits;
  asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
}

__device__ inline u16 f16_bits(float value) {
  u16 bits;
  asm("cvt.rn.f16.f32 %0, %1;" : "=h"(bits) : "f"(value));
  return bits;
}

__device__ inline float load(const Tensor& tensor, i64 index) {
  if (tensor.dtype == Element::kF32) return reinterpret_cast<const float*>(tensor.data)[index];
  const u16 bits = reinterpret_cast<const u16*>(tensor.data)[index];
  return tensor.dtype == Element::kBF16 ? bf16_to_float(bits) : f16_to_float(bits);
}

__device__ inline void store(const Tensor& tensor, i64 index, float value) {
  if (tensor.dtype == Element::kF32) {
    reinterpret_cast<float*>(tensor.data)[index] = value;
  } else {
    reinterpret_cast<u16*>(tensor.data)[index] =
        tensor.dtype == Element::kBF16 ? bf16_bits(value) : f16_bits(value);
  }
}

// Two neighbours packed in a register, the first one in the low half.
template <Element e>
__device__ inline u32 pack(float first, float second) {
  u32 bits;
  if constexpr (e == Element::kBF16) {
    asm("cvt.rn.bf16x2.f32 %0, %2, %1;" : "=r"(bits) : "f"(first), "f"(second));
  } else {
    asm("cvt.rn.f16x2.f32 %0, %2, %1;" : "=r"(bits) : "f"(first), "f"(second));
  }
  return bits;
}

template <Element e>
__device__ inline float2 unpack(u32 bits) {
  if constexpr (e == Element::kBF16) {
    return {__uint_as_float(bits << 16), __uint_as_float(bits & 0xffff0000u)};
  } else {
    return {f16_to_float(static_cast<u16>(bits)), f16_to_float(static_cast<u16>(bits >> 16))};
  }
}

}  // namespace chunkscan::cuda
