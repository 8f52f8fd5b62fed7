// Every refusal and failure of the library is this exception, with one sentence.
#pragma once

#include <stdexcept>
#include <string>

namespace chunkscan {

enum class ErrorKind {
  kInput,        // the caller's tensors or options are wrong; nothing was written
  kUnsupported,  // right in itself, but the chosen backend cannot do it; nothing was written
  kRuntime,      // the machine failed: memory, driver, compiler
};

// Input errors read "[forward] <tensor>: expected <rule with sizes>, got <value>".
class Error : public std::runtime_error {
 public:
  Error(ErrorKind kind, const std::string& sentence) : std::runtime_error(sentence), kind_(kind) {}
  ErrorKind kind() const noexcept { return kind_; }

 private:
  ErrorKind kind_;
};

}  // namespace chunkscan
