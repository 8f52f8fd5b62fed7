// What a Plan holds, and how it is made.
#pragma once

#include "backend.h"
#include "chunkscan/plan.h"

namespace chunkscan {

struct PlanData {
  Problem problem;
  const Backend* backend = nullptr;
  Device device;
  DeviceInfo device_info;
  bool runs = true;  // false: planned for a named architecture
  Config config;
  int threads = 0;  // of the CPU; 0 on a GPU
  std::size_t workspace_bytes = 0;
  std::shared_ptr<const void> details;  // the backend's own
};

// Pure: no launch, no clock.
Plan plan_for(const Problem& problem, Device device, const Options& options);

}  // namespace chunkscan
