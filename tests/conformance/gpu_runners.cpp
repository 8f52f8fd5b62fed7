// The GPU backends, also where there is no GPU: their tests are skipped with the reason.
#include "conformance/runners.h"

namespace chunkscan {

std::vector<Runner> runners() { return {{"cuda/sm90", "", ""}, {"cuda/portable", "", ""}}; }

}  // namespace chunkscan
