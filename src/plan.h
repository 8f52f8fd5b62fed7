// What a Plan holds, and how it is made.
#pragma once

#include "backend.h"
#include "chunkscan/plan.h"

namespace chunkscan {

struct PlanData {
  Problem problem;
  const Backend* backend = nullptr;
  Config config;
  int threads = 1;
  std::size_t workspace_bytes = 0;
};

// Pure: no launch, no clock.
Plan plan_for(const Problem& problem, DeviceKind device, const Options& options);

}  // namespace chunkscan
