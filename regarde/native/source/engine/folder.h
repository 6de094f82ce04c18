// A model folder as it was read: settings, tensors, and what is asked of them while a model is built.
#pragma once
#include <cstdint>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#if defined(__linux__)
#include <sys/mman.h>
#include <unistd.h>
#endif

#include "../table.h"

namespace engine {

using Floats = std::vector<float>;
using std::string;

// What this engine does not know: the caller takes another.
struct Unknown : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// What was read of a file: floats, or bytes. Neither is there where shapes alone are tried.
struct Tensor {
  std::vector<int64_t> shape;
  bool in_bytes = false;
  const void *data = nullptr;
  bool mapped = false;  // it lies in a file
  int64_t size(size_t axis) const { return shape.at(axis); }
};

// A matrix (rows, columns): floats, or bytes that a scale for each row makes floats again.
struct Matrix {
  int64_t rows = 0, columns = 0;
  const float *floats = nullptr;
  const int8_t *bytes = nullptr;
  const float *scales = nullptr;
};

// A model folder as it was read: its settings, each under its path, and its tensors by name. Tensors are there while a
// model is built, which copies or packs what it keeps of them.
struct Folder {
  std::map<string, string> settings;
  std::map<string, Tensor> tensors;
  const Table *table = nullptr;
  mutable std::set<string> used;   // tensors that a model was built from
  mutable std::set<string> asked;  // settings that were looked at

  const string &word(const string &path) const {
    asked.insert(path);
    auto found = settings.find(path);
    if (found == settings.end()) throw Unknown("the configuration has no " + path);
    return found->second;
  }
  string word(const string &path, const string &otherwise) const {
    asked.insert(path);
    auto found = settings.find(path);
    return found == settings.end() ? otherwise : found->second;
  }
  // One of the words that are known here: any other would be taken for the wrong thing.
  const string &choice(const string &path, const std::vector<string> &known) const {
    const string &given = word(path);
    for (const string &one : known)
      if (given == one) return given;
    throw Unknown(path + " = " + given);
  }
  int64_t number(const string &path) const {
    const string &given = word(path);
    size_t end = 0;
    int64_t found = 0;
    try {
      found = std::stoll(given, &end);
    } catch (const std::exception &) {
    }
    if (given.empty() || end != given.size()) throw Unknown(path + " = " + given);
    return found;
  }
  int64_t number(const string &path, int64_t otherwise) const {
    asked.insert(path);
    return settings.count(path) ? number(path) : otherwise;
  }
  // What the configuration says of a size is what the weights have; 0 may stand for something else.
  void agree(const string &path, int64_t size, int64_t if_zero = -1) const {
    const int64_t given = number(path);
    if (given != size && !(given == 0 && if_zero == size)) throw Unknown("weights of other sizes than " + path);
  }
  double real(const string &path) const {
    const string &given = word(path);
    size_t end = 0;
    double found = 0;
    try {
      found = std::stod(given, &end);
    } catch (const std::exception &) {
    }
    if (given.empty() || end != given.size()) throw Unknown(path + " = " + given);
    return found;
  }
  // Settings whose paths begin so, which nothing depends on here.
  void ignore(const string &beginning) const {
    for (const auto &setting : settings)
      if (setting.first.compare(0, beginning.size(), beginning) == 0) asked.insert(setting.first);
  }
  bool yes(const string &path) const { return choice(path, {"true", "false"}) == "true"; }
  bool yes(const string &path, bool otherwise) const { return settings.count(path) ? yes(path) : otherwise; }
  bool has(const string &name) const { return tensors.count(name) > 0; }
  // Of so many axes, and of these sizes where they are not -1: whatever was built relies on it.
  const Tensor &tensor(const string &name, std::vector<int64_t> sizes) const {
    auto found = tensors.find(name);
    if (found == tensors.end()) throw Unknown("the weights have no " + name);
    const std::vector<int64_t> &given = found->second.shape;
    bool fits = given.size() == sizes.size();
    for (size_t axis = 0; fits && axis < sizes.size(); axis++) fits = sizes[axis] < 0 || given[axis] == sizes[axis];
    for (int64_t size : given) fits = fits && size > 0;
    if (!fits) throw Unknown("a tensor " + name + " of that shape");
    used.insert(name);
    return found->second;
  }
  const float *floats(const string &name, std::vector<int64_t> sizes) const {
    const Tensor &given = tensor(name, std::move(sizes));
    if (given.in_bytes) throw Unknown("a tensor " + name + " in bytes");
    return static_cast<const float *>(given.data);
  }
  Matrix matrix(const string &name, int64_t rows, int64_t columns) const {
    const Tensor &given = tensor(name, {rows, columns});
    Matrix found{given.size(0), given.size(1)};
    if (!given.in_bytes) {
      found.floats = static_cast<const float *>(given.data);
      return found;
    }
    if (found.columns > LONGEST_IN_BYTES) throw Unknown("a tensor " + name + " of that shape in bytes");
    found.scales = floats(name + ".scale", {found.rows});
    found.bytes = static_cast<const int8_t *>(given.data);
    return found;
  }
  // What was read of a matrix that lies in a file need not stay in memory: it is read again if it is needed again.
  void leave(const string &name) const {
#if defined(__linux__)
    const Tensor &read = tensors.at(name);
    if (!read.mapped) return;
    int64_t bytes = read.in_bytes ? 1 : sizeof(float);
    for (int64_t size : read.shape) bytes *= size;
    const uintptr_t page = static_cast<uintptr_t>(sysconf(_SC_PAGESIZE)), at = reinterpret_cast<uintptr_t>(read.data);
    const uintptr_t first = at / page * page, after = (at + bytes) / page * page;
    if (first < after) madvise(reinterpret_cast<void *>(first), after - first, MADV_DONTNEED);
#else
    (void)name;
#endif
  }
  // A matrix row by row, in floats; where shapes alone are tried, nothing.
  Floats dense(const string &name, int64_t rows, int64_t columns) const {
    const Matrix given = matrix(name, rows, columns);
    if (given.floats) return Floats(given.floats, given.floats + rows * columns);
    if (!given.bytes) return {};
    Floats found(rows * columns);
    for (int64_t i = 0; i < rows * columns; i++)
      found[i] = given.scales[i / columns] * static_cast<float>(given.bytes[i]);
    return found;
  }
  // A tensor of one axis; where shapes alone are tried, nothing.
  Floats vector(const string &name, int64_t size) const {
    const float *given = floats(name, {size});
    return given ? Floats(given, given + size) : Floats();
  }
  float scalar(const string &name) const {
    const float *given = floats(name, {});
    return given ? *given : 0.0f;
  }

 private:
  static constexpr int64_t LONGEST_IN_BYTES = 1 << 18;  // columns, whose sums fit 32 bits
};

}  // namespace engine
