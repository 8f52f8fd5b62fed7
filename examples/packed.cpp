// Three prompts of different lengths packed into one call, each with a final state of its own; then
// the second prompt alone, which gives the same state.
#include <chunkscan/chunkscan.h>

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <random>
#include <vector>

using chunkscan::DType;

constexpr long s = 3, l = 300, h = 8, p = 64, n = 128, g = 2;

int main() {
  const std::vector<std::int32_t> cu_seqlens = {0, 120, 127, l};
  std::mt19937 generator(1);
  std::normal_distribution<float> normal;
  const auto random_values = [&](long count) {
    std::vector<float> values(count);
    for (float& value : values) value = normal(generator);
    return values;
  };
  const auto x = random_values(l * h * p), dt = random_values(l * h);
  const auto B = random_values(l * g * n), C = random_values(l * g * n);
  const std::vector<float> A(h, -1);
  std::vector<float> y(x.size()), states(s * h * p * n), state(h * p * n);
  const chunkscan::Options options = {.dt_softplus = true};

  chunkscan::Inputs in;
  in.x = {x.data(), DType::kF32, {1, l, h, p}};
  in.dt = {dt.data(), DType::kF32, {1, l, h}};
  in.A = {A.data(), DType::kF32, {h}};
  in.B = {B.data(), DType::kF32, {1, l, g, n}};
  in.C = {C.data(), DType::kF32, {1, l, g, n}};
  in.cu_seqlens = {cu_seqlens.data(), DType::kI32, {s + 1}};
  chunkscan::Outputs out;
  out.y = {y.data(), DType::kF32, {1, l, h, p}};
  out.final_states = {states.data(), DType::kF32, {s, h, p, n}};
  chunkscan::forward(in, out, options);

  const long begin = cu_seqlens[1], len = cu_seqlens[2] - begin;
  in.x = {&x[begin * h * p], DType::kF32, {1, len, h, p}};
  in.dt = {&dt[begin * h], DType::kF32, {1, len, h}};
  in.B = {&B[begin * g * n], DType::kF32, {1, len, g, n}};
  in.C = {&C[begin * g * n], DType::kF32, {1, len, g, n}};
  in.cu_seqlens = {};
  out.y = {&y[begin * h * p], DType::kF32, {1, len, h, p}};
  out.final_states = {state.data(), DType::kF32, {1, h, p, n}};
  chunkscan::forward(in, out, options);

  double difference = 0, norm = 0;
  for (long i = 0; i < h * p * n; ++i) {
    difference += std::pow(states[h * p * n + i] - state[i], 2);
    norm += std::pow(state[i], 2);
  }
  const double relative = std::sqrt(difference / norm);
  std::printf("%ld prompts in %ld tokens; the second alone: relative difference %.1e\n", s, l,
              relative);
  return relative < 1e-5 ? 0 : 1;
}
