#include <algorithm>
#include <chrono>

#include "cli/timed_calls.h"
#include "testkit/device_call.h"
#include "testkit/device_time.h"

namespace chunkscan::cli {

namespace {

constexpr int kWarmUp = 3, kFewestCalls = 5, kMostCalls = 1000;

// As many as limits.seconds hold where one takes `us`.
int calls_within(const BenchLimits& limits, double us) {
  if (limits.repeat > 0) return limits.repeat;
  const double fit = limits.seconds * 1e6 / std::max(us, 1.0);
  return static_cast<int>(std::clamp<double>(fit, kFewestCalls, kMostCalls));
}

}  // namespace

TimedCalls time_device_calls(Device device, const Inputs& inputs, const Outputs& outputs,
                             const Options& options, const BenchLimits& limits,
                             const std::function<void(double)>& progress) {
  TimedCalls timed;
  const testkit::DeviceCall call(inputs, outputs, device);
  const auto begin = std::chrono::steady_clock::now();
  const testkit::PreparedDeviceCall prepared(call, options);
  prepared.run();
  call.stream().synchronize();
  const std::chrono::duration<double, std::milli> first = std::chrono::steady_clock::now() - begin;
  timed.first_call_ms = first.count();
  timed.describe(prepared.plan());

  const auto run = [&prepared] { prepared.run(); };
  const double about_us = median(testkit::event_times_us(call.stream(), kWarmUp, run));
  timed.calls = calls_within(limits, about_us);
  const std::vector<double> times = testkit::event_times_us(call.stream(), timed.calls, run);
  timed.median_us = median(times);
  timed.fastest_us = *std::min_element(times.begin(), times.end());
  progress(0.5);

  const testkit::Graph graph(call.stream(), run);
  const auto replay = [&graph] { graph.launch(); };
  testkit::event_times_us(call.stream(), kWarmUp, replay);
  timed.graph_us = median(testkit::event_times_us(call.stream(), timed.calls, replay));
  progress(1.0);
  return timed;
}

}  // namespace chunkscan::cli
