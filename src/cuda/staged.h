// The staged route: chunk_cumsum, fwd_pass_state, compute_out, one launch each. What differs
// between the families of kernels (sm90, portable) is in a Family.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "cuda/driver_types.h"
#include "cuda/jit.h"
#include "cuda/workspace.h"
#include "op/config.h"
#include "op/device_info.h"

namespace chunkscan::cuda {

struct Step {
  KernelKey key;              // no file: a step that the plan does without
  unsigned shared_bytes = 0;  // dynamic
  int blocks_per_multiprocessor = 1;
};

// The first two only with seq_idx.
enum StepIndex { kCountRuns, kWriteRuns, kChunkCumsum, kFwdPassState, kComputeOut, kSteps };

// What run() wants ready made.
struct StagedPlan {
  std::array<Step, kSteps> steps;
  Workspace workspace;
  // What plans of the same model with other b and l may use: prepared together, so that a server
  // compiles nothing once it is warm.
  std::vector<Step> siblings;
};

// What a plan has compiled, each kernel once.
std::vector<Step> kernels_of(const StagedPlan& plan);

// One run.
struct StagedCall {
  const Problem& problem;
  const DeviceInfo& device;
  const Config& config;
  const StagedPlan& plan;
  const Buffers& buffers;
  std::byte* workspace;
  CUstream stream;
};

struct Family {
  std::string (*refuses)(const Problem&, const DeviceInfo&);
  Config (*default_config)(const Problem&, const DeviceInfo&);
  std::string (*refuses_config)(const Problem&, const DeviceInfo&, const Config&);
  // The kernels run one after the other, so the tiles of each are varied alone.
  std::vector<Config> (*candidates)(const Problem&, const DeviceInfo&);
  StagedPlan (*plan)(const Problem&, const DeviceInfo&, const Config&);
  void (*fwd_pass_state)(const StagedCall&);
  void (*compute_out)(const StagedCall&);
};

extern const Family kSm90;
extern const Family kPortable;

void run_staged(const Family& family, const StagedCall& call);

// Throws Error(kUnsupported) where a launch could not have so many blocks: when the plan is made,
// before anything runs. `slices`: of a head's state.
void require_grids(const Problem& problem, int q, int slices);

// The steps that all families share: chunk_cumsum, and what finds the runs of seq_idx before it.
void add_shared_steps(const Problem& problem, const DeviceInfo& device, ChunkCumsumConfig config,
                      std::array<Step, kSteps>& steps);

// What compute_out and others that loop over their work launch.
std::int64_t resident_blocks(const StagedCall& call, const Step& step, std::int64_t turns);

}  // namespace chunkscan::cuda
