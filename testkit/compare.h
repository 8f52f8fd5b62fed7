// How far an output is from the right one, and how far it may be. No test carries a tolerance of
// its own: they all come from here.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "testkit/outputs.h"

namespace chunkscan::testkit {

struct Comparison {
  std::string name;
  double rel_err = 0.0;  // ||got - want|| / ||want||; infinite where `got` lacks a number
  double allowed = 0.0;
  double rounding_floor = 0.0;  // rel_err of `want` rounded to got's dtype
  bool ok = false;

  // The element that is furthest off.
  int rank = 0;
  std::array<std::int64_t, kMaxRank> worst_index = {};
  double worst_got = 0.0, worst_want = 0.0;
};

// One line.
std::string to_string(const Comparison& comparison);

// `want` is f64 and has got's shape. The norms leave out where it is no number, and `got` must be
// neither a finite one, and where it rounds to infinity in got's dtype: there `got` is infinity of
// that sign, or the largest finite value.
Comparison compare(std::string name, const TensorView& got, const TensorView& want, double allowed);

// ||round(want) - want|| / ||want||.
double rounding_floor(const TensorView& want, DType dtype);

enum class Data {
  kStandard,  // x, B, C, z, dt, D ~ N(0,1), dt_bias ~ U(-4,-3), softplus, A = -exp(U(0, 2.7)),
              // l >= 1024, h >= 8
  kAny,       // any with A <= 0 and dt' >= 0
};

// The bound of rel_err:
//
//   inputs | y, standard | y, any  | state, log_decay: standard | any
//   bf16   | 2.5e-3      | 3e-3    | 2.5e-3                     | 2.5e-3
//   f16    | 5e-4        | 5e-4    | 5e-4                       | 5e-4
//   f32    | 5e-6        | 1e-5    | 5e-6                       | 1e-5
//
// times 1 + 4 / sqrt(elements). `inputs` is the least precise dtype of x, B, C, z; log_decay, which
// reads none of them, has the row of f32. A state stored in 16 bits adds the rounding of that
// dtype in quadrature. An f64 output, which the reference alone has, is right to 1e-12.
double allowed_error(Output output, Data data, DType inputs, const TensorView& want, DType stored);

// Where 16-bit inputs are multiplied in fp32, y's error is at most this many times its rounding
// floor on standard data.
inline constexpr double kNearRoundingFloor = 1.03;

// bf16 before f16 before f32.
DType least_precise(const Inputs& inputs);

}  // namespace chunkscan::testkit
