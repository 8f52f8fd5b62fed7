// The GPU rows of the backend table.
#pragma once

#include <vector>

#include "backend.h"
#include "cuda/staged.h"

namespace chunkscan {

Backend sm90_backend();      // compute capability 9.0: TMA and wgmma
Backend portable_backend();  // 8.0 and later, and whatever the row above refuses

// Of a plan of one of these, what prepare() loads.
std::vector<cuda::Step> kernels_of(const PlanData& plan);

}  // namespace chunkscan
