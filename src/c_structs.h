// The structs of the C interface, checked and translated field by field.
#pragma once

#include "chunkscan/chunkscan_c.h"
#include "chunkscan/ssd.h"

namespace chunkscan {

// Each throws Error(kInput) where a struct is missing, of no known size, or holds a value outside
// its enumeration.
Inputs inputs_of(const chunkscan_inputs* given);
Outputs outputs_of(const chunkscan_outputs* given);
Options options_of(const chunkscan_options* given);  // null: the defaults

chunkscan_options default_options();

}  // namespace chunkscan
