// One call of the layer. The inputs are constant, so the result has a closed form to compare with.
#include <chunkscan/chunkscan.h>

#include <cmath>
#include <cstdio>
#include <vector>

int main() {
  constexpr long b = 1, l = 2048, h = 24, p = 64, n = 128, g = 1;
  const float unit = 1 / std::sqrt(float{n});  // makes the product of B and C 1
  std::vector<float> x(b * l * h * p, 1), dt(b * l * h, 0.5), A(h, -1);
  std::vector<float> B(b * l * g * n, unit), C(b * l * g * n, unit), y(x.size());

  using chunkscan::DType;
  chunkscan::Inputs in;
  in.x = {x.data(), DType::kF32, {b, l, h, p}};
  in.dt = {dt.data(), DType::kF32, {b, l, h}};
  in.A = {A.data(), DType::kF32, {h}};
  in.B = {B.data(), DType::kF32, {b, l, g, n}};
  in.C = {C.data(), DType::kF32, {b, l, g, n}};
  chunkscan::Outputs out;
  out.y = {y.data(), DType::kF32, {b, l, h, p}};
  chunkscan::forward(in, out, {.dt_softplus = true});

  // y_t = exp(-d) y_{t-1} + d settles at d / (1 - exp(-d)).
  const double d = std::log1p(std::exp(0.5));
  const double expected = d / (1 - std::exp(-d));
  std::printf("first y %.6f, last y %.6f, expected %.6f and %.6f\n", y.front(), y.back(), d,
              expected);
  return std::fabs(y.front() - d) < 1e-5 && std::fabs(y.back() - expected) < 1e-5 ? 0 : 1;
}
