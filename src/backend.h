// Who can run the operation: one row of functions per backend, best first.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "op/buffers.h"
#include "op/config.h"
#include "op/device_info.h"
#include "op/problem.h"

namespace chunkscan {

struct PlanData;

struct Backend {
  const char* name;
  std::string (*unavailable)();  // "" = usable here, else why not, a sentence
  DeviceKind device;             // where its tensors live
  // "" = can do it, else "expected ..., got ..."
  std::string (*refuses)(const Problem&, const DeviceInfo&);
  // With batch_invariant it depends on h, p, n, g and dtypes alone.
  Config (*default_config)(const Problem&, const DeviceInfo&);
  std::string (*refuses_config)(const Problem&, const DeviceInfo&, const Config&);  // as `refuses`
  // Configs worth timing beside the default, all of which refuses_config takes.
  std::vector<Config> (*candidates)(const Problem&, const DeviceInfo&);
  // Completes a plan that has everything else: workspace_bytes and what run() wants ready made.
  void (*complete)(PlanData&);
  void (*prepare)(const PlanData&);
  void (*run)(const PlanData&, const Buffers&, void* workspace, void* stream);
  // Of a device with memory of its own, else null: scratch of workspace_bytes for one run of
  // forward() on that stream, and a copy to host memory, complete on return.
  void* (*take_scratch)(const PlanData&, void* stream);
  void (*give_scratch)(const PlanData&, void* scratch, void* stream);
  void (*copy_to_host)(const PlanData&, void* to, const void* from, std::size_t bytes,
                       void* stream);
};

std::span<const Backend> all_backends();

// The row of that name; throws Error with the names there are.
const Backend& backend_named(std::string_view name);

}  // namespace chunkscan
