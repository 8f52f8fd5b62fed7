// Every rule of the format, broken once: the whole sentence is the expectation.
#include <sys/stat.h>

#include "io/safetensors.h"
#include "scratch.h"

namespace chunkscan::io {
namespace {

class Refusals : public Scratch {
 protected:
  // What reading `path` says behind "<path>: ".
  std::string sentence(const std::string& path) const {
    try {
      read_safetensors(path);
    } catch (const Error& error) {
      const std::string text = error.what();
      EXPECT_TRUE(text.starts_with(path + ": ")) << text;
      return text.substr(std::min(text.size(), path.size() + 2));
    }
    return "(accepted)";
  }

  std::string sentence_for(std::string_view header, std::string_view data = "") const {
    return sentence(write_file("bad", header, data));
  }
};

TEST_F(Refusals, FileAndHeaderLength) {
  EXPECT_EQ(sentence(path("absent")), "cannot be opened: No such file or directory");
  EXPECT_EQ(sentence(path(".")), "file: expected a regular file, got a directory, pipe or device");
  EXPECT_EQ(sentence("/dev/zero"),
            "file: expected a regular file, got a directory, pipe or device");
  EXPECT_EQ(sentence(write_bytes("bad", "1234567")), "file: expected at least 8 bytes, got 7");
  EXPECT_EQ(sentence(write_raw("bad", 100, "{}", "")),
            "header length: expected at most the file's 2 bytes, got 100");
  EXPECT_EQ(sentence(write_raw("bad", ~std::uint64_t{0}, "{}", "")),
            "header length: expected at most the file's 2 bytes, got 18446744073709551615");
}

TEST_F(Refusals, HeaderAboveTheLimitInAFileThatHasIt) {
  const std::string file = write_raw("bad", 100'000'001, "{}", "");
  std::filesystem::resize_file(file, 200'000'000);  // sparse
  EXPECT_EQ(sentence(file), "header length: expected at most 100000000 bytes, got 100000001");
}

TEST_F(Refusals, PipeWithoutAWriterDoesNotHang) {
  ASSERT_EQ(mkfifo(path("pipe").c_str(), 0600), 0);
  EXPECT_EQ(sentence(path("pipe")),
            "file: expected a regular file, got a directory, pipe or device");
}

TEST_F(Refusals, HeaderIsNotTheFormatsJson) {
  EXPECT_EQ(sentence_for(""), "header: expected JSON text that starts with {, got none");
  EXPECT_EQ(sentence_for(" {}"), "header: expected JSON text that starts with {, got \" \"");
  EXPECT_EQ(sentence_for("[]"), "header: expected JSON text that starts with {, got \"[\"");
  EXPECT_EQ(sentence_for("{} x"), "header: expected JSON text, got an error at byte 4");
  EXPECT_EQ(sentence_for("{\"a"), "header: expected JSON text, got an error at byte 4");
  EXPECT_EQ(sentence_for("{\"a\xff\": 1}"), "header: expected JSON text, got an error at byte 4");
  EXPECT_EQ(sentence_for("{\"a\": 1}"), "tensor \"a\": expected an object, got 1");
  EXPECT_EQ(sentence_for("{\"a\": null}"), "tensor \"a\": expected an object, got null");
  EXPECT_EQ(sentence_for("{\"a\": []}"), "tensor \"a\": expected an object, got a list");
  EXPECT_EQ(sentence_for("{\"a\": \"b\"}"),
            "tensor \"a\": expected an object, got the string \"b\"");
}

TEST_F(Refusals, Metadata) {
  EXPECT_EQ(sentence_for(R"({"__metadata__": 1})"),
            "metadata: expected an object of strings, got 1");
  EXPECT_EQ(sentence_for(R"({"__metadata__": {"k": 1}})"),
            "metadata \"k\": expected a string, got 1");
  EXPECT_EQ(sentence_for(R"({"__metadata__": {"k": {}}})"),
            "metadata \"k\": expected a string, got an object");
  EXPECT_EQ(sentence_for(R"({"__metadata__": {"k": ["v"]}})"),
            "metadata \"k\": expected a string, got a list");
  EXPECT_EQ(sentence_for(R"({"__metadata__": {"k": "v", "k": "v"}})"),
            "metadata \"k\": expected a key that occurs once, got it twice");
  EXPECT_EQ(sentence_for(R"({"__metadata__": {}, "__metadata__": {}})"),
            "tensor \"__metadata__\": expected a name that occurs once, got it twice");
}

TEST_F(Refusals, DuplicateNames) {
  EXPECT_EQ(sentence_for(R"({"a": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]},
                             "a": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}})"),
            "tensor \"a\": expected a name that occurs once, got it twice");
  // The same name, spelled with an escape.
  EXPECT_EQ(sentence_for(R"({"a": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]},
                             "\u0061": {"dtype": "F32", "shape": [0], "data_offsets": [0, 0]}})"),
            "tensor \"a\": expected a name that occurs once, got it twice");
  EXPECT_EQ(sentence_for(R"({"a": {"dtype": "F32", "dtype": "F32"}})"),
            "tensor \"a\": expected a key that occurs once, got \"dtype\" twice");
  EXPECT_EQ(sentence_for(R"({"a": {"shape": [], "shape": []}})"),
            "tensor \"a\": expected a key that occurs once, got \"shape\" twice");
}

TEST_F(Refusals, FieldsOfATensor) {
  EXPECT_EQ(sentence_for(R"({"a": {}})"), "tensor \"a\": expected a dtype, got none");
  EXPECT_EQ(sentence_for(R"({"a": {"dtype": "F32"}})"), "tensor \"a\": expected a shape, got none");
  EXPECT_EQ(sentence_for(R"({"a": {"dtype": "F32", "shape": []}})"),
            "tensor \"a\": expected two data_offsets, got none");
  EXPECT_EQ(sentence_for(R"({"a": {"dtype": "F32", "shape": [], "data_offsets": [0]}})"),
            "tensor \"a\": expected two data_offsets, got 1");
  EXPECT_EQ(sentence_for(R"({"a": {"data_offsets": [0, 4, 8]}})"),
            "tensor \"a\": expected two data_offsets, got more");
  EXPECT_EQ(sentence_for(R"({"a": {"strides": [1]}})"),
            "tensor \"a\": expected the keys dtype, shape and data_offsets, got \"strides\"");
  EXPECT_EQ(sentence_for(R"({"a": {"dtype": "F8_E4M3"}})"),
            "tensor \"a\": expected dtype F64 | F32 | F16 | BF16 | I32 | I64, got \"F8_E4M3\"");
  EXPECT_EQ(sentence_for(R"({"a": {"dtype": 32}})"),
            "tensor \"a\": expected dtype as a string, got 32");
  EXPECT_EQ(sentence_for(R"({"a": {"shape": "[1]"}})"),
            "tensor \"a\": expected shape as a list, got the string \"[1]\"");
  EXPECT_EQ(sentence_for(R"({"a": {"shape": {}}})"),
            "tensor \"a\": expected shape as a list, got an object");
}

TEST_F(Refusals, NumbersInLists) {
  const auto with_shape = [&](const std::string& list) {
    return sentence_for(R"({"a": {"dtype": "F32", "data_offsets": [0, 0], "shape": )" + list +
                        "}}");
  };
  const std::string rule = "tensor \"a\": expected shape of non-negative 64-bit integers, got ";
  EXPECT_EQ(with_shape("[-1]"), rule + "-1");
  EXPECT_EQ(with_shape("[1.5]"), rule + "the number 1.5");
  EXPECT_EQ(with_shape("[1e3]"), rule + "the number 1e3");
  EXPECT_EQ(with_shape("[18446744073709551616]"), rule + "the number 18446744073709551616");
  EXPECT_EQ(with_shape("[true]"), rule + "true");
  EXPECT_EQ(with_shape("[null]"), rule + "null");
  EXPECT_EQ(with_shape("[[1]]"), rule + "a list");
  EXPECT_EQ(with_shape("[{}]"), rule + "an object");
  EXPECT_EQ(with_shape("[\"1\"]"), rule + "the string \"1\"");
  EXPECT_EQ(with_shape("[0,1,1,1,1,1]"), "tensor \"a\": expected at most 5 dimensions, got more");
}

TEST_F(Refusals, ShapesThatDoNotFit) {
  EXPECT_EQ(sentence_for(R"({"a": {"dtype": "F32", "shape": [2, 2], "data_offsets": [0, 12]}})",
                         std::string(12, '\0')),
            "tensor \"a\": expected data_offsets 16 bytes apart for F32 [2,2], got [0, 12]");
  EXPECT_EQ(sentence_for(R"({"a": {"dtype": "F32", "shape": [1], "data_offsets": [4, 0]}})",
                         std::string(4, '\0')),
            "tensor \"a\": expected data_offsets 4 bytes apart for F32 [1], got [4, 0]");
  const auto too_big = [&](const std::string& shape) {
    return sentence_for(R"({"a": {"dtype": "F32", "data_offsets": [0, 0], "shape": )" + shape +
                        "}}");
  };
  // 2^64 bytes, which wraps to 0; and the same hidden behind a zero.
  EXPECT_EQ(too_big("[4294967296,1073741824]"),
            "tensor \"a\": expected a shape below 2^63 bytes, got [4294967296,1073741824]");
  EXPECT_EQ(too_big("[0,4294967296,4294967296]"),
            "tensor \"a\": expected a shape below 2^63 bytes, got [0,4294967296,4294967296]");
  EXPECT_EQ(too_big("[18446744073709551615]"),
            "tensor \"a\": expected a shape below 2^63 bytes, got [18446744073709551615]");
}

TEST_F(Refusals, DataThatDoesNotTileTheFile) {
  const std::string one = R"({"a": {"dtype": "F32", "shape": [1], "data_offsets": [0, 4]})";
  EXPECT_EQ(sentence_for(one + "}", "abc"),
            "tensor \"a\": expected data within the file's 3 bytes of data, got data up to byte 4");
  EXPECT_EQ(sentence_for(one + "}", "abcdX"), "data: expected 4 bytes as in the header, got 5");
  const std::string behind = R"(, "b": {"dtype": "F32", "shape": [1], "data_offsets": )";
  EXPECT_EQ(sentence_for(one + behind + "[2, 6]}}", "abcdef"),
            "tensor \"b\": expected data from byte 4 on, where the data before it ends, "
            "got an overlap from byte 2");
  EXPECT_EQ(sentence_for(one + behind + "[5, 9]}}", "abcdefghi"),
            "tensor \"b\": expected data from byte 4 on, where the data before it ends, "
            "got a hole up to byte 5");
  // A terabyte that the file does not have is refused before anything is allocated.
  EXPECT_EQ(sentence_for(R"({"a": {"dtype": "F64", "shape": [137438953472],
                                   "data_offsets": [0, 1099511627776]}})"),
            "tensor \"a\": expected data within the file's 0 bytes of data, "
            "got data up to byte 1099511627776");
}

TEST_F(Refusals, DepthIsBounded) {
  EXPECT_EQ(sentence_for(R"({"a": )" + std::string(1'000'000, '[')),
            "tensor \"a\": expected an object, got a list");
  std::string objects;
  for (int i = 0; i < 100'000; ++i) objects += R"({"a": )";
  EXPECT_EQ(sentence_for(objects),
            "tensor \"a\": expected the keys dtype, shape and data_offsets, got \"a\"");
}

TEST_F(Refusals, StrangersTextIsEscapedAndCut) {
  EXPECT_EQ(sentence_for("{\"\\u001b[31m\\n\xc3\xa9\": 1}"),
            "tensor \"\\u001b[31m\\n\\u00e9\": expected an object, got 1");
  EXPECT_EQ(sentence_for("{\"" + std::string(5000, 'a') + "\": 1}"),
            "tensor \"" + std::string(80, 'a') + "\"...: expected an object, got 1");
}

}  // namespace
}  // namespace chunkscan::io
