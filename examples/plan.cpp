// A plan kept for many calls: a long prompt read in pieces, the state carried from each to the next
// in one buffer. Nothing is allocated or decided inside the loop.
#include <chunkscan/chunkscan.h>

#include <cmath>
#include <cstdio>
#include <random>
#include <vector>

using chunkscan::DType;
using chunkscan::Inputs;
using chunkscan::Outputs;

constexpr long pieces = 4, l = 500, h = 8, p = 64, n = 128, g = 1;

std::vector<float> random_values(long count, float scale) {
  static std::mt19937 generator(1);
  std::normal_distribution<float> normal(0, scale);
  std::vector<float> values(count);
  for (float& value : values) value = normal(generator);
  return values;
}

int main() {
  const auto x = random_values(pieces * l * h * p, 1), dt = random_values(pieces * l * h, 1);
  const auto B = random_values(pieces * l * g * n, 0.1f), C = random_values(pieces * l * g * n, 1);
  const std::vector<float> A(h, -1);
  std::vector<float> y(x.size()), state(h * p * n, 0);

  // The views of one piece; the next piece has the same shapes at other addresses.
  const auto inputs_of = [&](long piece, long tokens) {
    Inputs in;
    in.x = {&x[piece * l * h * p], DType::kF32, {1, tokens, h, p}};
    in.dt = {&dt[piece * l * h], DType::kF32, {1, tokens, h}};
    in.A = {A.data(), DType::kF32, {h}};
    in.B = {&B[piece * l * g * n], DType::kF32, {1, tokens, g, n}};
    in.C = {&C[piece * l * g * n], DType::kF32, {1, tokens, g, n}};
    in.initial_states = {state.data(), DType::kF32, {1, h, p, n}};
    return in;
  };
  const auto outputs_of = [&](long piece) {
    Outputs out;
    out.y = {&y[piece * l * h * p], DType::kF32, {1, l, h, p}};
    out.final_states = {state.data(), DType::kF32, {1, h, p, n}};  // replaces the initial state
    return out;
  };

  const chunkscan::Options options = {.dt_softplus = true};
  const chunkscan::Plan plan = chunkscan::make_plan(inputs_of(0, l), outputs_of(0), options);
  std::printf("%s\n", plan.to_string().c_str());
  chunkscan::prepare(plan);
  const chunkscan::Memory workspace = chunkscan::aligned_memory(plan.workspace_bytes());
  for (long piece = 0; piece < pieces; ++piece) {
    chunkscan::run(plan, inputs_of(piece, l), outputs_of(piece), workspace.get());
  }

  // The same prompt in one call gives the same numbers beyond rounding.
  std::vector<float> whole(y.size());
  Inputs in = inputs_of(0, pieces * l);
  in.initial_states = {};
  Outputs out;
  out.y = {whole.data(), DType::kF32, {1, pieces * l, h, p}};
  chunkscan::forward(in, out, options);
  double difference = 0, norm = 0;
  for (std::size_t i = 0; i < y.size(); ++i) {
    difference += std::pow(y[i] - whole[i], 2);
    norm += std::pow(whole[i], 2);
  }
  const double relative = std::sqrt(difference / norm);
  std::printf("in %ld pieces against in one call: relative difference %.1e\n", pieces, relative);
  return relative < 1e-5 ? 0 : 1;
}
