// One line of a benchmark: a case's speed, and its error beside it.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "chunkscan/chunkscan.h"
#include "cli/call_flags.h"
#include "cli/shape_flags.h"
#include "testkit/compare.h"

namespace chunkscan::cli {

struct BenchLimits {
  int repeat = 0;        // timed calls; 0 = as many as fit `seconds`, at least kFewestCalls
  double seconds = 1.0;  // of timed calls of ours
};

struct BenchRow {
  NamedCase which;
  std::string backend, config, plan;
  int threads = 0;
  std::size_t workspace_bytes = 0;

  double first_call_ms = 0.0;  // plan, prepare and run, before any warm-up
  int calls = 0;
  double median_us = 0.0, fastest_us = 0.0;
  std::optional<double> naive_us;  // median of the sequential recurrence; none where it cannot run

  // Against the double reference, at `checked`: the same case, or fewer tokens of it.
  testkit::CaseSpec checked;
  std::vector<testkit::Comparison> errors;

  double tokens_per_s() const;
  double gflops() const;
  double gb_per_s() const;
  bool ok() const;
};

// `progress` is told how much of the work is done, in [0, 1].
BenchRow measure(const NamedCase& which, const CallFlags& how, const BenchLimits& limits,
                 const std::function<void(double)>& progress);

}  // namespace chunkscan::cli
