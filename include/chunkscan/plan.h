// How a call will be carried out: an immutable value that prints.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

namespace chunkscan {

struct PlanData;  // private to the library

class Plan {
 public:
  const char* backend() const;          // "cpu", "reference", ...
  std::string config() const;           // passes back through Options::config
  std::size_t workspace_bytes() const;  // scratch that run() needs, aligned to kAlignment
  int threads() const;                  // CPU threads that run() uses at most; 0 on a GPU
  std::string to_string() const;        // one line: problem, backend, config, workspace
  // Configs of the same backend worth timing for the same problem, the plan's own first; each
  // passes back through Options::config.
  std::vector<std::string> candidates() const;

  explicit Plan(std::shared_ptr<const PlanData> data) : data_(std::move(data)) {}
  const PlanData& data() const { return *data_; }

 private:
  std::shared_ptr<const PlanData> data_;
};

}  // namespace chunkscan
