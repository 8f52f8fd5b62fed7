#include "testkit/compare.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <limits>
#include <stdexcept>

#include "op/element.h"
#include "testkit/tensors.h"

namespace chunkscan::testkit {

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

double rounded(double value, DType dtype) {
  std::byte element[sizeof(double)];
  store_element(dtype, element, value);
  return load_element(dtype, element);
}

// Whether `got` is what may stand where the right value is too large for its dtype.
bool saturated(double got, double infinity, DType dtype) {
  // The next value towards 0 from infinity: one bit less.
  std::uint64_t bits = 0;
  std::byte element[sizeof bits];
  store_element(dtype, element, infinity);
  std::memcpy(&bits, element, size_of(dtype));
  --bits;
  std::memcpy(element, &bits, size_of(dtype));
  return got == infinity || got == load_element(dtype, element);
}

double ratio(double error_squares, double want_squares) {
  if (error_squares == 0.0) return 0.0;
  return want_squares > 0.0 ? std::sqrt(error_squares / want_squares) : kInfinity;
}

// Columns: y standard, y any, state standard, state any.
std::array<double, 4> bounds_of(DType dtype) {
  switch (dtype) {
    case DType::kBF16: return {2.5e-3, 3e-3, 2.5e-3, 2.5e-3};
    case DType::kF16: return {5e-4, 5e-4, 5e-4, 5e-4};
    default: return {5e-6, 1e-5, 5e-6, 1e-5};
  }
}

}  // namespace

Comparison compare(std::string name, const TensorView& got, const TensorView& want,
                   double allowed) {
  if (got.rank != want.rank ||
      !std::equal(got.shape.begin(), got.shape.begin() + got.rank, want.shape.begin())) {
    throw std::invalid_argument("compare: shapes differ");
  }
  Comparison result;
  result.name = std::move(name);
  result.allowed = allowed;
  result.rank = got.rank;
  double error_squares = 0.0, want_squares = 0.0, floor_squares = 0.0, worst = -1.0;
  const auto want_bytes = static_cast<std::int64_t>(size_of(want.dtype));
  for_each_element(got, [&](Index index, const std::byte* address) {
    std::int64_t offset = 0;
    for (std::size_t i = 0; i < index.size(); ++i) offset += index[i] * want.strides[i];
    const double a = load_element(got.dtype, address);
    const double b =
        load_element(want.dtype, static_cast<const std::byte*>(want.data) + offset * want_bytes);
    const double nearest = rounded(b, got.dtype);
    double error = std::fabs(a - b);
    if (!std::isfinite(nearest)) {
      if (std::isnan(b) ? !std::isfinite(a) : saturated(a, nearest, got.dtype)) return;
      error = kInfinity;
    } else {
      if (!std::isfinite(a)) error = kInfinity;
      error_squares += error * error;
      want_squares += b * b;
      floor_squares += (nearest - b) * (nearest - b);
    }
    if (error == kInfinity) error_squares = kInfinity;
    if (error > worst) {
      worst = error;
      std::copy(index.begin(), index.end(), result.worst_index.begin());
      result.worst_got = a;
      result.worst_want = b;
    }
  });
  result.rel_err = ratio(error_squares, want_squares);
  result.rounding_floor = ratio(floor_squares, want_squares);
  result.ok = result.rel_err <= allowed;
  return result;
}

double rounding_floor(const TensorView& want, DType dtype) {
  double error_squares = 0.0, want_squares = 0.0;
  for_each_element(want, [&](Index, const std::byte* address) {
    const double value = load_element(want.dtype, address);
    const double nearest = rounded(value, dtype);
    if (!std::isfinite(nearest)) return;
    error_squares += (nearest - value) * (nearest - value);
    want_squares += value * value;
  });
  return ratio(error_squares, want_squares);
}

double allowed_error(Output output, Data data, DType inputs, const TensorView& want, DType stored) {
  const auto elements = static_cast<double>(std::max<std::int64_t>(want.elements(), 1));
  const double small_tensor = 1.0 + 4.0 / std::sqrt(elements);
  if (stored == DType::kF64) return 1e-12 * small_tensor;
  const auto bounds = bounds_of(output == Output::kLogDecay ? DType::kF32 : inputs);
  const double bound =
      bounds[(output == Output::kY ? 0 : 2) + (data == Data::kStandard ? 0 : 1)] * small_tensor;
  if (output != Output::kState || size_of(stored) > 2) return bound;
  return std::hypot(bound, rounding_floor(want, stored) * small_tensor);
}

DType least_precise(const Inputs& inputs) {
  DType least = DType::kF32;
  for (const TensorView* view : {&inputs.x, &inputs.B, &inputs.C, &inputs.z}) {
    if (!view->present()) continue;
    if (view->dtype == DType::kBF16) return DType::kBF16;
    if (view->dtype == DType::kF16) least = DType::kF16;
  }
  return least;
}

std::string to_string(const Comparison& c) {
  std::string at = "[";
  for (int i = 0; i < c.rank; ++i) at += (i > 0 ? ", " : "") + std::to_string(c.worst_index[i]);
  char text[256];
  std::snprintf(
      text, sizeof text,
      "%-14s %s error %.3g, allowed %.3g, rounding alone %.3g; worst: got %.9g, right %.9g at ",
      c.name.c_str(), c.ok ? "ok  " : "FAIL", c.rel_err, c.allowed, c.rounding_floor, c.worst_got,
      c.worst_want);
  return text + at + "]";
}

}  // namespace chunkscan::testkit
