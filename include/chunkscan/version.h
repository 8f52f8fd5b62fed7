// The version of the library. It is written here and nowhere else: the build reads this file.
#pragma once

#define CHUNKSCAN_VERSION_MAJOR 0
#define CHUNKSCAN_VERSION_MINOR 1
#define CHUNKSCAN_VERSION_PATCH 0

namespace chunkscan {

// "major.minor.patch" of the library that is linked, which may differ from the macros above.
const char* version();

}  // namespace chunkscan
