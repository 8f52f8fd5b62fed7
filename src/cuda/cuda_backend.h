// The GPU rows of the backend table.
#pragma once

#include "backend.h"

namespace chunkscan {

Backend sm90_backend();      // compute capability 9.0: TMA and wgmma
Backend portable_backend();  // 8.0 and later, and whatever the row above refuses

}  // namespace chunkscan
