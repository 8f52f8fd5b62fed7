#include "testkit/ceilings.h"

// As in the kernels: SVE's vectors have no size and cannot be an array's elements.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128)

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "testkit/ceilings.cpp"
#include <hwy/foreach_target.h>  // IWYU pragma: keep
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace chunkscan::testkit {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Independent sums: enough to hide the latency of two pipes of up to 5 cycles, and with their two
// operands still few enough for 16 registers.
constexpr int kChains = 12;

// `rounds` vector multiply-adds on each chain; returns how many operations that is.
double multiply_add(long rounds, float* result) {
  const hn::ScalableTag<float> d;
  const auto scale = hn::Set(d, 0.999f);
  const auto shift = hn::Set(d, 0.001f);
  hn::Vec<decltype(d)> chains[kChains];
  for (int k = 0; k < kChains; ++k) chains[k] = hn::Set(d, static_cast<float>(k));
  for (long i = 0; i < rounds; ++i) {
    for (auto& chain : chains) chain = hn::MulAdd(chain, scale, shift);
  }
  auto sum = hn::Zero(d);
  for (const auto& chain : chains) sum = hn::Add(sum, chain);
  *result = hn::GetLane(hn::SumOfLanes(d, sum));  // used, so the loop is not removed
  return 2.0 * kChains * static_cast<double>(hn::Lanes(d)) * static_cast<double>(rounds);
}

}  // namespace HWY_NAMESPACE
}  // namespace chunkscan::testkit
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
#include <algorithm>
#include <barrier>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

namespace chunkscan::testkit {
namespace {

HWY_EXPORT(multiply_add);

constexpr int kRounds = 6;

// Seconds from when all threads start work(thread) until the last one ends.
double seconds_together(int threads, const std::function<void(int)>& work) {
  using Clock = std::chrono::steady_clock;
  Clock::time_point start;
  std::barrier ready(threads, [&start]() noexcept { start = Clock::now(); });
  std::vector<std::thread> others;
  const auto body = [&](int thread) {
    ready.arrive_and_wait();
    work(thread);
  };
  for (int thread = 1; thread < threads; ++thread) others.emplace_back(body, thread);
  body(0);
  for (std::thread& other : others) other.join();
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double best(int threads, double amount, const std::function<void(int)>& work) {
  double most = 0.0;
  for (int round = 0; round < kRounds; ++round) {
    most = std::max(most, amount / seconds_together(threads, work));
  }
  return most;
}

}  // namespace

double peak_gflops(int threads) {
  constexpr long kSteps = 10'000'000;  // some 20 ms
  std::vector<float> results(static_cast<std::size_t>(threads));
  const auto work = [&](int thread) {
    return HWY_DYNAMIC_DISPATCH(multiply_add)(kSteps, &results[static_cast<std::size_t>(thread)]);
  };
  const double operations = threads * work(0);
  return best(threads, operations, work) * 1e-9;
}

double copy_gb_per_s(int threads) {
  const std::size_t bytes = (std::size_t{256} << 20) / static_cast<std::size_t>(threads);
  struct Pair {
    std::unique_ptr<std::byte[]> from, to;
  };
  std::vector<Pair> pairs(static_cast<std::size_t>(threads));
  // Each thread touches its own pages first, so that they lie in its own memory.
  seconds_together(threads, [&](int thread) {
    Pair& pair = pairs[static_cast<std::size_t>(thread)];
    pair.from = std::make_unique<std::byte[]>(bytes);
    pair.to = std::make_unique<std::byte[]>(bytes);
  });
  const auto work = [&](int thread) {
    const Pair& pair = pairs[static_cast<std::size_t>(thread)];
    std::memcpy(pair.to.get(), pair.from.get(), bytes);
  };
  return best(threads, 2.0 * static_cast<double>(bytes) * threads, work) * 1e-9;
}

}  // namespace chunkscan::testkit
#endif  // HWY_ONCE
