#include "cuda/staged.h"

#include <algorithm>
#include <utility>

#include "chunkscan/error.h"
#include "cuda/launch.h"

namespace chunkscan::cuda {

namespace {

// A warp for each: blocks enough for every multiprocessor, also where tokens are few.
constexpr int kCumsumHeads = 8;

void run_find_runs(const StagedCall& call) {
  if (call.problem.packing != chunkscan::Packing::kSeqIdx) return;
  const FindRunsParams params =
      find_runs_of(call.problem, call.buffers, call.plan.workspace, call.workspace);
  const std::int64_t blocks = run_tiles(call.problem.b * call.problem.l);
  for (StepIndex i : {kCountRuns, kWriteRuns}) {
    launch(call.plan.steps[i], blocks, &params, call.stream);
  }
}

void run_chunk_cumsum(const StagedCall& call) {
  const Problem& problem = call.problem;
  const Step& step = call.plan.steps[kChunkCumsum];
  ChunkCumsumParams params{};
  fill_common(call, params);
  params.dt = tensor_of(call.buffers.dt, problem.dt);
  params.A = tensor_of(call.buffers.A, DType::kF32);
  params.dt_bias = tensor_of(call.buffers.dt_bias, problem.dt_bias);
  params.y = tensor_of(call.buffers.y, problem.y);
  params.chunk_states = tensor_of(call.buffers.chunk_states, problem.chunk_states);
  params.chunk_states_rows = problem.state_every > 0 ? problem.l / problem.state_every : 0;
  params.p = static_cast<int>(problem.p);
  params.n = static_cast<int>(problem.n);
  params.dt_min = problem.dt_min;
  params.dt_max = problem.dt_max;
  params.softplus = problem.dt_softplus;
  const std::int64_t head_blocks = (problem.h + kCumsumHeads - 1) / kCumsumHeads;
  std::int64_t blocks = slots_of(problem, call.config.q) * head_blocks;
  if (problem.packing == chunkscan::Packing::kSeqIdx) blocks = resident_blocks(call, step, blocks);
  // Without a chunk there are still rows of y to zero.
  if (problem.packing != chunkscan::Packing::kNone) blocks = std::max<std::int64_t>(blocks, 1);
  launch(step, blocks, &params, call.stream);
}

// Whether anything reads the states of a pass over them.
bool needs_states(const Problem& problem, const Config& config) {
  const bool one_chunk =
      slots_of(problem, config.q) <= problem.b && problem.packing == chunkscan::Packing::kNone;
  return !one_chunk || problem.initial_states || problem.final_states || problem.chunk_states ||
         problem.log_decay;
}

}  // namespace

void require_grids(const Problem& problem, int q, int slices) {
  constexpr double kMostBlocks = 2147483647.0;
  const auto h = static_cast<double>(problem.h);
  const double blocks = std::max(static_cast<double>(problem.sequences) * h * slices,
                                 static_cast<double>(slots_of(problem, q)) * h / kCumsumHeads);
  if (blocks <= kMostBlocks) return;
  throw Error(
      ErrorKind::kUnsupported,
      "[forward] x: expected sequences, heads and chunks for at most 2^31 - 1 blocks, got " +
          std::to_string(problem.sequences) + " sequences of " + std::to_string(problem.h) +
          " heads");
}

void add_shared_steps(const Problem& problem, const DeviceInfo& device, ChunkCumsumConfig config,
                      std::array<Step, kSteps>& steps) {
  constexpr int kBlocks = 8;
  config.heads = kCumsumHeads;
  const ChunkCumsumConfig& c = config;
  steps[kChunkCumsum].key = key_of(
      device, "chunk_cumsum.cuh", "chunk_cumsum",
      expression("ChunkCumsumConfig", c.q, c.heads, c.packing, c.compensated, c.split_weights),
      "ChunkCumsumParams", c.threads());
  steps[kChunkCumsum].blocks_per_multiprocessor = kBlocks;
  if (problem.packing != chunkscan::Packing::kSeqIdx) return;
  for (const auto& [index, count] : {std::pair{kCountRuns, true}, std::pair{kWriteRuns, false}}) {
    steps[index].key =
        key_of(device, "find_runs.cuh", "find_runs", expression("FindRunsConfig", count),
               "FindRunsParams", FindRunsConfig{}.threads());
  }
}

std::vector<Step> kernels_of(const StagedPlan& plan) {
  std::vector<Step> kernels;
  const auto add = [&kernels](const Step& step) {
    const auto same = [&step](const Step& other) { return other.key == step.key; };
    const bool known = std::any_of(kernels.begin(), kernels.end(), same);
    if (!step.key.file.empty() && !known) kernels.push_back(step);
  };
  for (const Step& step : plan.steps) add(step);
  for (const Step& step : plan.siblings) add(step);
  return kernels;
}

std::int64_t resident_blocks(const StagedCall& call, const Step& step, std::int64_t turns) {
  const std::int64_t resident =
      std::int64_t{call.device.multiprocessors} * step.blocks_per_multiprocessor;
  // How many turns seq_idx makes only the device knows.
  return call.problem.packing == chunkscan::Packing::kSeqIdx ? resident : std::min(turns, resident);
}

void run_staged(const Family& family, const StagedCall& call) {
  run_find_runs(call);
  run_chunk_cumsum(call);
  if (needs_states(call.problem, call.config)) family.fwd_pass_state(call);
  family.compute_out(call);
}

}  // namespace chunkscan::cuda
