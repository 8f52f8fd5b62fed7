// One line of a benchmark: a case's speed, and its error beside it.
#pragma once

#include <functional>
#include <vector>

#include "chunkscan/chunkscan.h"
#include "cli/call_flags.h"
#include "cli/shape_flags.h"
#include "cli/timed_calls.h"
#include "testkit/compare.h"

namespace chunkscan::cli {

struct BenchRow : TimedCalls {
  NamedCase which;

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
