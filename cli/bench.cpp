#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>

#include "chunkscan/chunkscan.h"
#include "cli/bench_row.h"
#include "cli/machine.h"
#include "cli/progress.h"
#include "cli/subcommands.h"
#include "cli/text.h"
#include "testkit/ceilings.h"

namespace chunkscan::cli {

namespace {

struct Flags {
  ShapeFlags shape;
  CallFlags how;
  BenchLimits limits;
  bool json = false;
};

struct Ceilings {
  int threads = 1;
  double gflops = 0.0, gb_per_s = 0.0;
};

struct Result {
  Ceilings ceilings;
  std::vector<BenchRow> rows;

  bool ok() const {
    return std::all_of(rows.begin(), rows.end(), [](const BenchRow& row) { return row.ok(); });
  }
};

Result bench(Flags flags) {
  if (!flags.shape.any()) flags.shape.suite = "cpu";
  const std::vector<NamedCase> cases = flags.shape.cases();
  for (const NamedCase& which : cases) {
    plan_of(which.spec, options_of(which.spec, flags.how));  // all of them, or nothing is measured
  }
  Result result;
  ProgressBar bar;
  bar.show(0.0, "the machine's limits");
  const int threads = flags.how.threads > 0 ? flags.how.threads : default_threads();
  const auto measure_ceilings = [&result, threads] {
    Ceilings& most = result.ceilings;
    most.gflops = std::max(most.gflops, testkit::peak_gflops(threads));
    most.gb_per_s = std::max(most.gb_per_s, testkit::copy_gb_per_s(threads));
  };
  result.ceilings.threads = threads;
  measure_ceilings();
  for (const NamedCase& which : cases) {
    const auto before = static_cast<double>(result.rows.size());
    const auto total = static_cast<double>(cases.size());
    const auto progress = [&](double part) {
      bar.show((before + part) / total, which.name + " " + shape_text(which.spec));
    };
    progress(0.0);
    result.rows.push_back(measure(which, flags.how, flags.limits, progress));
  }
  measure_ceilings();  // again: a busy moment at the start would flatter every share
  return result;
}

Json row_json(const BenchRow& row, const Ceilings& ceilings, const ShapeFlags& flags) {
  const testkit::CaseSpec& spec = row.which.spec;
  const testkit::Comparison& y = row.errors.front();
  Json errors = Json::object();
  for (const testkit::Comparison& comparison : row.errors) {
    errors[comparison.name] = {{"rel_err", comparison.rel_err}, {"allowed", comparison.allowed}};
  }
  return {{"name", row.which.name},
          {"shape", {spec.b, spec.l, spec.h, spec.p, spec.n, spec.g}},
          {"dtype", name_of(spec.dtype)},
          {"features", split(flags.features)},
          {"layout", flags.layout},
          {"backend", row.backend},
          {"config", row.config},
          {"plan", row.plan},
          {"threads", row.threads},
          {"workspace_bytes", row.workspace_bytes},
          {"median_us", row.median_us},
          {"fastest_us", row.fastest_us},
          {"calls", row.calls},
          {"first_call_ms", row.first_call_ms},
          {"tokens_per_s", row.tokens_per_s()},
          {"gflops", row.gflops()},
          {"gb_per_s", row.gb_per_s()},
          {"peak_share", row.gflops() / ceilings.gflops},
          {"copy_share", row.gb_per_s() / ceilings.gb_per_s},
          {"naive_us", row.naive_us ? Json(*row.naive_us) : Json()},
          {"err", y.rel_err},
          {"err_allowed", y.allowed},
          {"err_shape", {row.checked.b, row.checked.l, spec.h, spec.p, spec.n, spec.g}},
          {"errors", errors},
          {"ok", row.ok()}};
}

void print_result_json(const Result& result, const Flags& flags) {
  Json rows = Json::array();
  for (const BenchRow& row : result.rows) {
    rows.push_back(row_json(row, result.ceilings, flags.shape));
  }
  print_json({{"version", version()},
              {"machine",
               {{"cpu", cpu_name()},
                {"cpus", cpu_count()},
                {"instruction_sets", cpu_instruction_sets()},
                {"threads", result.ceilings.threads},
                {"peak_gflops", result.ceilings.gflops},
                {"copy_gb_per_s", result.ceilings.gb_per_s}}},
              {"rows", rows},
              {"ok", result.ok()}});
}

void print_result(const Result& result) {
  const Ceilings& ceilings = result.ceilings;
  fmt::print("{}, {} threads: fp32 multiply-add peak {:.0f} GFLOP/s, memory copy {:.1f} GB/s\n\n",
             cpu_name(), ceilings.threads, ceilings.gflops, ceilings.gb_per_s);
  Table speeds({"name", "b,l,h,p,n,g", "dtype", ">median", ">tokens/s", ">GFLOP/s", ">of peak",
                ">recurrence", ">speedup", ">error", ">allowed", ""});
  Table plans({"name", "dtype", "plan", ">threads", ">workspace", ">GB/s", ">of copy",
               ">first call", ">calls", "error over"});
  for (const BenchRow& row : result.rows) {
    const testkit::CaseSpec& spec = row.which.spec;
    const testkit::Comparison& y = row.errors.front();
    speeds.add({row.which.name, shape_text(spec), name_of(spec.dtype), as_time(row.median_us),
                as_count(row.tokens_per_s()), fmt::format("{:.1f}", row.gflops()),
                as_percent(row.gflops() / ceilings.gflops),
                row.naive_us ? as_time(*row.naive_us) : "-",
                row.naive_us ? fmt::format("{:.2f}x", *row.naive_us / row.median_us) : "-",
                as_error(y.rel_err), as_error(y.allowed), row.ok() ? "ok" : "FAILED"});
    plans.add({row.which.name, name_of(spec.dtype), fmt::format("{} [{}]", row.backend, row.config),
               std::to_string(row.threads), as_bytes(static_cast<double>(row.workspace_bytes)),
               fmt::format("{:.2f}", row.gb_per_s()),
               as_percent(row.gb_per_s() / ceilings.gb_per_s), as_time(row.first_call_ms * 1e3),
               std::to_string(row.calls), fmt::format("b {}, l {}", row.checked.b, row.checked.l)});
  }
  fmt::print("{}\n{}", speeds.to_string(), plans.to_string());
}

}  // namespace

Action add_bench(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  app.add_flag("--json", flags->json, kJsonHelp);
  app.add_option("--repeat", flags->limits.repeat,
                 "Timed calls; else as many as take a second, and at least five")
      ->type_name("N")
      ->check(CLI::PositiveNumber);
  flags->shape.add(app);
  flags->shape.add_suite(app);
  flags->shape.add_layout(app);
  flags->how.add(app);
  app.footer(
      "Without sizes it runs --suite cpu. Times are medians of calls after a warm-up, random "
      "data.\n"
      "Operations are counted for chunks of 64 tokens whatever the plan uses: 64 n g + 64 p h +\n"
      "4 h p n a token; bytes are x, y, B, C and dt once. recurrence is the vectorised sequential\n"
      "form on the same threads, timed in turns with the plan. error is y's, against the\n"
      "double-precision reference; large cases are compared over fewer tokens of the same sizes,\n"
      "dtype and config, and the last column says over how many.");
  return [flags] {
    const Result result = bench(*flags);
    flags->json ? print_result_json(result, *flags) : print_result(result);
    return result.ok() ? kOk : kCheckFailed;
  };
}

}  // namespace chunkscan::cli
