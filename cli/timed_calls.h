// Times a call: on the CPU beside the sequential recurrence on the same tensors, in turns; on a GPU
// by its events, beside the replay of a CUDA graph.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "chunkscan/chunkscan.h"

namespace chunkscan::cli {

struct BenchLimits {
  int repeat = 0;        // timed calls; 0 = as many as fit `seconds`, at least five
  double seconds = 1.0;  // of timed calls of ours
};

struct TimedCalls {
  std::string backend, config, plan;
  int threads = 0;
  std::size_t workspace_bytes = 0;
  double first_call_ms = 0.0;  // plan, prepare and run, before any warm-up
  int calls = 0;
  double median_us = 0.0, fastest_us = 0.0;
  std::optional<double> naive_us;  // median of the recurrence; none where it cannot run
  std::optional<double> graph_us;  // median of a graph's replays; none on the CPU

  void describe(const Plan& made);  // the first five
};

// `progress` is told how much of the work is done, in [0, 1]. Overwrites the outputs on the CPU; on
// a GPU they stay there.
TimedCalls time_calls(Device device, const Inputs& inputs, const Outputs& outputs,
                      const Options& options, const BenchLimits& limits,
                      const std::function<void(double)>& progress);

// time_calls() on a GPU.
TimedCalls time_device_calls(Device device, const Inputs& inputs, const Outputs& outputs,
                             const Options& options, const BenchLimits& limits,
                             const std::function<void(double)>& progress);

double median(std::vector<double> values);

}  // namespace chunkscan::cli
