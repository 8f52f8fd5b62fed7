#include <fmt/core.h>
#include <fmt/ranges.h>

#include <memory>
#include <optional>
#include <span>

#include "chunkscan/chunkscan.h"
#include "cli/call_file.h"
#include "cli/outputs.h"
#include "cli/progress.h"
#include "cli/shape_flags.h"
#include "cli/subcommands.h"
#include "cli/text.h"
#include "cli/timed_calls.h"
#include "testkit/device_call.h"
#include "testkit/oracle.h"

namespace chunkscan::cli {

namespace {

struct Flags {
  FileFlags file;
  ShapeFlags shape;
  CallFlags how;
  StateFlags states;
  std::string expected;
  bool time = false;
  bool json = false;
};

struct Row {
  std::string against;
  testkit::Comparison comparison;
};

struct Result {
  std::string backend, config, plan;
  std::vector<Row> rows;
  bool ok = true;
  std::int64_t tokens = 0;
  std::optional<TimedCalls> timed;
};

// What to run, and what is known about its results besides the reference's.
struct Subject {
  std::optional<testkit::Case> generated;  // owns the memory of a generated call
  std::optional<FileCall> read;            // or of one out of a file
  Inputs inputs;
  Options options;
  testkit::Data data = testkit::Data::kAny;
};

// Everything that can be asked for.
Outputs all_outputs(const Inputs& inputs, Wanted wanted) {
  wanted.final_states = true;
  wanted.chunk_states = wanted.state_every > 0;
  wanted.log_decay = !inputs.seq_idx.present();
  return output_shapes(inputs, wanted);
}

Subject generated_subject(const Flags& flags) {
  Subject subject;
  const testkit::CaseSpec spec = flags.shape.one_case().spec;
  subject.options = options_of(spec, flags.how);
  plan_of(spec, subject.options, flags.how.device());
  subject.generated.emplace(spec);
  subject.inputs = subject.generated->inputs;
  if (subject.generated->standard_data) subject.data = testkit::Data::kStandard;
  return subject;
}

Subject file_subject(const Flags& flags) {
  Subject subject;
  subject.read = read_call(flags.file, flags.how);
  subject.inputs = subject.read->inputs;
  subject.options = subject.read->options;
  return subject;
}

// Adds a row for every output that `call` holds a result for.
void compare_with_file(const FileCall& call, const std::string& path, const Subject& subject,
                       const Outputs& got, Result& result) {
  if (call.expected.contains("chunk_states") && !got.chunk_states.present()) {
    throw Error(ErrorKind::kInput,
                fmt::format("{}: chunk_states: expected --state-every beside it, got none", path));
  }
  for (const NamedView& output : present(got)) {
    const auto found = call.expected.find(output.name);
    if (found == call.expected.end()) continue;
    const std::span<const std::int64_t> shape(output.view.shape.data(),
                                              static_cast<std::size_t>(output.view.rank));
    if (!std::equal(shape.begin(), shape.end(), found->second.shape.begin(),
                    found->second.shape.end())) {
      throw Error(ErrorKind::kInput,
                  fmt::format("{}: {}: expected shape ({}), got ({})", path, output.name,
                              fmt::join(shape, ", "), fmt::join(found->second.shape, ", ")));
    }
    const testkit::OwnedTensor want(DType::kF64, shape);
    testkit::copy(found->second.view(), want.view());
    const double allowed =
        testkit::allowed_error(output.kind, subject.data, testkit::least_precise(subject.inputs),
                               want.view(), output.view.dtype);
    result.rows.push_back({path, testkit::compare(output.name, output.view, want.view(), allowed)});
  }
}

Result check(const Flags& flags) {
  if (flags.file.input.empty() && !flags.shape.any()) {
    throw Error(ErrorKind::kInput, "call: expected --input, --shape or --model, got none of them");
  }
  flags.how.require_device();
  Subject subject = flags.file.input.empty() ? generated_subject(flags) : file_subject(flags);
  const Outputs shapes = all_outputs(subject.inputs, flags.states.wanted());
  subject.options.state_every = flags.states.state_every;
  const Device device = flags.how.device();
  const Plan plan = make_plan(testkit::as_if_on(device, subject.inputs), shapes, subject.options);
  const OutputMemory memory(shapes);
  Result result;
  result.backend = plan.backend();
  result.config = plan.config();
  result.plan = plan.to_string();
  result.tokens = subject.inputs.x.shape[0] * subject.inputs.x.shape[1];
  {
    const Stopwatch stopwatch(fmt::format("running on {}", plan.backend()));
    testkit::forward_on(device, subject.inputs, memory.outputs(), subject.options);
  }
  {
    const Stopwatch stopwatch("comparing with the double-precision reference");
    const testkit::Oracle oracle(subject.inputs, memory.outputs(), subject.options);
    for (testkit::Comparison& comparison : oracle.check(memory.outputs(), subject.data)) {
      result.rows.push_back({"reference", std::move(comparison)});
    }
  }
  if (subject.read) {
    compare_with_file(*subject.read, flags.file.input, subject, memory.outputs(), result);
  }
  if (!flags.expected.empty()) {
    compare_with_file(read_expected(flags.expected), flags.expected, subject, memory.outputs(),
                      result);
  }
  for (const Row& row : result.rows) result.ok = result.ok && row.comparison.ok;
  if (flags.time) {
    const Stopwatch stopwatch("timing");
    result.timed =
        time_calls(device, subject.inputs, memory.outputs(), subject.options, {}, [](double) {});
  }
  return result;
}

double tokens_per_s(const Result& result) {
  return static_cast<double>(result.tokens) / (result.timed->median_us * 1e-6);
}

std::span<const std::int64_t> worst_index(const testkit::Comparison& comparison) {
  return {comparison.worst_index.data(), static_cast<std::size_t>(comparison.rank)};
}

void print_result_json(const Result& result) {
  Json outputs = Json::array();
  for (const auto& [against, comparison] : result.rows) {
    outputs.push_back({{"name", comparison.name},
                       {"against", against},
                       {"rel_err", comparison.rel_err},
                       {"allowed", comparison.allowed},
                       {"rounding_floor", comparison.rounding_floor},
                       {"worst",
                        {{"index", worst_index(comparison)},
                         {"got", comparison.worst_got},
                         {"want", comparison.worst_want}}},
                       {"ok", comparison.ok}});
  }
  Json json = {{"backend", result.backend},
               {"config", result.config},
               {"plan", result.plan},
               {"outputs", outputs},
               {"ok", result.ok}};
  if (const auto& timed = result.timed) {
    json["median_us"] = timed->median_us;
    json["graph_us"] = timed->graph_us ? Json(*timed->graph_us) : Json();
    json["naive_us"] = timed->naive_us ? Json(*timed->naive_us) : Json();
    json["tokens_per_s"] = tokens_per_s(result);
  }
  print_json(json);
}

void print_result(const Result& result) {
  fmt::print("plan  {}\n\n", result.plan);
  Table table(
      {"output", "against", ">error", ">allowed", ">rounding", "worst at", ">got", ">right", ""});
  std::size_t passed = 0;
  for (const auto& [against, comparison] : result.rows) {
    table.add({comparison.name, against, as_error(comparison.rel_err), as_error(comparison.allowed),
               as_error(comparison.rounding_floor),
               fmt::format("({})", fmt::join(worst_index(comparison), ",")),
               fmt::format("{:.6g}", comparison.worst_got),
               fmt::format("{:.6g}", comparison.worst_want), comparison.ok ? "ok" : "FAILED"});
    passed += comparison.ok;
  }
  fmt::print("{}\n{} of {} within bounds: {}\n", table.to_string(), passed, result.rows.size(),
             result.ok ? "ok" : "FAILED");
  if (!result.timed) return;
  const TimedCalls& timed = *result.timed;
  fmt::print("\ntime  {}, {} tokens/s (median of {} calls, {})\n", as_time(timed.median_us),
             as_count(tokens_per_s(result)), timed.calls,
             timed.graph_us ? "on the GPU" : fmt::format("{} threads", timed.threads));
  if (timed.graph_us) {
    fmt::print("      {} replayed as a CUDA graph\n", as_time(*timed.graph_us));
  }
  if (timed.naive_us) {
    fmt::print("      {} token by token, the sequential recurrence on the same threads: {:.2f}x\n",
               as_time(*timed.naive_us), *timed.naive_us / timed.median_us);
  }
}

}  // namespace

Action add_check(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  app.add_flag("--json", flags->json, kJsonHelp);
  app.add_flag("--time", flags->time,
               "Also time the call, and the sequential recurrence beside it");
  flags->states.add(app);
  app.option_defaults()->group("Call in a file");
  CLI::Option* input =
      app.add_option("--input", flags->file.input, "safetensors file to read")->type_name("FILE");
  app.add_option("--expected", flags->expected,
                 "Also compare with the outputs in this file, such as `run` writes")
      ->type_name("FILE");
  flags->file.add(app);
  flags->shape.add(app);
  for (const char* name : {"--shape", "--model", "--dtype", "--features", "--seed"}) {
    input->excludes(app.get_option(name));
  }
  for (const char* name : {"--expected", "--dt-softplus", "--dt-limit"}) {
    app.get_option(name)->needs(input);
  }
  flags->how.add(app);
  app.footer(std::string("error = ||got - right|| / ||right|| over a tensor; rounding = what "
                         "storing the right result in the output's dtype alone costs.\n\n") +
             kFileHelp);
  return [flags] {
    const Result result = check(*flags);
    flags->json ? print_result_json(result) : print_result(result);
    return result.ok ? kOk : kCheckFailed;
  };
}

}  // namespace chunkscan::cli
