#include "cli/timed_calls.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <new>
#include <vector>

#include "cli/text.h"

namespace chunkscan::cli {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kFewestCalls = 5;
constexpr double kLongest = 20.0;  // seconds for one row's timed calls, the recurrence's included

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

// A plan with its workspace, ready to be called again and again.
class Runner {
 public:
  Runner(const Inputs& inputs, const Outputs& outputs, const Options& options)
      : inputs_(inputs),
        outputs_(outputs),
        plan_(make_plan(inputs, outputs, options)),
        workspace_(aligned_memory(plan_.workspace_bytes())) {
    if (workspace_ == nullptr) throw std::bad_alloc();
    prepare(plan_);
  }

  const Plan& plan() const { return plan_; }

  double seconds_of_one_call() {
    const Clock::time_point start = Clock::now();
    run(plan_, inputs_, outputs_, workspace_.get());
    return seconds_since(start);
  }

 private:
  const Inputs& inputs_;
  const Outputs& outputs_;
  Plan plan_;
  Memory workspace_;
};

// The sequential recurrence on the instruction set that the user forced, if any.
std::unique_ptr<Runner> naive_runner(const Inputs& inputs, const Outputs& outputs,
                                     Options options) {
  std::string config = "recurrence";
  for (const std::string& word : split(options.config)) {
    if (word.starts_with("isa=")) config += "," + word;
  }
  options.config = config;
  options.backend = "cpu";
  try {
    return std::make_unique<Runner>(inputs, outputs, options);
  } catch (const Error&) {
    return nullptr;
  }
}

struct Times {
  std::vector<double> ours, naive;  // seconds of each call
};

// In turns, so that a slow moment of the machine meets both. `naive` may be null.
Times time_in_turns(Runner& ours, Runner* naive, const BenchLimits& limits,
                    const std::function<void(double)>& progress) {
  Times times;
  double sum = 0.0;
  const Clock::time_point start = Clock::now();
  const auto done = [&] {
    const auto calls = static_cast<double>(times.ours.size());
    if (limits.repeat > 0) return calls / limits.repeat;
    if (calls == 0) return 0.0;
    return std::max(std::min(sum / limits.seconds, calls / kFewestCalls),
                    seconds_since(start) / kLongest);
  };
  while (done() < 1.0) {
    times.ours.push_back(ours.seconds_of_one_call());
    sum += times.ours.back();
    if (naive != nullptr) times.naive.push_back(naive->seconds_of_one_call());
    progress(std::min(done(), 1.0));
  }
  return times;
}

}  // namespace

void TimedCalls::describe(const Plan& made) {
  backend = made.backend();
  config = made.config();
  plan = made.to_string();
  threads = made.threads();
  workspace_bytes = made.workspace_bytes();
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

TimedCalls time_calls(Device device, const Inputs& inputs, const Outputs& outputs,
                      const Options& options, const BenchLimits& limits,
                      const std::function<void(double)>& progress) {
  if (device.kind != DeviceKind::kCpu) {
    return time_device_calls(device, inputs, outputs, options, limits, progress);
  }
  TimedCalls timed;
  const Clock::time_point begin = Clock::now();
  Runner ours(inputs, outputs, options);
  ours.seconds_of_one_call();
  timed.first_call_ms = seconds_since(begin) * 1e3;
  timed.describe(ours.plan());

  const std::unique_ptr<Runner> naive = naive_runner(inputs, outputs, options);
  if (naive) naive->seconds_of_one_call();  // warm-up

  const Times times = time_in_turns(ours, naive.get(), limits, progress);
  timed.calls = static_cast<int>(times.ours.size());
  timed.median_us = median(times.ours) * 1e6;
  timed.fastest_us = *std::min_element(times.ours.begin(), times.ours.end()) * 1e6;
  if (naive) timed.naive_us = median(times.naive) * 1e6;
  return timed;
}

}  // namespace chunkscan::cli
