// The CPU backend: Highway vectors, OpenMP threads.
#pragma once

#include "backend.h"

namespace chunkscan {

Backend cpu_backend();

}  // namespace chunkscan
