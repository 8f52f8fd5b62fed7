#include "op/config.h"

#include <gtest/gtest.h>

#include "chunkscan/error.h"

namespace chunkscan {
namespace {

TEST(Config, PrintsAndParsesBack) {
  for (Route route : {Route::kWalk, Route::kStaged, Route::kRecurrence}) {
    for (int q : {0, 1, 64, 256}) {
      for (Isa isa : {Isa::kNone, Isa::kNeon, Isa::kAvx2, Isa::kAvx512, Isa::kAvx512Bf16}) {
        const Config config{route, q, isa};
        EXPECT_EQ(parse_config(to_string(config), Config{}), config) << to_string(config);
      }
    }
  }
}

TEST(Config, ReplacesOnlyWhatIsNamed) {
  const Config defaults{Route::kStaged, 64, Isa::kAvx2};
  EXPECT_EQ(parse_config("", defaults), defaults);
  EXPECT_EQ(parse_config("q=128", defaults), (Config{Route::kStaged, 128, Isa::kAvx2}));
  EXPECT_EQ(parse_config("walk", defaults), (Config{Route::kWalk, 64, Isa::kAvx2}));
  EXPECT_EQ(to_string(defaults), "staged,q=64,isa=avx2");
}

TEST(Config, RefusesOtherWords) {
  for (const char* text :
       {"fast", "q=", "q=0", "q=-1", "q=64x", "q=99999999999", "isa=", "isa=none", "isa=mmx",
        "walk,", ",walk", "walk,,q=64", "Walk", " walk"}) {
    try {
      parse_config(text, Config{});
      ADD_FAILURE() << "accepted \"" << text << "\"";
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInput);
      EXPECT_TRUE(std::string_view(error.what()).starts_with("[forward] config: expected "))
          << error.what();
    }
  }
}

}  // namespace
}  // namespace chunkscan
