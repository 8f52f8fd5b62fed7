// GPU kernels compiled ahead of time: with a pack, no compiler is needed where the library runs.
#pragma once

#include <string>

namespace chunkscan {

// Makes the kernels of a pack available to every later call. A pack belongs to the version of the
// library that wrote it. $CHUNKSCAN_PACK, else a file chunkscan.pack beside the library, is loaded
// without asking. Throws Error(kInput): no such file, damaged, or another version's.
void load_pack(const std::string& path);

}  // namespace chunkscan
