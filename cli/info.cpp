#include <fmt/core.h>
#include <fmt/ranges.h>

#include <memory>

#include "chunkscan/chunkscan.h"
#include "cli/machine.h"
#include "cli/subcommands.h"
#include "cli/text.h"

namespace chunkscan::cli {

namespace {

void print_info_json() {
  Json rows = Json::array();
  for (const BackendInfo& backend : backends()) {
    rows.push_back(
        {{"name", backend.name}, {"available", backend.available}, {"reason", backend.reason}});
  }
  print_json({{"version", version()},
              {"backends", rows},
              {"cpu", cpu_name()},
              {"cpus", cpu_count()},
              {"instruction_sets", cpu_instruction_sets()},
              {"threads", default_threads()}});
}

void print_info() {
  fmt::print("chunkscan {}\n\n", version());
  Table table({"backend", "state", ""});
  for (const BackendInfo& backend : backends()) {
    table.add({backend.name, backend.available ? "available" : "unavailable", backend.reason});
  }
  fmt::print("{}\n", table.to_string());
  fmt::print("cpu               {}, {} logical\n", cpu_name(), cpu_count());
  fmt::print("instruction sets  {}\n", fmt::join(cpu_instruction_sets(), ", "));
  fmt::print("threads           {}\n", default_threads());
}

}  // namespace

Action add_info(CLI::App& app) {
  auto json = std::make_shared<bool>(false);
  app.add_flag("--json", *json, kJsonHelp);
  return [json] {
    *json ? print_info_json() : print_info();
    return kOk;
  };
}

}  // namespace chunkscan::cli
