// How many threads to use, and work spread over them.
#pragma once

#include <omp.h>

#include <cstdint>

namespace chunkscan {

// True in a process forked from the one that loaded the library. There an OpenMP region may hang
// (GNU OpenMP's threads do not survive a fork), so everything runs on the calling thread.
bool in_forked_child();

// Calls body(item, thread) for every item in [0, count), thread in [0, threads). Items are handed
// out one at a time, so uneven ones balance.
template <typename Body>
void parallel_for(int threads, std::int64_t count, Body&& body) {
  if (threads <= 1 || count <= 1) {
    for (std::int64_t item = 0; item < count; ++item) body(item, 0);
    return;
  }
#pragma omp parallel for num_threads(threads) schedule(dynamic, 1)
  for (std::int64_t item = 0; item < count; ++item) body(item, omp_get_thread_num());
}

// The same, but item i always goes to thread i modulo threads: what it left in that core's cache in
// an earlier loop is still there.
template <typename Body>
void parallel_for_in_turn(int threads, std::int64_t count, Body&& body) {
  if (threads <= 1 || count <= 1) {
    for (std::int64_t item = 0; item < count; ++item) body(item, 0);
    return;
  }
#pragma omp parallel for num_threads(threads) schedule(static, 1)
  for (std::int64_t item = 0; item < count; ++item) body(item, omp_get_thread_num());
}

}  // namespace chunkscan
