#include "cpu/threads.h"

#include <unistd.h>

#include <algorithm>

#include "chunkscan/backends.h"

namespace chunkscan {

namespace {
const pid_t loaded_in = getpid();
}

bool in_forked_child() { return getpid() != loaded_in; }

// OMP_NUM_THREADS may ask for more than Options::threads takes, and than the machine can start.
int default_threads() {
  constexpr int kMostThreads = 1024;
  return in_forked_child() ? 1 : std::min(omp_get_max_threads(), kMostThreads);
}

}  // namespace chunkscan
