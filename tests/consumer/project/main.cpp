// Runs one tiny call and checks a value that can be worked out by hand.
#include <chunkscan/chunkscan.h>

#include <cmath>
#include <cstdio>
#include <string>

int main() {
  using chunkscan::DType;
  using chunkscan::TensorView;
  // One token, one head, p = n = 1, from state 2 with no decay: S = 2 + 1 * 3 * 5, y = 7 S.
  const float x = 3, dt = 1, A = 0, B = 5, C = 7, initial_state = 2;
  float y = 0;
  chunkscan::Inputs inputs;
  inputs.x = TensorView(&x, DType::kF32, {1, 1, 1, 1});
  inputs.dt = TensorView(&dt, DType::kF32, {1, 1, 1});
  inputs.A = TensorView(&A, DType::kF32, {1});
  inputs.B = TensorView(&B, DType::kF32, {1, 1, 1, 1});
  inputs.C = TensorView(&C, DType::kF32, {1, 1, 1, 1});
  inputs.initial_states = TensorView(&initial_state, DType::kF32, {1, 1, 1, 1});
  chunkscan::Outputs outputs;
  outputs.y = TensorView(&y, DType::kF32, {1, 1, 1, 1});
  chunkscan::forward(inputs, outputs);

  std::printf("chunkscan %s: y = %g\n", chunkscan::version(), y);
  const std::string built = std::to_string(CHUNKSCAN_VERSION_MAJOR) + "." +
                            std::to_string(CHUNKSCAN_VERSION_MINOR) + "." +
                            std::to_string(CHUNKSCAN_VERSION_PATCH);
  return std::fabs(y - 119.0f) < 1e-3f && built == chunkscan::version() ? 0 : 1;
}
