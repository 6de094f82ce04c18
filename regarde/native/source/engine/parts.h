// What models are made of: weights by the names they have in the folder, matrices, cells, the sentences at work.
//
// Axes: M rows (hypotheses at one step), S source, H hidden, G gate pre-activations, K state size, D width, V words.
#pragma once
#include <cmath>
#include <cstring>
#include <map>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "../table.h"

namespace engine {

using Floats = std::vector<float>;
using std::string;

// What this engine does not know: the caller takes another.
struct Unknown : std::runtime_error {
  using std::runtime_error::runtime_error;
};

struct Tensor {
  const float *data = nullptr;
  std::vector<int64_t> shape;
  int64_t size(size_t axis) const { return shape.at(axis); }
};

// A model folder as it was read: its settings, each under its path, and its tensors by name.
struct Folder {
  std::map<string, string> settings;
  std::map<string, Tensor> tensors;
  const Table *table = nullptr;
  bool in_bytes = false;
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
  bool yes(const string &path) const { return choice(path, {"true", "false"}) == "true"; }
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
  // A tensor of one axis; where shapes alone are tried, nothing.
  Floats vector(const string &name, int64_t size) const {
    const Tensor &given = tensor(name, {size});
    return given.data ? Floats(given.data, given.data + size) : Floats();
  }
  float scalar(const string &name) const {
    const Tensor &given = tensor(name, {});
    return given.data ? *given.data : 0.0f;
  }
};

// y = W x + b, for many x at once; in floats, or in bytes where the folder says so.
struct Linear {
  const Table *table = nullptr;
  int64_t K = 0, N = 0;
  Floats panels, bias, scales;
  std::vector<int8_t> bytes;
  std::vector<int32_t> sums;

  Linear() = default;
  // W (out, in); -1 for a size that is whatever it is.
  Linear(const Folder &folder, const string &name, int64_t in, int64_t out, bool biased = false) {
    const Tensor &W = folder.tensor(name + ".weight", {out, in});
    load(folder, W.data, W.size(0), W.size(1), W.size(1));
    if (biased) bias = folder.vector(name + ".bias", N);
  }
  // Rows [0, N) of a matrix whose rows are `apart` long, of which the first K columns count.
  void load(const Folder &folder, const float *W, int64_t N_, int64_t K_, int64_t apart) {
    table = folder.table, N = N_, K = K_;
    if (!W) return;  // shapes alone are tried
    Floats tight(N * K);
    for (int64_t n = 0; n < N; n++) std::memcpy(&tight[n * K], W + n * apart, sizeof(float) * K);
    if (folder.in_bytes) {
      bytes.resize((N + 15) / 16 * 16 * ((K + 3) / 4 * 4)), scales.resize(N), sums.resize(N);
      table->pack_bytes(tight.data(), K, N, bytes.data(), scales.data(), sums.data());
      return;
    }
    panels.resize((N + table->panel - 1) / table->panel * table->panel * K);
    table->pack(tight.data(), K, N, panels.data());
  }
  explicit operator bool() const { return N > 0; }
  void operator()(int64_t M, const float *x, int64_t x_apart, float *y, int64_t y_apart) const {
    multiply(M, x, x_apart, bias.empty() ? nullptr : bias.data(), 0, y, y_apart);
  }
  void operator()(int64_t M, const Floats &x, Floats &y) const {
    y.resize(M * N);
    (*this)(M, x.data(), K, y.data(), N);
  }
  // y += W x
  void add(int64_t M, const float *x, int64_t x_apart, float *y, int64_t y_apart) const {
    multiply(M, x, x_apart, y, y_apart, y, y_apart);
  }

 private:
  void multiply(int64_t M, const float *x, int64_t x_apart, const float *base, int64_t base_apart, float *y,
                int64_t y_apart) const {
    if (bytes.empty()) return table->multiply(M, x, x_apart, panels.data(), K, N, base, base_apart, y, y_apart);
    static thread_local std::vector<uint8_t> room;
    static thread_local Floats steps;
    room.resize(M * ((K + 3) / 4 * 4)), steps.resize(M);
    table->multiply_bytes(M, x, x_apart, bytes.data(), scales.data(), sums.data(), K, N, base, base_apart, y, y_apart,
                          room.data(), steps.data());
  }
};

struct Embedding {
  const float *table = nullptr;
  int64_t size = 0, count = 0;
  Embedding() = default;
  Embedding(const Folder &folder, const string &name) {
    const Tensor &E = folder.tensor(name + ".table.weight", {-1, -1});
    table = E.data, count = E.size(0), size = E.size(1);
  }
  const float *operator[](int64_t id) const {
    if (id < 0 || id >= count) throw std::out_of_range("a token that the model does not know");
    return table + id * size;
  }
  void rows(int64_t M, const int64_t *ids, Floats &out) const {
    out.resize(M * size);
    for (int64_t i = 0; i < M; i++) std::memcpy(&out[i * size], (*this)[ids[i]], sizeof(float) * size);
  }
};

// The cells of layers/cells.py; `keeping` is the encoder's of models/cho.py.
struct Cell {
  enum Kind { simple, gru, torch_gru, lstm, keeping } kind = simple;
  const Table *table = nullptr;
  int64_t H = 0, G = 0, K = 0;
  std::vector<Linear> W;
  Linear U_gates, U;

  Cell() = default;
  Cell(const Folder &folder, const string &name, const string &kind_name, const std::vector<int64_t> &inputs) : table(folder.table) {
    const std::map<string, Kind> kinds = {
        {"simple", simple}, {"gru", gru}, {"torch-gru", torch_gru}, {"lstm", lstm}, {"keeping", keeping}};
    auto found = kinds.find(kind_name);
    if (found == kinds.end()) throw Unknown("a cell of kind " + kind_name);
    kind = found->second;
    H = folder.tensor(name + ".U.weight", {-1, -1}).size(1);
    G = kind == simple ? H : kind == lstm ? 4 * H : 3 * H;
    K = kind == lstm ? 2 * H : H;
    for (size_t i = 0; i < inputs.size(); i++) W.emplace_back(folder, name + ".W." + std::to_string(i), inputs[i], G, i == 0);
    if (kind != simple && kind != lstm) U_gates = Linear(folder, name + ".U_gates", H, 2 * H);
    U = Linear(folder, name + ".U", H, kind == lstm ? 4 * H : H, kind == torch_gru);
  }
  // gates (M, G) hold all shares; state (M, K) moves on.
  void step(int64_t M, float *gates, float *state) const {
    static thread_local Floats scratch;
    switch (kind) {
      case simple:
        U.add(M, state, K, gates, G);
        table->tangent(gates, M * H);
        std::memcpy(state, gates, sizeof(float) * M * H);
        return;
      case lstm:
        U.add(M, state, K, gates, G);
        return table->lstm(M, H, gates, state);
      case torch_gru:
        scratch.resize(M * 3 * H);
        U_gates(M, state, K, scratch.data(), 3 * H);
        U(M, state, K, scratch.data() + 2 * H, 3 * H);
        return table->gru_after(M, H, gates, scratch.data(), state);
      default:
        scratch.resize(M * H);
        U_gates.add(M, state, K, gates, G);
        table->gru_reset(M, H, gates, state, scratch.data());
        U.add(M, scratch.data(), H, gates + 2 * H, G);
        return table->gru_mix(M, H, gates, state, kind == keeping);
    }
  }
};

// What one attention knows of a source.
struct Memory {
  Floats keys, values;        // with several heads: heads x S x their width
  std::vector<uint8_t> mask;  // S
};

// A source on its way: what the model remembers of it, and what its hypotheses have looked at. A step's entries lie by
// slot; a hypothesis knows the slots of its past.
struct Sentence {
  int64_t number = 0;
  std::vector<int64_t> ids;  // EOS at the end
  std::vector<Memory> memory;
  Floats summary;               // of models without attention
  std::vector<Floats> weights;  // of each step: slots x layers x heads x S
  std::vector<Floats> cache;    // of each step: slots x what the model keeps of a word
  int64_t S() const { return static_cast<int64_t>(ids.size()); }
};

// One hypothesis at one step.
struct Row {
  Sentence *sentence;
  int64_t slot, t;
  const int64_t *path;  // the slots of its t steps so far
};

// A model: any number of sentences in, then any number of rows a step on.
struct Model {
  int64_t state_width = 0, layers = 0, heads = 0, cache_width = 0, V = 0, source_words = 0;
  virtual ~Model() = default;
  // Remember the sentences, and write the first states (count, state_width).
  virtual void encode(const std::vector<Sentence *> &sentences, float *states) const = 0;
  // One word on.  previous (M), states (M, state_width) -> logits (M, V)
  virtual void step(const std::vector<Row> &rows, const int64_t *previous, float *states, float *logits) const = 0;

  float *weights(const Row &row, int64_t step, int64_t slot, int64_t layer) const {
    return row.sentence->weights[step].data() + (slot * layers + layer) * heads * row.sentence->S();
  }
};

}  // namespace engine
