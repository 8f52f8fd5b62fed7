// Rows of any dtype and stride in and out of fp32 scratch. Per-target include guard, see Highway.
#if defined(CHUNKSCAN_CPU_ROWS_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef CHUNKSCAN_CPU_ROWS_INL_H
#undef CHUNKSCAN_CPU_ROWS_INL_H
#else
#define CHUNKSCAN_CPU_ROWS_INL_H
#endif

#include <cstring>

#include "cpu/layout.h"
#include "cpu/math-inl.h"
#include "op/element.h"

HWY_BEFORE_NAMESPACE();
namespace chunkscan::HWY_NAMESPACE {

using U16 = hn::Rebind<uint16_t, F32>;
using U32 = hn::Rebind<uint32_t, F32>;
inline constexpr U16 u16;
inline constexpr U32 u32;

// One struct a dtype: its storage type, a vector in, a vector out. `stream` is `store` past the
// caches, to an address aligned to the vector's size in that dtype.
struct Float32 {
  using T = float;
  static HWY_INLINE V load(const T* from) { return hn::LoadU(f32, from); }
  static HWY_INLINE void store(V v, T* to) { hn::StoreU(v, f32, to); }
  static HWY_INLINE void stream(V v, T* to) { hn::Stream(v, f32, to); }
};

// Highway streams 16 bytes at least, however short the vector.
HWY_INLINE void stream_u16(hn::Vec<U16> v, uint16_t* to) {
  if constexpr (hn::MaxLanes(u16) * sizeof(uint16_t) >= 16) {
    hn::Stream(v, u16, to);
  } else {
    hn::StoreU(v, u16, to);
  }
}

struct BFloat16 {
  using T = uint16_t;
  static HWY_INLINE V load(const T* from) {
    return hn::BitCast(f32, hn::ShiftLeft<16>(hn::PromoteTo(u32, hn::LoadU(u16, from))));
  }
  // Round to nearest even by integers: Highway 1.0.3's own demotion truncates.
  static HWY_INLINE void store(V v, T* to) { hn::StoreU(round(v), u16, to); }
  static HWY_INLINE void stream(V v, T* to) { stream_u16(round(v), to); }
  static HWY_INLINE hn::Vec<U16> round(V v) {
    const auto bits = hn::BitCast(u32, v);
    const auto odd = hn::And(hn::ShiftRight<16>(bits), hn::Set(u32, 1));
    const auto rounded = hn::ShiftRight<16>(hn::Add(bits, hn::Add(odd, hn::Set(u32, 0x7fff))));
    const auto quiet = hn::Or(hn::ShiftRight<16>(bits), hn::Set(u32, 0x40));
    const auto is_nan = hn::RebindMask(u32, hn::IsNaN(v));
    return hn::TruncateTo(u16, hn::IfThenElse(is_nan, quiet, rounded));
  }
};

struct Float16 {
  using T = uint16_t;
#if HWY_TARGET == HWY_SCALAR || (HWY_ARCH_X86 && HWY_TARGET > HWY_AVX2)
  // Highway 1.0.3's fp16 is wrong without F16C.
  static HWY_INLINE V load(const T* from) {
    alignas(64) float lane[hn::MaxLanes(f32)];
    for (std::size_t i = 0; i < hn::Lanes(f32); ++i) lane[i] = f32_from_f16(from[i]);
    return hn::Load(f32, lane);
  }
  static HWY_INLINE void store(V v, T* to) {
    alignas(64) float lane[hn::MaxLanes(f32)];
    hn::Store(v, f32, lane);
    for (std::size_t i = 0; i < hn::Lanes(f32); ++i) to[i] = f16_from_f32(lane[i]);
  }
  static HWY_INLINE void stream(V v, T* to) { store(v, to); }
#else
  static constexpr hn::Rebind<hwy::float16_t, F32> f16{};
  static HWY_INLINE V load(const T* from) {
    return hn::PromoteTo(f32, hn::BitCast(f16, hn::LoadU(u16, from)));
  }
  static HWY_INLINE void store(V v, T* to) { hn::StoreU(round(v), u16, to); }
  static HWY_INLINE void stream(V v, T* to) { stream_u16(round(v), to); }
  static HWY_INLINE hn::Vec<U16> round(V v) { return hn::BitCast(u16, hn::DemoteTo(f16, v)); }
#endif
};

template <class Body>
HWY_INLINE void with_dtype(DType dtype, Body&& body) {
  switch (dtype) {
    case DType::kBF16: body(BFloat16()); break;
    case DType::kF16: body(Float16()); break;
    case DType::kF32: body(Float32()); break;
    default: HWY_ABORT("not a dtype of values");  // validate lets no other through
  }
}

// Calls body(i, vector) for i = 0, lanes, 2 lanes, ... over `count` elements `stride` apart;
// missing lanes of the last vector are 0.
template <class Type, class Body>
HWY_INLINE void for_each_vector(const std::byte* data, std::int64_t stride, std::int64_t count,
                                Body&& body) {
  using T = typename Type::T;
  const T* from = reinterpret_cast<const T*>(data);
  const std::int64_t step = lanes();
  std::int64_t i = 0;
  if (stride == 1) {
    for (; i + step <= count; i += step) body(i, Type::load(from + i));
  }
  for (; i < count; i += step) {
    T lane[hn::MaxLanes(f32)] = {};
    const std::int64_t valid = count - i < step ? count - i : step;
    for (std::int64_t k = 0; k < valid; ++k) lane[k] = from[(i + k) * stride];
    body(i, Type::load(lane));
  }
}

template <class Type>
HWY_INLINE void store_vector(V v, std::byte* data, std::int64_t stride, std::int64_t i,
                             std::int64_t count) {
  using T = typename Type::T;
  T* to = reinterpret_cast<T*>(data);
  if (stride == 1 && i + lanes() <= count) return Type::store(v, to + i);
  T lane[hn::MaxLanes(f32)];
  Type::store(v, lane);
  for (std::int64_t k = 0; k < lanes() && i + k < count; ++k) to[(i + k) * stride] = lane[k];
}

// What the last whole vector of a row of `count` leaves of its padding.
HWY_INLINE void zero_padding(std::int64_t count, float* row) {
  const std::int64_t vectors = (count + lanes() - 1) / lanes() * lanes();
  for (std::int64_t i = vectors; i < padded(count); i += lanes()) {
    hn::StoreU(hn::Zero(f32), f32, row + i);
  }
}

// to[0 .. padded(count)) = the row, zeros behind it. Returns each lane's largest magnitude.
HWY_NOINLINE V load_row(DType dtype, const std::byte* data, std::int64_t stride, std::int64_t count,
                        float* to) {
  V most = hn::Zero(f32);
  with_dtype(dtype, [&](auto type) HWY_ATTR {
    for_each_vector<decltype(type)>(data, stride, count, [&](std::int64_t i, V v) HWY_ATTR {
      most = larger(hn::Abs(v), most);
      hn::StoreU(v, f32, to + i);
    });
  });
  zero_padding(count, to);
  return most;
}

HWY_NOINLINE void store_row(DType dtype, std::byte* data, std::int64_t stride, std::int64_t count,
                            const float* from) {
  with_dtype(dtype, [&](auto type) HWY_ATTR {
    for (std::int64_t i = 0; i < count; i += lanes()) {
      store_vector<decltype(type)>(hn::LoadU(f32, from + i), data, stride, i, count);
    }
  });
}

HWY_INLINE float load_scalar(DType dtype, const std::byte* data) {
  float lane[kRowPad];
  load_row(dtype, data, 1, 1, lane);
  return lane[0];
}

// to[c][r] = from[r][c]. Rows and columns are walked in blocks of four, so both sides are padded.
HWY_NOINLINE void transpose(const float* from, std::int64_t from_stride, std::int64_t rows,
                            std::int64_t columns, float* to, std::int64_t to_stride) {
#if HWY_TARGET == HWY_SCALAR
  for (std::int64_t c = 0; c < columns; ++c) {
    for (std::int64_t r = 0; r < rows; ++r) to[c * to_stride + r] = from[r * from_stride + c];
  }
#else
  const hn::CappedTag<float, 4> f4;
  const hn::Repartition<double, decltype(f4)> d2;
  for (std::int64_t c = 0; c < columns; c += 4) {
    for (std::int64_t r = 0; r < rows; r += 4) {
      const float* block = from + r * from_stride + c;
      const auto r0 = hn::LoadU(f4, block);
      const auto r1 = hn::LoadU(f4, block + from_stride);
      const auto r2 = hn::LoadU(f4, block + 2 * from_stride);
      const auto r3 = hn::LoadU(f4, block + 3 * from_stride);
      const auto low01 = hn::BitCast(d2, hn::InterleaveLower(f4, r0, r1));
      const auto low23 = hn::BitCast(d2, hn::InterleaveLower(f4, r2, r3));
      const auto high01 = hn::BitCast(d2, hn::InterleaveUpper(f4, r0, r1));
      const auto high23 = hn::BitCast(d2, hn::InterleaveUpper(f4, r2, r3));
      float* out = to + c * to_stride + r;
      hn::StoreU(hn::BitCast(f4, hn::InterleaveLower(d2, low01, low23)), f4, out);
      hn::StoreU(hn::BitCast(f4, hn::InterleaveUpper(d2, low01, low23)), f4, out + to_stride);
      hn::StoreU(hn::BitCast(f4, hn::InterleaveLower(d2, high01, high23)), f4, out + 2 * to_stride);
      hn::StoreU(hn::BitCast(f4, hn::InterleaveUpper(d2, high01, high23)), f4, out + 3 * to_stride);
    }
  }
#endif
}

}  // namespace chunkscan::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();
#endif  // per-target guard
