// Who can run the operation: one row of functions per backend, best first.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

#include "op/buffers.h"
#include "op/config.h"
#include "op/problem.h"

namespace chunkscan {

struct PlanData;

struct Backend {
  const char* name;
  std::string (*unavailable)();              // "" = usable here, else why not, a sentence
  DeviceKind device;                         // where its tensors live
  std::string (*refuses)(const Problem&);    // "" = can do it, else "expected ..., got ..."
  Config (*default_config)(const Problem&);  // depends on h, p, n, g and dtypes alone
  std::string (*refuses_config)(const Problem&, const Config&);  // as `refuses`
  std::size_t (*workspace_bytes)(const Problem&, const Config&, int threads);
  void (*prepare)(const PlanData&);
  void (*run)(const PlanData&, const Buffers&, void* workspace, void* stream);
};

std::span<const Backend> all_backends();

// The row of that name; throws Error with the names there are.
const Backend& backend_named(std::string_view name);

}  // namespace chunkscan
