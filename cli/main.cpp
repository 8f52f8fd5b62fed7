// chunkscan: the program. One table of subcommands, one place where failures become exit codes.
#include <fmt/core.h>

#include <cstdio>
#include <exception>
#include <memory>
#include <new>
#include <string>

#include "chunkscan/chunkscan.h"
#include "cli/subcommands.h"

namespace {

using namespace chunkscan::cli;

struct Subcommand {
  const char* name;
  const char* about;
  Action (*add)(CLI::App&);
};

constexpr Subcommand kSubcommands[] = {
    {"info", "What this machine and this build can do", add_info},
    {"run", "Run the operation on the tensors of a safetensors file", add_run},
    {"check", "Compare a backend's results with the double-precision reference", add_check},
    {"bench", "Measure speed, with its error and the machine's limits beside it", add_bench},
    {"plan", "Show how a call would be carried out, without running it", add_plan},
    {"pack", "Compile GPU kernels ahead of time, without a GPU", add_pack},
};

constexpr const char* kExamples = R"(Examples:
  chunkscan info
  chunkscan check --shape 1,2048,24,64,128,1
  chunkscan run --input layer.safetensors --output out.safetensors --return final_states
  chunkscan bench --model mamba2-2.7b --seqlen 4096
  chunkscan SUBCOMMAND --help

Exit codes: 0 done, 1 a check failed, 2 wrong usage or input.)";

// CLI11's own text for a flag is "--threads INT:INT in [1 - 4096]=2 Needs: ..."; a name for the
// value and the default are enough.
class Formatter : public CLI::Formatter {
 public:
  std::string make_option_opts(const CLI::Option* option) const override {
    if (option->get_expected_max() == 0) return "";
    const std::string type = option->get_type_name();
    const std::string required = option->get_required() ? " (required)" : "";
    return " " + type.substr(0, type.find(':')) + required;
  }

  std::string make_option_desc(const CLI::Option* option) const override {
    const std::string text = option->get_default_str();
    return option->get_description() + (text.empty() ? "" : " (default: " + text + ")");
  }
};

int report(const std::string& who, const char* sentence) {
  std::fprintf(stderr, "%s: %s\n", who.c_str(), sentence);  // never throws, whatever stderr is
  return kBadInput;
}

// What was printed may still wait in a buffer, and its medium may be full.
int delivered(const std::string& who, int code) {
  if (code == kBadInput) return code;  // has its sentence
  // The reason may be lost: where an earlier write failed, errno has moved on.
  if (std::fflush(stdout) == 0 && std::ferror(stdout) == 0) return code;
  return report(who, "stdout: expected all of the output to be written, got an error");
}

int act(const std::string& who, const Action& action) {
  try {
    return action();
  } catch (const std::bad_alloc&) {
    return report(who, "memory: expected enough for this call's tensors, got none");
  } catch (const std::exception& error) {
    return report(who, error.what());
  }
}

int run_program(int argc, char** argv) {
  CLI::App app("The Mamba-2 (SSD) forward pass.", "chunkscan");
  app.formatter(std::make_shared<Formatter>());

  app.set_version_flag("--version", std::string("chunkscan ") + chunkscan::version());
  app.require_subcommand(0, 1);

  Action chosen;
  for (const Subcommand& subcommand : kSubcommands) {
    CLI::App* sub = app.add_subcommand(subcommand.name, subcommand.about);
    Action action = subcommand.add(*sub);
    sub->callback([&chosen, action, name = subcommand.name] {
      chosen = [action, name] {
        const std::string who = std::string("chunkscan ") + name;
        return delivered(who, act(who, action));
      };
    });
  }

  app.footer(kExamples);  // after the subcommands, which would inherit it

  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? delivered("chunkscan", kOk) : kBadInput;
  }
  if (!chosen) {
    fmt::print("{}", app.help());
    return delivered("chunkscan", kOk);
  }
  return chosen();
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run_program(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "chunkscan: %s\n", error.what());
    return kBadInput;
  }
}
