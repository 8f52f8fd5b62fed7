// The reference backend: the formula in double precision, token by token; and the staged
// algorithm's twin (route "staged").
#pragma once

#include "backend.h"

namespace chunkscan {

Backend reference_backend();

}  // namespace chunkscan
