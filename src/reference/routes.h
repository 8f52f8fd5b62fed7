// The two routes of the reference. Each carries one head through one sequence; `scratch` holds as
// many doubles as the function beside it says.
#pragma once

#include <cstdint>

#include "reference/tensors.h"

namespace chunkscan::reference {

// The formula of chunkscan/ssd.h, token by token: the specification.
void recurrence(const Tensors& T, const Sequence& sequence, std::int64_t h, double* scratch);
std::int64_t recurrence_scratch(const Problem& problem);

// The staged algorithm in scalar form, with chunks of at most q tokens.
void staged(const Tensors& T, const Sequence& sequence, std::int64_t h, std::int64_t q,
            double* scratch);
std::int64_t staged_scratch(const Problem& problem, std::int64_t q);

}  // namespace chunkscan::reference
