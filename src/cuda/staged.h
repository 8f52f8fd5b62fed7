// The staged route: chunk_cumsum, fwd_pass_state, compute_out, one launch each. What differs between
// the families of kernels (sm90, portable) is in a Family.
#pragma once

#include <array>
#include <string>

#include "cuda/driver_types.h"
#include "cuda/jit.h"
#include "cuda/workspace.h"
#include "op/config.h"
#include "op/device_info.h"

namespace chunkscan::cuda {

struct Step {
  KernelKey key;
  unsigned shared_bytes = 0;  // dynamic
  int blocks_per_multiprocessor = 1;
};

enum StepIndex { kChunkCumsum, kFwdPassState, kComputeOut, kSteps };

// What run() wants ready made.
struct StagedPlan {
  std::array<Step, kSteps> steps;
  Workspace workspace;
};

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
  StagedPlan (*plan)(const Problem&, const DeviceInfo&, const Config&);
  void (*fwd_pass_state)(const StagedCall&);
  void (*compute_out)(const StagedCall&);
};

extern const Family kSm90;
extern const Family kPortable;

void run_staged(const Family& family, const StagedCall& call);

// The key and shared memory of chunk_cumsum, which all families share.
Step chunk_cumsum_step(const Problem& problem, const DeviceInfo& device, const ChunkCumsumConfig&);

}  // namespace chunkscan::cuda
