#include "io/header.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <tuple>

#include "io/sentence.h"

namespace chunkscan::io {

namespace {

using nlohmann::json;

constexpr const char* kMetadataKey = "__metadata__";

struct DTypeName {
  const char* name;
  DType dtype;
};
constexpr DTypeName kDTypeNames[] = {
    {"F64", DType::kF64},   {"F32", DType::kF32}, {"F16", DType::kF16},
    {"BF16", DType::kBF16}, {"I32", DType::kI32}, {"I64", DType::kI64},
};

const char* file_name_of(DType dtype) {
  for (const DTypeName& row : kDTypeNames) {
    if (row.dtype == dtype) return row.name;
  }
  return "?";
}

std::string tensor_label(const std::string& name) { return "tensor " + in_quotes(name); }

// Accepts exactly the header's grammar, event by event:
//   { "__metadata__": { string: string, ... },
//     name: { "dtype": string, "shape": [integer, ...], "data_offsets": [integer, integer] }, ... }
// A document tree would silently keep one of two equal keys and would be built to any depth first.
class HeaderReader : public nlohmann::json_sax<json> {
 public:
  HeaderReader(const std::string& file, Header& header) : file_(file), header_(header) {}

  bool start_object(std::size_t) override {
    if (place_ == Place::kStart) {
      place_ = Place::kNames;
    } else if (place_ == Place::kNames) {
      place_ = key_ == kMetadataKey ? Place::kMetadata : Place::kTensor;
    } else {
      refuse("an object");
    }
    return true;
  }

  bool key(std::string& text) override {
    key_ = text;
    if (place_ == Place::kNames) {
      if (!names_.insert(key_).second) {
        refuse_file(file_, tensor_label(key_), "a name that occurs once", "it twice");
      }
      entry_ = {key_, {}, {}, 0, 0};
      dtype_.reset();
      shape_.reset();
      offsets_.reset();
    } else if (place_ == Place::kTensor) {
      const bool repeated = (key_ == "dtype" && dtype_) || (key_ == "shape" && shape_) ||
                            (key_ == "data_offsets" && offsets_);
      if (repeated) refuse_field("a key that occurs once", in_quotes(key_) + " twice");
      if (key_ != "dtype" && key_ != "shape" && key_ != "data_offsets") {
        refuse_field("the keys dtype, shape and data_offsets", in_quotes(key_));
      }
    } else if (header_.metadata.contains(key_)) {
      refuse_file(file_, "metadata " + in_quotes(key_), "a key that occurs once", "it twice");
    }
    return true;
  }

  bool string(std::string& text) override {
    if (place_ == Place::kMetadata) {
      header_.metadata.emplace(key_, text);
    } else if (place_ == Place::kTensor && key_ == "dtype") {
      dtype_ = dtype_named(text);
    } else {
      refuse("the string " + in_quotes(text));
    }
    return true;
  }

  bool start_array(std::size_t) override {
    if (place_ != Place::kTensor || key_ == "dtype") refuse("a list");
    place_ = Place::kList;
    (key_ == "shape" ? shape_ : offsets_).emplace();
    return true;
  }

  bool number_unsigned(std::uint64_t value) override {
    if (place_ != Place::kList) refuse(std::to_string(value));
    const bool is_shape = key_ == "shape";
    std::vector<std::uint64_t>& list = is_shape ? *shape_ : *offsets_;
    if (is_shape && list.size() == kMaxRank) {
      refuse_field("at most " + std::to_string(kMaxRank) + " dimensions", "more");
    }
    if (!is_shape && list.size() == 2) refuse_field("two data_offsets", "more");
    list.push_back(value);
    return true;
  }

  bool end_array() override {
    place_ = Place::kTensor;
    return true;
  }

  bool end_object() override {
    if (place_ == Place::kTensor) finish_tensor();
    place_ = Place::kNames;
    return true;
  }

  bool null() override { refuse("null"); }
  bool boolean(bool value) override { refuse(value ? "true" : "false"); }
  bool number_integer(std::int64_t value) override { refuse(std::to_string(value)); }
  bool number_float(double, const std::string& text) override { refuse("the number " + text); }
  bool binary(json::binary_t&) override { refuse("bytes"); }
  bool parse_error(std::size_t position, const std::string&, const json::exception&) override {
    refuse_file(file_, "header", "JSON text", "an error at byte " + std::to_string(position));
  }

 private:
  enum class Place { kStart, kNames, kMetadata, kTensor, kList };

  [[noreturn]] void refuse_field(const std::string& rule, const std::string& value) const {
    refuse_file(file_, tensor_label(entry_.name), rule, value);
  }

  // `value` came where the grammar has something else.
  [[noreturn]] void refuse(const std::string& value) const {
    switch (place_) {
      case Place::kStart: refuse_file(file_, "header", "an object", value);
      case Place::kNames:
        if (key_ == kMetadataKey) refuse_file(file_, "metadata", "an object of strings", value);
        refuse_field("an object", value);
      case Place::kMetadata: refuse_file(file_, "metadata " + in_quotes(key_), "a string", value);
      case Place::kList: refuse_field(key_ + " of non-negative 64-bit integers", value);
      case Place::kTensor:
        refuse_field(key_ == "dtype" ? "dtype as a string" : key_ + " as a list", value);
    }
    refuse_file(file_, "header", "tensors", value);
  }

  DType dtype_named(const std::string& text) const {
    std::string known;
    for (const DTypeName& row : kDTypeNames) {
      if (text == row.name) return row.dtype;
      known += (known.empty() ? "" : " | ") + std::string(row.name);
    }
    refuse_field("dtype " + known, in_quotes(text));
  }

  void finish_tensor() {
    if (!dtype_) refuse_field("a dtype", "none");
    if (!shape_) refuse_field("a shape", "none");
    if (!offsets_ || offsets_->size() != 2) {
      refuse_field("two data_offsets",
                   offsets_ ? std::to_string(offsets_->size()) : std::string("none"));
    }
    entry_.dtype = *dtype_;
    entry_.begin = (*offsets_)[0];
    entry_.end = (*offsets_)[1];
    std::uint64_t bytes = size_of(*dtype_);
    std::uint64_t span = bytes;  // as if no size were 0: strides are products too
    for (std::uint64_t size : *shape_) {
      constexpr std::uint64_t kMost = std::numeric_limits<std::int64_t>::max();
      if (size > kMost / span) refuse_field("a shape below 2^63 bytes", shape_text());
      entry_.shape.push_back(static_cast<std::int64_t>(size));
      bytes *= size;
      span *= std::max<std::uint64_t>(size, 1);
    }
    if (entry_.end < entry_.begin || entry_.end - entry_.begin != bytes) {
      refuse_field("data_offsets " + std::to_string(bytes) + " bytes apart for " +
                       file_name_of(*dtype_) + " " + shape_text(),
                   "[" + std::to_string(entry_.begin) + ", " + std::to_string(entry_.end) + "]");
    }
    header_.entries.push_back(std::move(entry_));
  }

  std::string shape_text() const { return json(*shape_).dump(); }

  const std::string& file_;
  Header& header_;
  Place place_ = Place::kStart;
  std::string key_;
  std::set<std::string> names_;
  HeaderEntry entry_;  // the tensor being read
  std::optional<DType> dtype_;
  std::optional<std::vector<std::uint64_t>> shape_, offsets_;
};

// The format allows neither holes nor overlaps: sorted by offset, each entry starts where the one
// before ends, and the last ends with the file.
void require_tiling(const Header& header, std::uint64_t data_bytes, const std::string& file) {
  std::uint64_t expected = 0;
  for (const HeaderEntry& entry : header.entries) {
    if (entry.end > data_bytes) {
      refuse_file(file, tensor_label(entry.name),
                  "data within the file's " + std::to_string(data_bytes) + " bytes of data",
                  "data up to byte " + std::to_string(entry.end));
    }
    if (entry.begin != expected) {
      refuse_file(
          file, tensor_label(entry.name),
          "data from byte " + std::to_string(expected) + " on, where the data before it ends",
          (entry.begin < expected ? "an overlap from byte " : "a hole up to byte ") +
              std::to_string(entry.begin));
    }
    expected = entry.end;
  }
  if (expected != data_bytes) {
    refuse_file(file, "data", std::to_string(expected) + " bytes as in the header",
                std::to_string(data_bytes));
  }
}

}  // namespace

Header parse_header(std::string_view text, std::uint64_t data_bytes, const std::string& file) {
  if (!text.starts_with('{')) {
    refuse_file(file, "header", "JSON text that starts with {",
                text.empty() ? "none" : in_quotes(text.substr(0, 1)));
  }
  Header header;
  HeaderReader reader(file, header);
  json::sax_parse(text.begin(), text.end(), &reader);
  std::sort(header.entries.begin(), header.entries.end(),
            [](const HeaderEntry& a, const HeaderEntry& b) {
              return std::tie(a.begin, a.end) < std::tie(b.begin, b.end);
            });
  require_tiling(header, data_bytes, file);
  return header;
}

Header lay_out(const std::map<std::string, Tensor>& tensors,
               const std::map<std::string, std::string>& metadata) {
  Header header{{}, metadata};
  for (const auto& [name, tensor] : tensors) {
    header.entries.push_back({name, tensor.dtype, tensor.shape, 0, 0});
  }
  std::stable_sort(header.entries.begin(), header.entries.end(),
                   [](const HeaderEntry& a, const HeaderEntry& b) {
                     return size_of(a.dtype) > size_of(b.dtype);
                   });
  std::uint64_t offset = 0;
  for (HeaderEntry& entry : header.entries) {
    entry.begin = offset;
    offset += tensors.at(entry.name).bytes();
    entry.end = offset;
  }
  return header;
}

std::string to_json(const Header& header, const std::string& file) try {
  nlohmann::ordered_json root = nlohmann::ordered_json::object();
  if (!header.metadata.empty()) root[kMetadataKey] = header.metadata;
  for (const HeaderEntry& entry : header.entries) {
    root[entry.name] = {{"dtype", file_name_of(entry.dtype)},
                        {"shape", entry.shape},
                        {"data_offsets", {entry.begin, entry.end}}};
  }
  std::string text = root.dump();
  text.resize((text.size() + 7) / 8 * 8, ' ');
  return text;
} catch (const json::type_error&) {
  refuse_file(file, "header", "names and metadata in UTF-8", "other bytes");
}

}  // namespace chunkscan::io
