# cmake -DFOLDER=... -DNAMES=a,b -DOUTPUT=... -P embed_sources.cmake: those files of FOLDER, byte
# by byte, as the table kernel_sources() of src/cuda/sources.h.
string(REPLACE "," ";" names "${NAMES}")
list(SORT names)
set(texts "")
set(rows "")
set(index 0)
foreach(name IN LISTS names)
  file(READ ${FOLDER}/${name} bytes HEX)
  string(REGEX REPLACE "(..)" "\\\\x\\1" bytes "${bytes}")  # every byte: nothing needs an escape
  # Lines of 16 bytes, the pieces of one literal.
  string(REGEX REPLACE "(................................................................)" "\\1\"\n    \"" bytes "${bytes}")
  string(APPEND texts "constexpr char kText${index}[] =\n    \"${bytes}\";\n")
  string(APPEND rows "    {\"${name}\", {kText${index}, sizeof kText${index} - 1}},\n")
  math(EXPR index "${index} + 1")
endforeach()
file(CONFIGURE OUTPUT ${OUTPUT} @ONLY CONTENT [[
#include "cuda/sources.h"

#include <array>

namespace chunkscan::cuda {

namespace {

@texts@
constexpr std::array<Source, @index@> kSources = {{
@rows@}};

}  // namespace

std::span<const Source> kernel_sources() { return kSources; }

}  // namespace chunkscan::cuda
]])
