#include "cli/program.h"

#include <sys/wait.h>

#include "io/safetensors.h"

namespace chunkscan {

nlohmann::json Ran::json() const {
  const nlohmann::json value = nlohmann::json::parse(out, nullptr, /*allow_exceptions=*/false);
  EXPECT_FALSE(value.is_discarded()) << out << err;
  return value;
}

Ran Program::chunkscan(const std::string& arguments, const std::string& output) const {
  const std::string out = output.empty() ? path("stdout") : output;
  const std::string command = PROGRAM " " + arguments + " >" + out + " 2>" + path("stderr");
  const int status = std::system(command.c_str());
  Ran ran{WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_bytes(path("stdout")),
          read_bytes(path("stderr"))};
  std::filesystem::remove(path("stdout"));
  std::filesystem::remove(path("stderr"));
  return ran;
}

void Program::expect_refusal(const std::string& arguments, const std::string& sentence) const {
  SCOPED_TRACE(arguments);
  const Ran ran = chunkscan(arguments);
  EXPECT_EQ(ran.code, 2);
  EXPECT_EQ(ran.out, "");
  EXPECT_EQ(ran.err, sentence + "\n");
}

std::string Program::layer_without(const std::string& tensor) const {
  io::Safetensors layer = io::read_safetensors(kLayer);
  EXPECT_EQ(layer.tensors.erase(tensor), 1u);
  io::write_safetensors(path("layer"), layer.tensors, layer.metadata);
  return path("layer");
}

std::string Program::layer_with_metadata(const std::string& key, const std::string& value) const {
  io::Safetensors layer = io::read_safetensors(kLayer);
  layer.metadata[key] = value;
  io::write_safetensors(path("layer"), layer.tensors, layer.metadata);
  return path("layer");
}

}  // namespace chunkscan
