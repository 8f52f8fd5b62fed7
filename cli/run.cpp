#include <fmt/core.h>
#include <fmt/ranges.h>

#include <chrono>
#include <memory>

#include "chunkscan/chunkscan.h"
#include "cli/call_file.h"
#include "cli/outputs.h"
#include "cli/progress.h"
#include "cli/subcommands.h"
#include "cli/text.h"
#include "testkit/device_call.h"

namespace chunkscan::cli {

namespace {

struct Flags {
  FileFlags file;
  CallFlags how;
  StateFlags states;
  std::string output, returned;
  bool json = false;
};

Wanted wanted_outputs(const Flags& flags) {
  Wanted wanted = flags.states.wanted();
  for (const std::string& name : split(flags.returned)) {
    if (name == "final_states") {
      wanted.final_states = true;
    } else if (name == "chunk_states") {
      wanted.chunk_states = true;
    } else if (name == "log_decay") {
      wanted.log_decay = true;
    } else {
      refuse("--return", "names out of final_states, chunk_states, log_decay", name);
    }
  }
  return wanted;
}

io::Tensor contiguous_tensor(const TensorView& view) {
  return {view.dtype, {view.shape.begin(), view.shape.begin() + view.rank}, view.data};
}

int run_file(const Flags& flags) {
  flags.how.require_device();
  if (flags.output.empty()) refuse("--output", "the name of a file", flags.output);
  io::require_writable(flags.output);  // before minutes of work that could not be kept
  FileCall call = read_call(flags.file, flags.how);
  const Wanted wanted = wanted_outputs(flags);
  call.options.state_every = wanted.state_every;
  const Outputs shapes = output_shapes(call.inputs, wanted);
  const Device device = flags.how.device();
  const Plan plan = make_plan(testkit::as_if_on(device, call.inputs), shapes, call.options);
  const OutputMemory memory(shapes);

  const auto start = std::chrono::steady_clock::now();
  {
    const Stopwatch stopwatch(fmt::format("running on {}", plan.backend()));
    testkit::forward_on(device, call.inputs, memory.outputs(), call.options);
  }
  const std::chrono::duration<double, std::micro> time = std::chrono::steady_clock::now() - start;

  std::map<std::string, io::Tensor> tensors;
  std::vector<std::string> names;
  for (const NamedView& output : present(memory.outputs())) {
    tensors.emplace(output.name, contiguous_tensor(output.view));
    names.push_back(output.name);
  }
  std::map<std::string, std::string> metadata = {{"chunkscan_version", version()},
                                                 {"backend", plan.backend()},
                                                 {"config", plan.config()},
                                                 {"plan", plan.to_string()}};
  if (wanted.chunk_states) metadata["state_every"] = std::to_string(wanted.state_every);
  io::write_safetensors(flags.output, tensors, metadata);

  if (flags.json) {
    print_json({{"input", flags.file.input},
                {"output", flags.output},
                {"backend", plan.backend()},
                {"config", plan.config()},
                {"plan", plan.to_string()},
                {"first_call_ms", time.count() * 1e-3},
                {"tensors", names}});
  } else {
    fmt::print("plan   {}\n", plan.to_string());
    fmt::print("time   {} (one call, the first{})\n", as_time(time.count()),
               device.kind == DeviceKind::kCpu ? "" : ", with copies to the GPU and back");
    fmt::print("wrote  {}: {}\n", flags.output, fmt::join(names, ", "));
  }
  return kOk;
}

}  // namespace

Action add_run(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  app.add_flag("--json", flags->json, kJsonHelp);
  app.option_defaults()->group("Files");
  app.add_option("--input", flags->file.input, "safetensors file to read")
      ->type_name("FILE")
      ->required();
  app.add_option("--output", flags->output, "safetensors file to write, or replace")
      ->type_name("FILE")
      ->required();
  app.option_defaults()->group("What is computed");
  app.add_option("--return", flags->returned,
                 "More than y, joined by commas: final_states, chunk_states, log_decay")
      ->type_name("LIST");
  flags->states.add(app);
  flags->file.add(app);
  flags->how.add(app);
  app.footer(kFileHelp);
  return [flags] { return run_file(*flags); };
}

}  // namespace chunkscan::cli
