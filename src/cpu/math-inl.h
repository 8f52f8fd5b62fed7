// Elementary functions in fp32. Per-target include guard, see Highway.
#if defined(CHUNKSCAN_CPU_MATH_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef CHUNKSCAN_CPU_MATH_INL_H
#undef CHUNKSCAN_CPU_MATH_INL_H
#else
#define CHUNKSCAN_CPU_MATH_INL_H
#endif

#include "hwy/contrib/math/math-inl.h"
#include "hwy/highway.h"

HWY_BEFORE_NAMESPACE();
namespace chunkscan::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using F32 = hn::ScalableTag<float>;
using I32 = hn::Rebind<int32_t, F32>;
using V = hn::Vec<F32>;
inline constexpr F32 f32;
inline constexpr I32 i32;

HWY_INLINE std::int64_t lanes() { return static_cast<std::int64_t>(hn::Lanes(f32)); }

inline constexpr float kLog2e = 1.44269504f;
inline constexpr float kLog2eLow = 1.92596303e-8f;  // log2(e) - kLog2e

// The larger of the two; `most` where v is NaN. Only x86's instruction does so by itself.
HWY_INLINE V larger(V v, V most) {
#if HWY_ARCH_X86
  return hn::Max(v, most);
#else
  return hn::IfThenElse(hn::Gt(v, most), v, most);
#endif
}

// v 2^(high + low), |low| small against 1: 1 ulp where high + low is exact. The power may lie below
// fp32's normal numbers if the result does not. Underflows to 0 gradually, overflows to infinity,
// and passes NaN on. Cheaper than hn::Exp, which also turns NaN into 0.
HWY_INLINE V times_exp2(V v, V high, V low) {
  // The order of operands keeps a NaN: x86 returns the second one. Below -252 nothing in fp32 is
  // left of v, above 252 all is infinity.
  high = hn::Min(hn::Set(f32, 252.0f), hn::Max(hn::Set(f32, -252.0f), high));
  const auto whole = hn::NearestInt(high);
  const V f = hn::Add(hn::Sub(high, hn::ConvertTo(f32, whole)), low);
  // 2^f on [-1/2, 1/2] by interpolation at Chebyshev points: relative error 3e-9.
  V y = hn::Set(f32, 0.00015461444f);
  y = hn::MulAdd(y, f, hn::Set(f32, 0.0013400428f));
  y = hn::MulAdd(y, f, hn::Set(f32, 0.0096180567f));
  y = hn::MulAdd(y, f, hn::Set(f32, 0.055503272f));
  y = hn::MulAdd(y, f, hn::Set(f32, 0.24022651f));
  y = hn::MulAdd(y, f, hn::Set(f32, 0.69314721f));
  y = hn::MulAdd(y, f, hn::Set(f32, 1.0f));
  // 2^whole as two factors, each a normal number.
  const auto half = hn::ShiftRight<1>(whole);
  const auto bias = hn::Set(i32, 127);
  const V scale = hn::BitCast(f32, hn::ShiftLeft<23>(hn::Add(half, bias)));
  const V scale_rest = hn::BitCast(f32, hn::ShiftLeft<23>(hn::Add(hn::Sub(whole, half), bias)));
  return hn::Mul(hn::Mul(hn::Mul(v, y), scale), scale_rest);
}

HWY_INLINE V exp2_pair(V high, V low) { return times_exp2(hn::Set(f32, 1.0f), high, low); }

// 2^(high + low) as two factors: the second is 1 unless one alone would leave fp32's normal
// numbers.
struct Factors {
  V first, rest;
};
HWY_INLINE Factors exp2_factors(V high, V low) {
  const V most = hn::Set(f32, 125.0f);
  const V first = hn::Min(most, hn::Max(hn::Neg(most), high));  // the order keeps a NaN
  return {exp2_pair(first, low), exp2_pair(hn::Sub(high, first), hn::Zero(f32))};
}

// e^v through the pair v * log2(e), so that the product's rounding does not enter the exponent.
HWY_INLINE V exp(V v) {
  const V log2e = hn::Set(f32, kLog2e);
  v = hn::Min(hn::Set(f32, 200.0f), hn::Max(hn::Set(f32, -200.0f), v));
  const V high = hn::Mul(v, log2e);
  const V low = hn::MulAdd(v, hn::Set(f32, kLog2eLow), hn::MulSub(v, log2e, high));
  return exp2_pair(high, low);
}

// log1p(exp(v)). Above 20 it is v to fp32 precision, which also keeps exp from overflowing.
HWY_INLINE V softplus(V v) {
  const V small = hn::Log1p(f32, exp(hn::Min(hn::Set(f32, 20.0f), v)));
  return hn::IfThenElse(hn::Or(hn::Gt(v, hn::Set(f32, 20.0f)), hn::IsNaN(v)), v, small);
}

// y silu(z) = y z / (1 + e^-z), by e^(-|z| / 2), which never overflows. Far below 0 it is y z e^z,
// with half of the exponent for each factor: a large y may make up for a small e^z.
HWY_INLINE V gate(V y, V z) {
  const V half = exp(hn::Mul(hn::Set(f32, -0.5f), hn::Abs(z)));
  const auto negative = hn::Lt(z, hn::Zero(f32));
  const V left = hn::IfThenElse(negative, hn::Mul(y, half), y);
  const V right = hn::IfThenElse(negative, hn::Mul(z, half), z);
  return hn::Mul(left, hn::Div(right, hn::MulAdd(half, half, hn::Set(f32, 1.0f))));
}

}  // namespace chunkscan::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // per-target guard
