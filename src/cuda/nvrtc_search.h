// Where NVRTC may be.
#pragma once

#include <string>
#include <vector>

namespace chunkscan::cuda {

// In the order in which to try them: names for the dynamic loader, then files that exist.
// `newest`: the highest CUDA major version that serves first; later ones come last, since a driver
// does not load what a newer compiler makes.
std::vector<std::string> nvrtc_candidates(int newest);

// The folder of the file that holds this library's code; "" where the loader does not tell.
std::string library_folder();

}  // namespace chunkscan::cuda
