#include "cuda/staged.h"

#include "cuda/launch.h"

namespace chunkscan::cuda {

namespace {

constexpr int kFewHeads = 8, kManyHeads = 32;

int heads_of_block(const Problem& problem) {
  return problem.h <= kFewHeads ? kFewHeads : kManyHeads;
}

void run_chunk_cumsum(const StagedCall& call) {
  const Problem& problem = call.problem;
  ChunkCumsumParams params{};
  params.chunking = chunking_of(problem, call.buffers, call.config.q);
  params.decay = decay_of(problem, call.plan.workspace, call.workspace);
  params.dt = tensor_of(call.buffers.dt, problem.dt);
  params.A = tensor_of(call.buffers.A, DType::kF32);
  params.dt_bias = tensor_of(call.buffers.dt_bias, problem.dt_bias);
  params.y = tensor_of(call.buffers.y, problem.y);
  params.h = static_cast<int>(problem.h);
  params.p = static_cast<int>(problem.p);
  params.dt_min = problem.dt_min;
  params.dt_max = problem.dt_max;
  params.softplus = problem.dt_softplus;
  const int heads = heads_of_block(problem);
  launch(call.plan.steps[kChunkCumsum],
         params.chunking.slots * ((problem.h + heads - 1) / heads), &params, call.stream);
}

// Whether anything reads the states of a pass over them.
bool needs_states(const Problem& problem, const Config& config) {
  const bool one_chunk = slots_of(problem, config.q) <= problem.b &&
                         problem.packing == chunkscan::Packing::kNone;
  return !one_chunk || problem.initial_states || problem.final_states || problem.chunk_states ||
         problem.log_decay;
}

}  // namespace

Step chunk_cumsum_step(const Problem& problem, const DeviceInfo& device,
                       const ChunkCumsumConfig& config) {
  Step step;
  const ChunkCumsumConfig& c = config;
  step.key = key_of(device, "chunk_cumsum.cuh", "chunk_cumsum",
                    expression("ChunkCumsumConfig", c.q, heads_of_block(problem), c.packing,
                               c.compensated, c.split_weights),
                    "ChunkCumsumParams", c.threads());
  return step;
}

void run_staged(const Family& family, const StagedCall& call) {
  run_chunk_cumsum(call);
  if (needs_states(call.problem, call.config)) family.fwd_pass_state(call);
  family.compute_out(call);
}

}  // namespace chunkscan::cuda
