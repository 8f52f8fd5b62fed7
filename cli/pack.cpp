#include "chunkscan/pack.h"

#include <fmt/core.h>

#include <array>
#include <map>
#include <memory>

#include "cli/call_flags.h"
#include "cli/progress.h"
#include "cli/shape_flags.h"
#include "cli/subcommands.h"
#include "cli/text.h"

namespace chunkscan::cli {

namespace {

using testkit::CaseSpec;
using testkit::PackedBy;

struct Flags {
  ShapeFlags shape;
  CallFlags how;
  std::string archs, output;
  bool json = false;
};

// Kernels differ with z and packing, so calls without these get theirs too.
std::vector<CaseSpec> with_and_without(const CaseSpec& spec) {
  std::vector<CaseSpec> specs;
  for (bool packed : {false, true}) {
    if (packed && spec.packed_by == PackedBy::kNothing) continue;
    for (bool z : {false, true}) {
      if (z && !spec.z) continue;
      CaseSpec one = spec;
      one.z = z;
      if (!packed) one.packed_by = PackedBy::kNothing;
      if (one.packed_by == PackedBy::kCuSeqlens) one.b = 1;  // a suite's shapes may have more
      specs.push_back(one);
    }
  }
  return specs;
}

std::vector<Plan> plans_of(const Flags& flags) {
  const std::vector<std::string> archs = split(flags.archs);
  if (archs.empty()) refuse("--arch", "GPU architectures, as sm_80,sm_90a", flags.archs);
  std::vector<Plan> plans;
  for (const std::string& arch : archs) {
    for (const NamedCase& which : flags.shape.cases()) {
      for (const CaseSpec& spec : with_and_without(which.spec)) {
        Options options = options_of(spec, flags.how);
        options.architecture = arch;
        plans.push_back(plan_of(spec, options, flags.how.device()));
      }
    }
  }
  return plans;
}

void print_contents_json(const Flags& flags, const std::vector<PackedKernel>& kernels) {
  Json rows = Json::array();
  for (const PackedKernel& kernel : kernels) {
    rows.push_back({{"name", kernel.name},
                    {"config", kernel.config},
                    {"architecture", kernel.architecture},
                    {"compiler", kernel.compiler},
                    {"ptx", kernel.ptx},
                    {"bytes", kernel.bytes}});
  }
  print_json({{"output", flags.output}, {"version", version()}, {"kernels", rows}});
}

void print_contents(const Flags& flags, const std::vector<PackedKernel>& kernels) {
  struct Sum {
    std::size_t count = 0, bytes = 0;
  };
  std::map<std::array<std::string, 3>, Sum> sums;
  Sum all;
  for (const PackedKernel& kernel : kernels) {
    const char* code = kernel.ptx ? "PTX" : "machine code";
    for (Sum* sum : {&sums[{kernel.architecture, kernel.name, code}], &all}) {
      ++sum->count;
      sum->bytes += kernel.bytes;
    }
  }
  Table table({"arch", "kernel", "code", ">variants", ">size"});
  for (const auto& [what, sum] : sums) {
    table.add({what[0], what[1], what[2], std::to_string(sum.count),
               as_bytes(static_cast<double>(sum.bytes))});
  }
  fmt::print("{}\n{}: {} kernels, {}\n", table.to_string(), flags.output, all.count,
             as_bytes(static_cast<double>(all.bytes)));
}

int write_and_print(const Flags& flags) {
  const std::vector<Plan> plans = plans_of(flags);
  {
    ProgressBar bar;
    bar.show(0.0, "compiling");
    write_pack(plans, flags.output, [&bar](std::size_t done, std::size_t all) {
      bar.show(static_cast<double>(done) / static_cast<double>(all),
               fmt::format("{} of {} kernels", done, all));
    });
  }
  const std::vector<PackedKernel> kernels = list_pack(flags.output);
  flags.json ? print_contents_json(flags, kernels) : print_contents(flags, kernels);
  return kOk;
}

}  // namespace

Action add_pack(CLI::App& app) {
  auto flags = std::make_shared<Flags>();
  app.add_flag("--json", flags->json, "Print one JSON object, with every kernel, instead of text");
  app.add_option("--arch", flags->archs, "GPU architectures, joined by commas: sm_80,sm_90a")
      ->type_name("LIST")
      ->required();
  app.add_option("--output", flags->output, "The pack to write")->type_name("FILE")->required();
  flags->shape.add(app);
  flags->shape.add_suite(app);
  flags->how.add(app);
  app.footer(
      "Needs NVRTC, but no GPU. A pack serves every b and l of its sizes, with the features given\n"
      "and without them: --features z,varlen is for calls with z or not, packed or not. Other\n"
      "features need no kernels of their own. CHUNKSCAN_PACK=FILE uses it, and so does a file\n"
      "chunkscan.pack beside the library.");
  return [flags] { return write_and_print(*flags); };
}

}  // namespace chunkscan::cli
