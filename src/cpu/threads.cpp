#include "cpu/threads.h"

#include <unistd.h>

#include "chunkscan/backends.h"

namespace chunkscan {

namespace {
const pid_t loaded_in = getpid();
}

bool in_forked_child() { return getpid() != loaded_in; }

int default_threads() { return in_forked_child() ? 1 : omp_get_max_threads(); }

}  // namespace chunkscan
