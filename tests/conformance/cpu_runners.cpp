// The CPU backend's routes on every instruction set, and the reference's staged route. (The
// reference's recurrence is what all are compared with.)
#include "conformance/runners.h"

namespace chunkscan {

std::vector<Runner> runners() {
  std::vector<Runner> all = {{"reference", "staged", ""}};
  for (const BackendInfo& backend : backends()) {
    if (backend.name != "cpu" || !backend.available) continue;  // plan_test asserts that it is
    for (const std::string& isa : cpu_instruction_sets()) {
      for (const char* route : {"walk", "staged", "recurrence"}) all.push_back({"cpu", route, isa});
    }
  }
  return all;
}

}  // namespace chunkscan
