// How many threads to use, and work spread over them.
#pragma once

#include <omp.h>

#include <algorithm>
#include <cstdint>

namespace chunkscan {

// True in a process forked from the one that loaded the library. There an OpenMP region may hang
// (GNU OpenMP's threads do not survive a fork), so everything runs on the calling thread.
bool in_forked_child();

// Calls body(item, thread) for every item in [0, count), thread in [0, min(threads, count)). Items
// are handed out one at a time, so uneven ones balance.
template <typename Body>
void parallel_for(int threads, std::int64_t count, Body&& body) {
  if (threads <= 1 || count <= 1) {
    for (std::int64_t item = 0; item < count; ++item) body(item, 0);
    return;
  }
  // No more threads than items: thread numbers index scratch, of which there is no more either.
  const int working = static_cast<int>(std::min<std::int64_t>(threads, count));
#pragma omp parallel for num_threads(working) schedule(dynamic, 1)
  for (std::int64_t item = 0; item < count; ++item) body(item, omp_get_thread_num());
}

}  // namespace chunkscan
