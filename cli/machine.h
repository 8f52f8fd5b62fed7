// The machine a result comes from.
#pragma once

#include <string>

namespace chunkscan::cli {

// The processor's name for itself; "unknown" where the system does not tell.
std::string cpu_name();

// Logical processors.
int cpu_count();

}  // namespace chunkscan::cli
