// What this machine can do at best, measured: what a measured speed is a share of.
#pragma once

namespace chunkscan::testkit {

// fp32 fused multiply-adds on registers alone, with the machine's widest vectors, on `threads`
// threads at once; 1e9 operations a second (two for each multiply-add). The best of several rounds.
double peak_gflops(int threads);

// Copying memory far larger than the caches, on `threads` threads at once; 1e9 bytes a second, read
// and written bytes together. The best of several rounds.
double copy_gb_per_s(int threads);

}  // namespace chunkscan::testkit
