#include "cuda/nvrtc_search.h"

#include <dlfcn.h>

#include <algorithm>
#include <filesystem>
#include <sstream>

#include "cuda/environment.h"

namespace chunkscan::cuda {

namespace {

namespace fs = std::filesystem;

constexpr int kMajors[] = {13, 12};

// Folders in `folder` whose names start with `prefix`, the last in the alphabet first.
std::vector<fs::path> folders_in(const fs::path& folder, const std::string& prefix) {
  std::vector<fs::path> found;
  std::error_code error;
  for (fs::directory_iterator entry(folder, error), end; !error && entry != end;
       entry.increment(error)) {
    if (entry->path().filename().string().starts_with(prefix)) found.push_back(entry->path());
  }
  std::sort(found.rbegin(), found.rend());
  return found;
}

// <root> of <root>/bin/python3: this process where it is Python, and the first on the path.
std::vector<fs::path> interpreter_roots() {
  std::vector<fs::path> roots;
  std::error_code error;
  const fs::path self = fs::canonical("/proc/self/exe", error);
  if (self.filename().string().starts_with("python")) roots.push_back(self.parent_path());
  std::istringstream path(environment("PATH"));
  for (std::string folder; std::getline(path, folder, ':');) {
    if (!fs::exists(fs::path(folder) / "python3", error)) continue;
    roots.emplace_back(folder);
    break;
  }
  for (fs::path& root : roots) root = root.parent_path();
  return roots;
}

// site-packages and dist-packages that a Python interpreter would look into.
std::vector<fs::path> python_folders() {
  std::vector<fs::path> found;
  // The library lies in site-packages/<package>/ where it is part of a Python package.
  for (fs::path folder = library_folder(); folder.has_relative_path();
       folder = folder.parent_path()) {
    if (folder.filename() == "site-packages" || folder.filename() == "dist-packages") {
      found.push_back(folder);
    }
  }
  std::vector<fs::path> roots;
  for (const char* name : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    if (const std::string root = environment(name); !root.empty()) roots.emplace_back(root);
  }
  const std::vector<fs::path> interpreters = interpreter_roots();
  roots.insert(roots.end(), interpreters.begin(), interpreters.end());
  if (const std::string home = environment("HOME"); !home.empty()) {
    roots.push_back(fs::path(home) / ".local");
  }
  roots.insert(roots.end(), {"/usr/local", "/usr"});
  for (const fs::path& root : roots) {
    for (const fs::path& python : folders_in(root / "lib", "python3")) {
      found.push_back(python / "site-packages");
      found.push_back(python / "dist-packages");
    }
  }
  return found;
}

std::vector<fs::path> toolkit_folders() {
  std::vector<fs::path> roots;
  for (const char* name : {"CUDA_HOME", "CUDA_PATH"}) {
    if (const std::string root = environment(name); !root.empty()) roots.emplace_back(root);
  }
  const std::vector<fs::path> local = folders_in("/usr/local", "cuda");
  roots.insert(roots.end(), local.begin(), local.end());
  roots.emplace_back("/opt/cuda");
  return roots;
}

}  // namespace

std::string library_folder() {
  Dl_info info = {};
  if (dladdr(reinterpret_cast<void*>(&library_folder), &info) == 0) return "";
  std::error_code error;
  const fs::path file = fs::canonical(info.dli_fname, error);
  return error ? "" : file.parent_path().string();
}

std::vector<std::string> nvrtc_candidates(int newest) {
  std::vector<fs::path> folders;
  for (const fs::path& python : python_folders()) {
    for (const char* wheel : {"nvidia/cu13/lib", "nvidia/cuda_nvrtc/lib"}) {
      folders.push_back(python / wheel);
    }
  }
  for (const fs::path& toolkit : toolkit_folders()) {
    for (const char* library :
         {"lib64", "lib", "targets/x86_64-linux/lib", "targets/sbsa-linux/lib"}) {
      folders.push_back(toolkit / library);
    }
  }
  std::vector<std::string> candidates, too_new;
  for (const int major : kMajors) {
    std::vector<std::string>& list = major > newest ? too_new : candidates;
    const std::string name = "libnvrtc.so." + std::to_string(major);
    list.push_back(name);
    for (const fs::path& folder : folders) {
      std::error_code error;
      if (fs::exists(folder / name, error)) list.push_back((folder / name).string());
    }
  }
  candidates.insert(candidates.end(), too_new.begin(), too_new.end());
  candidates.emplace_back("libnvrtc.so");
  return candidates;
}

}  // namespace chunkscan::cuda
