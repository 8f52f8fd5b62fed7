#include "cli/bench_row.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>

#include "cli/text.h"
#include "testkit/oracle.h"

namespace chunkscan::cli {

namespace {

using Clock = std::chrono::steady_clock;

constexpr int kFewestCalls = 5;
constexpr double kLongest = 20.0;  // seconds for one row's timed calls, the recurrence's included

// State elements times tokens that the double reference may update for one row's error: about a
// second. Below kFewestTokens an error says little about a long sequence.
constexpr std::int64_t kCheckedWork = std::int64_t{1} << 30;
constexpr std::int64_t kFewestTokens = 256;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

// A plan with its workspace, ready to be called again and again.
class Runner {
 public:
  Runner(const testkit::Case& c, const Options& options)
      : case_(c),
        plan_(make_plan(c.inputs, c.outputs, options)),
        workspace_(std::aligned_alloc(kAlignment, rounded_bytes())) {
    if (workspace_ == nullptr) throw std::bad_alloc();
    prepare(plan_);
  }

  const Plan& plan() const { return plan_; }

  double seconds_of_one_call() {
    const Clock::time_point start = Clock::now();
    run(plan_, case_.inputs, case_.outputs, workspace_.get());
    return seconds_since(start);
  }

 private:
  static constexpr std::size_t kAlignment = 64;
  std::size_t rounded_bytes() const {
    return (plan_.workspace_bytes() / kAlignment + 1) * kAlignment;
  }
  struct Free {
    void operator()(void* pointer) const { std::free(pointer); }
  };

  const testkit::Case& case_;
  Plan plan_;
  std::unique_ptr<void, Free> workspace_;
};

// The sequential recurrence on the instruction set that the user forced, if any.
std::unique_ptr<Runner> naive_runner(const testkit::Case& c, Options options) {
  std::string config = "recurrence";
  for (const std::string& word : split(options.config)) {
    if (word.starts_with("isa=")) config += "," + word;
  }
  options.config = config;
  options.backend = "cpu";
  try {
    return std::make_unique<Runner>(c, options);
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

testkit::CaseSpec checked_spec(testkit::CaseSpec spec) {
  const std::int64_t token_work = spec.h * spec.p * spec.n;
  if (spec.b * spec.l * token_work <= kCheckedWork) return spec;
  spec.b = 1;
  spec.l = std::min(spec.l, std::max(kFewestTokens, kCheckedWork / token_work));
  if (!spec.lengths.empty()) spec.lengths = packed_lengths(spec.l);
  return spec;
}

}  // namespace

BenchRow measure(const NamedCase& which, const CallFlags& how, const BenchLimits& limits,
                 const std::function<void(double)>& progress) {
  const Options options = options_of(which.spec, how);
  const testkit::Case c(which.spec);

  BenchRow row;
  row.which = which;
  const Clock::time_point begin = Clock::now();
  Runner ours(c, options);
  ours.seconds_of_one_call();
  row.first_call_ms = seconds_since(begin) * 1e3;
  row.backend = ours.plan().backend();
  row.config = ours.plan().config();
  row.plan = ours.plan().to_string();
  row.threads = ours.plan().threads();
  row.workspace_bytes = ours.plan().workspace_bytes();

  const std::unique_ptr<Runner> naive = naive_runner(c, options);
  if (naive) naive->seconds_of_one_call();  // warm-up

  const Times times = time_in_turns(ours, naive.get(), limits, progress);
  row.calls = static_cast<int>(times.ours.size());
  row.median_us = median(times.ours) * 1e6;
  row.fastest_us = *std::min_element(times.ours.begin(), times.ours.end()) * 1e6;
  if (naive) row.naive_us = median(times.naive) * 1e6;

  row.checked = checked_spec(which.spec);
  testkit::Case small(row.checked);
  Options same_way = options;
  same_way.config = row.config;
  row.errors = testkit::check_case(small, same_way);
  return row;
}

double BenchRow::tokens_per_s() const {
  const auto tokens = static_cast<double>(which.spec.b * which.spec.l);
  return tokens / (median_us * 1e-6);
}

// Counted for chunks of 64 tokens whatever the plan's are, so that speeds compare: the causal
// halves of C B^T (once a group) and of its product with x, the state in and out.
double BenchRow::gflops() const {
  const auto [h, p, n, g] = std::array{which.spec.h, which.spec.p, which.spec.n, which.spec.g};
  const auto operations = static_cast<double>(64 * n * g + 64 * p * h + 4 * h * p * n);
  return tokens_per_s() * operations * 1e-9;
}

// x, y, B, C and dt, each moved once.
double BenchRow::gb_per_s() const {
  const auto [h, p, n, g] = std::array{which.spec.h, which.spec.p, which.spec.n, which.spec.g};
  const auto elements = static_cast<double>(2 * h * p + 2 * g * n + h);
  return tokens_per_s() * elements * static_cast<double>(size_of(which.spec.dtype)) * 1e-9;
}

bool BenchRow::ok() const { return testkit::all_ok(errors); }

}  // namespace chunkscan::cli
