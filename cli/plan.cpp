#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <memory>

#include "chunkscan/chunkscan.h"
#include "cli/call_flags.h"
#include "cli/shape_flags.h"
#include "cli/subcommands.h"
#include "cli/text.h"

namespace chunkscan::cli {

namespace {

struct Flags {
  ShapeFlags shape;
  CallFlags how;
  std::string arch;
  bool json = false;
};

// Adds to `how` what plans for `arch`, an instruction set of the CPU backend.
void plan_for_isa(const std::string& arch, CallFlags& how) {
  const std::vector<std::string> known = all_cpu_instruction_sets();
  if (std::find(known.begin(), known.end(), arch) == known.end()) {
    refuse("--arch", fmt::format("a GPU architecture, as sm_90a, or {}", fmt::join(known, " | ")),
           arch);
  }
  for (const std::string& word : split(how.config)) {
    if (word.starts_with("isa=") && word != "isa=" + arch) {
      refuse("--arch", "what --config says, " + word, arch);
    }
  }
  how.config += (how.config.empty() ? "isa=" : ",isa=") + arch;
}

int print_plan(const Flags& flags) {
  const testkit::CaseSpec spec = flags.shape.one_case().spec;
  CallFlags how = flags.how;
  const bool gpu = flags.arch.starts_with("sm_");
  if (!flags.arch.empty() && !gpu) plan_for_isa(flags.arch, how);
  Options options = options_of(spec, how);
  if (gpu) options.architecture = flags.arch;
  const Plan plan = plan_of(spec, options, how.device());
  if (flags.json) {
    print_json({{"plan", plan.to_string()},
                {"backend", plan.backend()},
                {"config", plan.config()},
                {"threads", plan.threads()},
                {"workspace_bytes", plan.workspace_bytes()}});
  } else {
    fmt::print("plan       {}\n", plan.to_string());
    fmt::print("backend    {}\n", plan.backend());
    fmt::print("config     {}\n", plan.config());
    if (plan.threads() > 0) fmt::print("threads    {}\n", plan.threads());
    fmt::print("workspace  {}\n", as_bytes(static_cast<double>(plan.workspace_bytes())));
  }
  return kOk;
}

}  // namespace

Action add_plan(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  app.add_flag("--json", flags->json, kJsonHelp);
  flags->shape.add(app);
  flags->how.add(app);
  app.add_option(
         "--arch", flags->arch,
         fmt::format("Plan for this GPU architecture (sm_80, sm_90a, ...) or instruction set "
                     "({}), whether the machine has it or not",
                     fmt::join(all_cpu_instruction_sets(), " | ")))
      ->type_name("NAME");
  return [flags] { return print_plan(*flags); };
}

}  // namespace chunkscan::cli
