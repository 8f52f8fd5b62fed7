#include <string>
#include <vector>

#include "chunkscan/backends.h"

namespace chunkscan {
std::vector<std::string> cpu_instruction_sets() { return {}; }
}  // namespace chunkscan
