// Each subcommand is a file with one function: it declares its flags on `app` and returns what to
// do once they are parsed. An action returns the exit code: 0, or 1 where a check failed; whatever
// the user got wrong it throws.
#pragma once

#include <CLI/CLI.hpp>
#include <functional>

namespace chunkscan::cli {

using Action = std::function<int()>;

inline constexpr int kOk = 0;
inline constexpr int kCheckFailed = 1;
inline constexpr int kBadInput = 2;

Action add_info(CLI::App& app);
Action add_run(CLI::App& app);
Action add_check(CLI::App& app);
Action add_bench(CLI::App& app);
Action add_plan(CLI::App& app);
Action add_pack(CLI::App& app);

}  // namespace chunkscan::cli
