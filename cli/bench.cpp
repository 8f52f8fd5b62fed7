#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>

#include "chunkscan/chunkscan.h"
#include "cli/bench_row.h"
#include "cli/machine.h"
#include "cli/progress.h"
#include "cli/subcommands.h"
#include "cli/text.h"
#include "testkit/ceilings.h"
#include "testkit/device_time.h"

namespace chunkscan::cli {

namespace {

struct Flags {
  ShapeFlags shape;
  CallFlags how;
  BenchLimits limits;
  bool candidates = false;
  bool json = false;
};

// Of the device that runs the calls.
struct Ceilings {
  std::string device;
  int threads = 1;
  std::optional<double> gflops;  // measured on the CPU alone
  double gb_per_s = 0.0;

  std::optional<double> peak_share(double of_gflops) const {
    return gflops ? std::optional(of_gflops / *gflops) : std::nullopt;
  }
};

// A case, and how it is to be carried out.
struct Run {
  NamedCase which;
  CallFlags how;
};

struct Result {
  Ceilings ceilings;
  std::vector<BenchRow> rows;

  bool ok() const {
    return std::all_of(rows.begin(), rows.end(), [](const BenchRow& row) { return row.ok(); });
  }
};

// Each case with the plan that it would get; with --candidates also with all others, after it.
std::vector<Run> runs_of(const std::vector<NamedCase>& cases, const Flags& flags) {
  std::vector<Run> runs;
  for (const NamedCase& which : cases) {
    // All of them are planned before anything is measured.
    const Plan plan = plan_of(which.spec, options_of(which.spec, flags.how), flags.how.device());
    if (!flags.candidates) {
      runs.push_back({which, flags.how});
      continue;
    }
    for (const std::string& config : plan.candidates()) {
      runs.push_back({which, flags.how});
      runs.back().how.backend = plan.backend();
      runs.back().how.config = config;
    }
  }
  return runs;
}

Result bench(Flags flags) {
  flags.how.require_device();
  const bool on_gpu = flags.how.device().kind == DeviceKind::kCuda;
  if (!flags.shape.any()) flags.shape.suite = on_gpu ? "mamba_ssm" : "cpu";
  const std::vector<Run> runs = runs_of(flags.shape.cases(), flags);
  Result result;
  ProgressBar bar;
  bar.show(0.0, "the machine's limits");
  const int threads = flags.how.threads > 0 ? flags.how.threads : default_threads();
  const auto measure_ceilings = [&result, on_gpu, threads] {
    Ceilings& most = result.ceilings;
    if (on_gpu) {
      most.gb_per_s = std::max(most.gb_per_s, testkit::device_copy_gb_per_s());
      return;
    }
    most.gflops = std::max(most.gflops.value_or(0.0), testkit::peak_gflops(threads));
    most.gb_per_s = std::max(most.gb_per_s, testkit::copy_gb_per_s(threads));
  };
  result.ceilings.device = on_gpu ? cuda_info().gpus.front().name : cpu_name();
  result.ceilings.threads = threads;
  measure_ceilings();
  for (const Run& run : runs) {
    const auto before = static_cast<double>(result.rows.size());
    const auto total = static_cast<double>(runs.size());
    const auto progress = [&](double part) {
      bar.show((before + part) / total, run.which.name + " " + shape_text(run.which.spec));
    };
    progress(0.0);
    result.rows.push_back(measure(run.which, run.how, flags.limits, progress));
  }
  measure_ceilings();  // again: a busy moment at the start would flatter every share
  return result;
}

Json number_or_null(std::optional<double> number) { return number ? Json(*number) : Json(); }

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
          {"peak_share", number_or_null(ceilings.peak_share(row.gflops()))},
          {"copy_share", row.gb_per_s() / ceilings.gb_per_s},
          {"graph_us", number_or_null(row.graph_us)},
          {"naive_us", number_or_null(row.naive_us)},
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
               {{"device", result.ceilings.device},
                {"cpu", cpu_name()},
                {"cpus", cpu_count()},
                {"instruction_sets", cpu_instruction_sets()},
                {"threads", result.ceilings.threads},
                {"peak_gflops", number_or_null(result.ceilings.gflops)},
                {"copy_gb_per_s", result.ceilings.gb_per_s}}},
              {"rows", rows},
              {"ok", result.ok()}});
}

// The time that counts: a graph's where there is one.
double time_of(const BenchRow& row) { return row.graph_us.value_or(row.median_us); }

// Candidates of one case stand behind each other, the default first.
void print_candidates(const Result& result) {
  Table table({"name", "b,l,h,p,n,g", "dtype", "plan", ">time", ">of default", ">error", ""});
  for (auto first = result.rows.begin(); first != result.rows.end();) {
    const auto same_case = [&first](const BenchRow& row) {
      return row.which.name == first->which.name && row.which.spec.dtype == first->which.spec.dtype;
    };
    const auto last = std::find_if_not(first, result.rows.end(), same_case);
    std::vector<BenchRow> rows(first, last);
    std::stable_sort(rows.begin(), rows.end(),
                     [](const BenchRow& a, const BenchRow& b) { return time_of(a) < time_of(b); });
    for (const BenchRow& row : rows) {
      const bool chosen = row.config == first->config;
      table.add({row.which.name, shape_text(row.which.spec), name_of(row.which.spec.dtype),
                 fmt::format("{} [{}]{}", row.backend, row.config, chosen ? ", the default" : ""),
                 as_time(time_of(row)), fmt::format("{:.2f}x", time_of(row) / time_of(*first)),
                 as_error(row.errors.front().rel_err), row.ok() ? "ok" : "FAILED"});
    }
    first = last;
  }
  fmt::print("{}", table.to_string());
}

void print_result(const Result& result) {
  const Ceilings& ceilings = result.ceilings;
  const bool on_gpu = !ceilings.gflops;
  if (on_gpu) {
    fmt::print("{}: memory copy {:.0f} GB/s\n\n", ceilings.device, ceilings.gb_per_s);
  } else {
    fmt::print("{}, {} threads: fp32 multiply-add peak {:.0f} GFLOP/s, memory copy {:.1f} GB/s\n\n",
               ceilings.device, ceilings.threads, *ceilings.gflops, ceilings.gb_per_s);
  }
  Table speeds({"name", "b,l,h,p,n,g", "dtype", ">median", ">tokens/s", ">GFLOP/s", ">of peak",
                on_gpu ? ">graph" : ">recurrence", ">speedup", ">error", ">allowed", ""});
  Table plans({"name", "dtype", "plan", ">threads", ">workspace", ">GB/s", ">of copy",
               ">first call", ">calls", "error over"});
  for (const BenchRow& row : result.rows) {
    const testkit::CaseSpec& spec = row.which.spec;
    const testkit::Comparison& y = row.errors.front();
    const std::optional<double> share = ceilings.peak_share(row.gflops());
    const std::optional<double> other = on_gpu ? row.graph_us : row.naive_us;
    std::optional<double> speedup;
    if (other) speedup = on_gpu ? row.median_us / *other : *other / row.median_us;
    speeds.add({row.which.name, shape_text(spec), name_of(spec.dtype), as_time(row.median_us),
                as_count(row.tokens_per_s()), fmt::format("{:.1f}", row.gflops()),
                share ? as_percent(*share) : "-", other ? as_time(*other) : "-",
                speedup ? fmt::format("{:.2f}x", *speedup) : "-", as_error(y.rel_err),
                as_error(y.allowed), row.ok() ? "ok" : "FAILED"});
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
  app.add_flag("--candidates", flags->candidates,
               "Time every config that the backend knows for each case, fastest first");
  flags->shape.add(app);
  flags->shape.add_suite(app);
  flags->shape.add_layout(app);
  flags->how.add(app);
  app.footer(
      "Without sizes it runs --suite cpu, on a GPU --suite mamba_ssm. Times are medians of calls\n"
      "after a warm-up, random data. Operations are counted for chunks of 64 tokens whatever the\n"
      "plan uses: 64 n g + 64 p h + 4 h p n a token; bytes are x, y, B, C and dt once. recurrence "
      "is\n"
      "the vectorised sequential form on the same threads, timed in turns with the plan. On a GPU\n"
      "the tensors stay there and its events are the clock; graph is the replay of a CUDA graph.\n"
      "error is y's, against the double-precision reference; large cases are compared over fewer\n"
      "tokens of the same sizes, dtype and config, and the last column says over how many.");
  return [flags] {
    const Result result = bench(*flags);
    if (flags->json) {
      print_result_json(result, *flags);
    } else if (flags->candidates) {
      print_candidates(result);
    } else {
      print_result(result);
    }
    return result.ok() ? kOk : kCheckFailed;
  };
}

}  // namespace chunkscan::cli
