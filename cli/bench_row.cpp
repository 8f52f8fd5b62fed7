#include "cli/bench_row.h"

#include <algorithm>
#include <array>

#include "testkit/device_call.h"
#include "testkit/oracle.h"

namespace chunkscan::cli {

namespace {

// State elements times tokens that the double reference may update for one row's error: about a
// second. Below kFewestTokens an error says little about a long sequence.
constexpr std::int64_t kCheckedWork = std::int64_t{1} << 30;
constexpr std::int64_t kFewestTokens = 256;

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
  const Device device = how.device();
  BenchRow row;
  row.which = which;
  {
    const testkit::Case c(which.spec);
    static_cast<TimedCalls&>(row) =
        time_calls(device, c.inputs, c.outputs, options, limits, progress);
  }
  row.checked = checked_spec(which.spec);
  testkit::Case small(row.checked);
  Options same_way = options;
  same_way.backend = row.backend;
  same_way.config = row.config;
  row.errors = testkit::check_case(
      small, same_way, [device](const Inputs& in, const Outputs& out, const Options& how_exactly) {
        testkit::forward_on(device, in, out, how_exactly);
      });
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
