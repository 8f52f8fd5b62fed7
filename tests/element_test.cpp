#include "op/element.h"

#include <gtest/gtest.h>

#include <cmath>
#include <ostream>

namespace chunkscan {
namespace {

// The value of a 16-bit float, from the definition of the format.
double value_of(unsigned bits, int mantissa_bits, int bias) {
  const double sign = (bits & 0x8000u) ? -1.0 : 1.0;
  const int mantissa = static_cast<int>(bits & ((1u << mantissa_bits) - 1));
  const int exponent = static_cast<int>((bits & 0x7fffu) >> mantissa_bits);
  const int largest = (1 << (15 - mantissa_bits)) - 1;
  if (exponent == largest) return mantissa == 0 ? sign * HUGE_VAL : NAN;
  if (exponent == 0) return sign * std::ldexp(mantissa, 1 - bias - mantissa_bits);
  return sign * std::ldexp(mantissa + (1 << mantissa_bits), exponent - bias - mantissa_bits);
}

struct Format {
  DType dtype;
  int mantissa_bits, bias;
  unsigned infinity;
};

void PrintTo(const Format& format, std::ostream* out) { *out << name_of(format.dtype); }

class SixteenBits : public testing::TestWithParam<Format> {
 protected:
  double load(unsigned bits) const {
    const std::uint16_t element[4] = {static_cast<std::uint16_t>(bits)};  // room for any dtype
    return load_element(GetParam().dtype, reinterpret_cast<const std::byte*>(element));
  }
  unsigned store(double value) const {
    std::uint16_t element[4] = {};
    store_element(GetParam().dtype, reinterpret_cast<std::byte*>(element), value);
    return element[0];
  }
  double value(unsigned bits) const {
    return value_of(bits, GetParam().mantissa_bits, GetParam().bias);
  }
};

TEST_P(SixteenBits, EveryPatternLoadsAndStoresBack) {
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    const double want = value(bits);
    if (std::isnan(want)) {
      EXPECT_TRUE(std::isnan(load(bits))) << bits;
      EXPECT_TRUE(std::isnan(load(store(load(bits))))) << bits;
      continue;
    }
    EXPECT_EQ(load(bits), want) << bits;
    EXPECT_EQ(store(want), bits);
  }
}

// Between every two neighbours: the tie goes to the even one, a hair beside it to the nearer one,
// in double as well, where a detour through float would lose the hair.
TEST_P(SixteenBits, RoundsOnceToNearestEven) {
  for (unsigned bits = 0; bits + 1 < GetParam().infinity; ++bits) {
    const double low = value(bits), high = value(bits + 1), tie = (low + high) / 2;
    const unsigned even = bits % 2 == 0 ? bits : bits + 1;
    EXPECT_EQ(store(tie), even) << bits;
    EXPECT_EQ(store(-tie), even | 0x8000u) << bits;
    EXPECT_EQ(store(std::nextafter(tie, 0.0)), bits);
    EXPECT_EQ(store(std::nextafter(tie, HUGE_VAL)), bits + 1);
    EXPECT_EQ(store(-std::nextafter(tie, 0.0)), bits | 0x8000u);
  }
}

TEST_P(SixteenBits, OverflowsToInfinityHalfAStepAboveTheLargest) {
  const unsigned infinity = GetParam().infinity;
  const double largest = value(infinity - 1);
  const double edge = largest + (largest - value(infinity - 2)) / 2;
  EXPECT_EQ(store(edge), infinity);
  EXPECT_EQ(store(std::nextafter(edge, 0.0)), infinity - 1);
  EXPECT_EQ(store(1e300), infinity);
  EXPECT_EQ(store(-1e300), infinity | 0x8000u);
  EXPECT_EQ(store(HUGE_VAL), infinity);
  EXPECT_EQ(store(1e-300), 0u);
  EXPECT_EQ(store(-1e-300), 0x8000u);
  EXPECT_TRUE(std::isnan(value(store(NAN))));
}

INSTANTIATE_TEST_SUITE_P(Element, SixteenBits,
                         testing::Values(Format{DType::kBF16, 7, 127, 0x7f80},
                                         Format{DType::kF16, 10, 15, 0x7c00}),
                         [](const auto& info) { return name_of(info.param.dtype); });

TEST(Element, Bf16OfANaNWithALowPayloadStaysANaN) {
  const float nan = std::bit_cast<float>(0x7f800001u);
  EXPECT_TRUE(std::isnan(f32_from_bf16(bf16_from_f32(nan))));
}

TEST(Element, IntegersLoadAndStore) {
  std::int64_t wide = 0;
  store_element(DType::kI64, reinterpret_cast<std::byte*>(&wide), -1099511627776.0);
  EXPECT_EQ(wide, -1099511627776);
  EXPECT_EQ(load_element(DType::kI64, reinterpret_cast<const std::byte*>(&wide)), -1099511627776.0);
}

}  // namespace
}  // namespace chunkscan
