// The disk cache when all is well, and when the disk is not.
#include "cuda/cache.h"

#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <thread>

#include "cuda/atomic_file.h"
#include "cuda/child.h"
#include "cuda/fixture.h"

namespace chunkscan::cuda {
namespace {

namespace fs = std::filesystem;

class Cache : public Jit {
 protected:
  static Compiled code_with(const std::string& bytes, int compiler = 13000) {
    Compiled code;
    code.image.assign(bytes.begin(), bytes.end());
    code.compiler = compiler;
    return code;
  }

  std::vector<fs::path> cached() const {
    std::vector<fs::path> files;
    if (!fs::exists(path("cache"))) return files;
    for (const auto& entry : fs::directory_iterator(path("cache"))) files.push_back(entry.path());
    return files;
  }
};

TEST_F(Cache, KeepsCodeByKeyAndCompiler) {
  EXPECT_FALSE(read_cached(fill_key(), 13000));
  write_cached(fill_key(), code_with("thirteen"));
  write_cached(fill_key(), code_with("twelve", 12090));
  EXPECT_EQ(text_of(read_cached(fill_key(), 13000).value()), "thirteen");
  EXPECT_EQ(text_of(read_cached(fill_key(), 12090).value()), "twelve");
  EXPECT_FALSE(read_cached(fill_key(), 13010));
  EXPECT_FALSE(read_cached(fill_key(2), 13000));
  EXPECT_EQ(cached().size(), 2u);
}

TEST_F(Cache, IsForItsUserAlone) {
  setenv("CHUNKSCAN_CACHE", path("new/and/deep").c_str(), 1);
  write_cached(fill_key(), code_with("code"));
  struct stat status = {};
  for (const char* folder : {"new", "new/and", "new/and/deep"}) {
    ASSERT_EQ(stat(path(folder).c_str(), &status), 0) << folder;
    EXPECT_EQ(status.st_mode & 0777u, 0700u) << folder;
  }
}

TEST_F(Cache, DirectoryFollowsTheEnvironment) {
  const std::string said = in_child([this] {
    const auto is = [](const std::string& want) { return cache_directory() == want ? '1' : '0'; };
    std::string right;
    setenv("CHUNKSCAN_CACHE", "/own", 1);
    right += is("/own");
    setenv("CHUNKSCAN_CACHE", "off", 1);
    right += is("");
    unsetenv("CHUNKSCAN_CACHE");
    setenv("XDG_CACHE_HOME", "/xdg", 1);
    right += is("/xdg/chunkscan");
    setenv("HOME", path(".").c_str(), 1);
    setenv("XDG_CACHE_HOME", "relative", 1);
    right += is(path(".") + "/.cache/chunkscan");
    unsetenv("XDG_CACHE_HOME");
    right += is(path(".") + "/.cache/chunkscan");
    setenv("HOME", path("missing").c_str(), 1);
    right += is("");
    unsetenv("HOME");
    right += is("");
    return right;
  });
  EXPECT_EQ(said, "1111111");
}

TEST_F(Cache, OffKeepsNothing) {
  setenv("CHUNKSCAN_CACHE", "off", 1);
  write_cached(fill_key(), code_with("code"));
  EXPECT_FALSE(read_cached(fill_key(), 13000));
}

TEST_F(Cache, DirectoryThatCannotBeIsNoError) {
  for (const std::string& where :
       {write_bytes("file", "") + "/below", std::string("/proc/none"), std::string("/dev/null")}) {
    setenv("CHUNKSCAN_CACHE", where.c_str(), 1);
    write_cached(fill_key(), code_with("code"));
    EXPECT_FALSE(read_cached(fill_key(), 13000)) << where;
  }
}

TEST_F(Cache, DamageIsAMiss) {
  write_cached(fill_key(), code_with("code"));
  const fs::path file = cached().at(0);
  const std::string whole = read_bytes(file);
  for (std::size_t at = 0; at < whole.size(); ++at) {
    std::ofstream(file, std::ios::binary) << whole.substr(0, at);
    EXPECT_FALSE(read_cached(fill_key(), 13000)) << at;
    std::string bytes = whole;
    bytes[at] = static_cast<char>(bytes[at] ^ 0x10);
    std::ofstream(file, std::ios::binary) << bytes;
    EXPECT_FALSE(read_cached(fill_key(), 13000)) << at;
  }
  write_cached(fill_key(), code_with("code"));
  EXPECT_TRUE(read_cached(fill_key(), 13000));
}

// Two keys whose hashes are the same would share a file: the key inside decides.
TEST_F(Cache, AnotherKeysFileIsAMiss) {
  write_cached(fill_key(1), code_with("one"));
  const fs::path one = cached().at(0);
  write_cached(fill_key(2), code_with("two"));
  for (const fs::path& file : cached()) {
    if (file != one) fs::copy_file(one, file, fs::copy_options::overwrite_existing);
  }
  EXPECT_FALSE(read_cached(fill_key(2), 13000));
}

TEST_F(Cache, OldestFilesGoFirst) {
  const std::string code(1000, 'c');
  for (int i = 0; i < 8; ++i) {
    write_cached(fill_key(i), code_with(code), 4 * 1400);
    EXPECT_TRUE(read_cached(fill_key(0), 13000)) << "used just before " << i;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  EXPECT_TRUE(read_cached(fill_key(0), 13000)) << "used again and again";
  EXPECT_TRUE(read_cached(fill_key(7), 13000));
  EXPECT_FALSE(read_cached(fill_key(1), 13000));
  EXPECT_LE(cached().size(), 5u);
}

TEST_F(Cache, StrangersFilesInTheDirectoryStay) {
  fs::create_directory(path("cache"));
  write_bytes("cache/notes.txt", std::string(10000, 'n'));
  write_bytes("cache/0123.kernel.tmp-1-0", std::string(10000, 't'));  // of a process that died
  std::this_thread::sleep_for(std::chrono::milliseconds(10));
  write_cached(fill_key(), code_with("code"), 5000);
  EXPECT_TRUE(fs::exists(path("cache/notes.txt")));
  EXPECT_FALSE(fs::exists(path("cache/0123.kernel.tmp-1-0")));
  EXPECT_TRUE(read_cached(fill_key(), 13000));
}

TEST_F(Cache, FullDiskLeavesNothing) {
  const std::string said = in_child([this] {
    std::signal(SIGXFSZ, SIG_IGN);
    const rlimit small = {1000, 1000};
    setrlimit(RLIMIT_FSIZE, &small);
    write_cached(fill_key(), code_with(std::string(5000, 'c')));
    return std::string(read_cached(fill_key(), 13000) ? "cached" : "missed");
  });
  EXPECT_EQ(said, "missed");
  EXPECT_TRUE(cached().empty());
}

TEST_F(Cache, ProcessesMayWriteAndReadAtOnce) {
  std::vector<std::unique_ptr<Child>> children;
  for (int process = 0; process < 4; ++process) {
    children.push_back(std::make_unique<Child>([] {
      for (int round = 0; round < 200; ++round) {
        write_cached(fill_key(), code_with(std::string(20000, 'c')));
        const auto code = read_cached(fill_key(), 13000);
        if (!code) return std::string("missed");  // it is replaced, never absent
        if (text_of(*code) != std::string(20000, 'c')) return std::string("wrong");
      }
      return std::string("right");
    }));
  }
  for (const auto& child : children) EXPECT_EQ(child->said(), "right");
  EXPECT_EQ(cached().size(), 1u);
}

}  // namespace
}  // namespace chunkscan::cuda
