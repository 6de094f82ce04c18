// What models are made of: matrices, embeddings, cells, the sentences at work.
//
// Axes: M rows (hypotheses at one step), S source, H hidden, G gate pre-activations, K state size, D width, V words.
#pragma once
#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstring>
#include <map>
#include <memory>
#include <stdexcept>
#include <vector>

#include "crew.h"
#include "folder.h"
#include "interventions.h"

namespace engine {

enum Control : int64_t { PAD, UNK, BOS, EOS, CONTROLS };  // as in text/tokenizers.py; and how many there are

// y = W x + b, for many x at once; in floats, or in bytes where the folder says so.
struct Linear {
  const Table *table = nullptr;
  int64_t K = 0, N = 0;
  Floats panels, bias, scales;
  std::vector<int8_t> bytes;
  std::vector<int32_t> sums;
  Floats rows;  // the matrix row by row, where outputs are picked
  std::vector<int8_t> byte_rows;
  int64_t levels = 0;

  Linear() = default;
  // W (out, in); -1 for a size that is whatever it is.
  Linear(const Folder &folder, const string &name, int64_t in, int64_t out, bool biased = false) {
    const Matrix W = folder.matrix(name + ".weight", out, in);
    load(folder, W, 0, W.columns);
    folder.leave(name + ".weight");
    if (biased) bias = folder.vector(name + ".bias", N);
  }
  // The columns [first, first + K) of a matrix.
  void load(const Folder &folder, const Matrix &W, int64_t first, int64_t K_) {
    table = folder.table, N = W.rows, K = K_;
    if (W.bytes) {
      bytes.resize((N + 15) / 16 * 16 * ((K + 3) / 4 * 4)), sums.resize(N);
      scales.assign(W.scales, W.scales + N);
      levels = table->pack_bytes(W.bytes + first, W.columns, K, N, bytes.data(), sums.data());
    } else if (W.floats) {
      panels.resize((N + table->panel - 1) / table->panel * table->panel * K);
      table->pack(W.floats + first, W.columns, K, N, panels.data());
    }
  }
  explicit operator bool() const { return N > 0; }
  // Row n of the matrix, as it was before it was packed.
  void row(int64_t n, float *out) const {
    const int64_t groups = (K + 3) / 4, wide = table->panel;
    for (int64_t k = 0; k < K; k++)
      out[k] = bytes.empty() ? panels[(n / wide * K + k) * wide + n % wide]
                             : scales[n] * static_cast<float>(bytes[((n / 16 * groups + k / 4) * 16 + n % 16) * 4 + k % 4]);
  }
  // Keep what `picked` copies from: the matrix row by row, beside its panels.
  void keep_rows() {
    const int64_t groups = (K + 3) / 4, wide = table->panel;
    rows.resize(panels.empty() ? 0 : N * K), byte_rows.resize(bytes.empty() ? 0 : N * K);
    for (int64_t n = 0; n < N; n++)
      for (int64_t k = 0; k < K; k++) {
        if (!panels.empty()) rows[n * K + k] = panels[(n / wide * K + k) * wide + n % wide];
        else byte_rows[n * K + k] = bytes[((n / 16 * groups + k / 4) * 16 + n % 16) * 4 + k % 4];
      }
  }
  // Some of the outputs alone.
  Linear picked(const std::vector<int64_t> &outputs) const {
    Linear found;
    found.table = table, found.K = K, found.N = static_cast<int64_t>(outputs.size());
    for (int64_t n : outputs) {
      if (!bias.empty()) found.bias.push_back(bias[n]);
      if (!scales.empty()) found.scales.push_back(scales[n]);
    }
    if (!rows.empty()) {
      static thread_local Floats tight;
      tight.resize(found.N * K);
      for (int64_t i = 0; i < found.N; i++) std::memcpy(&tight[i * K], &rows[outputs[i] * K], sizeof(float) * K);
      found.panels.resize((found.N + table->panel - 1) / table->panel * table->panel * K);
      table->pack(tight.data(), K, K, found.N, found.panels.data());
    } else {
      static thread_local std::vector<int8_t> tight;
      tight.resize(found.N * K);
      for (int64_t i = 0; i < found.N; i++) std::memcpy(&tight[i * K], &byte_rows[outputs[i] * K], K);
      found.bytes.resize((found.N + 15) / 16 * 16 * ((K + 3) / 4 * 4)), found.sums.resize(found.N);
      table->pack_bytes(tight.data(), K, K, found.N, found.bytes.data(), found.sums.data());
      found.levels = levels;  // as for all outputs, so that picking some changes no sum
    }
    return found;
  }
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
    const int64_t wide = bytes.empty() ? table->panel : 16, count = (N + wide - 1) / wide;
    Crew *const others = crew();
    if (!others || M * K * N < WORTH_SHARING)
      return multiply(0, N, M, x, x_apart, base, base_apart, y, y_apart);
    others->share([&](int64_t part, int64_t parts) {  // whole panels, each computed as one thread would
      const int64_t first = count * part / parts * wide, after = count * (part + 1) / parts * wide;
      if (first < after) multiply(first, std::min(after, N), M, x, x_apart, base, base_apart, y, y_apart);
    });
  }
  // The outputs [first, after), where a panel begins at the first.
  void multiply(int64_t first, int64_t after, int64_t M, const float *x, int64_t x_apart, const float *base,
                int64_t base_apart, float *y, int64_t y_apart) const {
    if (base) base += first;
    y += first;
    if (bytes.empty())
      return table->multiply(M, x, x_apart, panels.data() + first * K, K, after - first, base, base_apart, y, y_apart);
    static thread_local std::vector<uint8_t> room;
    static thread_local std::vector<Bytes> made;
    const int64_t width = (K + 3) / 4 * 4;
    room.resize(M * width), made.resize(M);
    table->multiply_bytes(M, x, x_apart, bytes.data() + first * width, levels, scales.data() + first,
                          sums.data() + first, K, after - first, base, base_apart, y, y_apart, room.data(), made.data());
  }
  static constexpr int64_t WORTH_SHARING = 1 << 19;  // products of two numbers; fewer are done before help arrives
};

// A table of rows, one for each word or place; in bytes where the folder has them.
struct Embedding {
  int64_t size = 0, count = 0;

  Embedding() = default;
  explicit Embedding(int64_t size) : size(size) {}  // of sentences that come with their vectors
  Embedding(const Folder &folder, const string &name, int64_t width = -1,
            const char *table = ".table.weight") {
    const Matrix E = folder.matrix(name + table, -1, width);
    count = E.rows, size = E.columns;
    auto rows = std::make_shared<Rows>();
    if (E.bytes) rows->bytes.assign(E.bytes, E.bytes + count * size), rows->scales.assign(E.scales, E.scales + count);
    if (E.floats) rows->floats.assign(E.floats, E.floats + count * size);
    folder.leave(name + table);
    kept = std::move(rows);
  }
  // The matrix of an output layer, which must live as long as this.
  explicit Embedding(const Linear &output) : size(output.K), count(output.N), tied(&output) {}
  void row(int64_t id, float *out) const {
    if (id < 0 || id >= count) throw std::out_of_range("a token that the model does not know");
    if (tied) {
      tied->row(id, out);
    } else if (kept->bytes.empty()) {
      std::memcpy(out, &kept->floats[id * size], sizeof(float) * size);
    } else {
      for (int64_t j = 0; j < size; j++) out[j] = kept->scales[id] * static_cast<float>(kept->bytes[id * size + j]);
    }
  }
  void rows(int64_t M, const int64_t *ids, Floats &out) const {
    out.resize(M * size);
    for (int64_t i = 0; i < M; i++) row(ids[i], &out[i * size]);
  }

 private:
  struct Rows {
    Floats floats, scales;
    std::vector<int8_t> bytes;
  };
  std::shared_ptr<const Rows> kept;  // by both sides of a model that has one table for them
  const Linear *tied = nullptr;
};

// W e(word) + b: what a word adds to the gates of a cell. It is computed when a word first comes and kept for the next
// time, as far as memory allows: common words come first, and soon.
struct WordShares {
  WordShares() = default;
  explicit WordShares(int64_t words, int64_t width)
      : room(std::min(words, MOST_FLOATS / std::max<int64_t>(1, width))), places(new std::atomic<int32_t>[words]()),
        kept(new float[room * width]) {}

  // Where the share of each word lies; `fresh` holds those that are not kept.
  std::vector<const float *> find(const Embedding &embedding, const Linear &W, const std::vector<int64_t> &ids,
                                  Floats &fresh) const {
    static thread_local Floats x;
    static thread_local std::vector<size_t> missing;
    const int64_t N = W.N;
    std::vector<const float *> found(ids.size());
    missing.clear();
    for (size_t i = 0; i < ids.size(); i++) {
      if (ids[i] < 0 || ids[i] >= embedding.count) throw std::out_of_range("a token that the model does not know");
      const int32_t place = places[ids[i]].load(std::memory_order_acquire);
      if (place > BUSY) found[i] = &kept[(place - FIRST) * N];
      else missing.push_back(i);
    }
    const int64_t count = static_cast<int64_t>(missing.size());
    if (!count) return found;
    x.resize(count * embedding.size), fresh.resize(count * N);
    for (int64_t i = 0; i < count; i++) embedding.row(ids[missing[i]], &x[i * embedding.size]);
    W(count, x.data(), embedding.size, fresh.data(), N);
    for (int64_t i = 0; i < count; i++) {
      found[missing[i]] = &fresh[i * N];
      keep(ids[missing[i]], &fresh[i * N], N);
    }
    return found;
  }
  // ids (M) -> out (M, W.N)
  void operator()(const Embedding &embedding, const Linear &W, int64_t M, const int64_t *ids, float *out) const {
    static thread_local Floats fresh;
    for (const float *share : find(embedding, W, {ids, ids + M}, fresh)) out = std::copy_n(share, W.N, out);
  }

 private:
  static constexpr int64_t MOST_FLOATS = 2 << 20;
  enum : int32_t { NOTHING, BUSY, FIRST };  // and on from there: where a word's share lies
  int64_t room = 0;
  mutable std::atomic<int64_t> next{0};
  std::unique_ptr<std::atomic<int32_t>[]> places;
  std::unique_ptr<float[]> kept;  // its pages are there when they are written

  void keep(int64_t id, const float *share, int64_t N) const {
    int32_t nothing = NOTHING;
    if (next.load() >= room || !places[id].compare_exchange_strong(nothing, BUSY)) return;
    const int64_t place = next++;
    if (place >= room) return;  // another took the last one; this word stays busy, and is computed each time
    std::memcpy(&kept[place * N], share, sizeof(float) * N);
    places[id].store(static_cast<int32_t>(place) + FIRST, std::memory_order_release);
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
  int64_t width = 0;          // of a value
  bool mapped = false;        // values are what contexts become in the decoder
};

// A source on its way: what the model remembers of it, and what its hypotheses have looked at. A step's entries lie by
// slot; a hypothesis knows the slots of its past.
struct Sentence {
  int64_t number = 0;
  std::vector<int64_t> ids;  // EOS at the end
  std::vector<int64_t> letters, ends;  // of spelled words: the characters of all, and where those of each end
  Floats vectors;                      // what such words are for the encoder (S x their width)
  std::vector<Memory> memory;
  Floats summary;               // of models without attention
  std::vector<Floats> weights;  // of each step: slots x layers x heads x columns
  std::vector<Floats> cache;    // of each step: slots x what the model keeps of a word
  std::vector<int64_t> words;     // what it may say, in order; empty: everything
  Linear vocabulary;              // of these words alone
  std::vector<int64_t> copies;    // of a model that copies: the target word of each position
  int64_t own = 0;                // words of this source alone, which follow those of the vocabulary
  Floats gates, mapped;           // of such a model: w_h . h_j, and which words positions may become (S x V)
  std::vector<Floats> p_gen;      // of each step: slots
  std::vector<Sentence> members;  // of an ensemble, each member's own
  bool wide = false;              // several hypotheses are to come: what they share pays
  bool greedy = false;            // the likeliest answer is wanted, and so
  std::vector<int64_t> best;      // it is here without its EOS, where the model can tell
  bool whole = false;             // EOS follows it, which the model leaves to the search
  bool watched = false;           // a trace was asked for, and so
  bool shown = false;             // the model wants them too
  Floats states;                  // the encoder's (S x their width), and of this step alone
  Floats energies, norms;         // what is weighed (slots x layers x heads x columns), lengths of contexts (slots x layers)
  const Interventions *interventions = nullptr;  // where attention is told where to look
  int64_t S() const { return static_cast<int64_t>(ids.size()); }
  // Of a model of V words: where a word is among the choices, -1 where it is none of them; and what a choice says.
  int64_t place(int64_t word, int64_t V) const {
    if (words.empty()) return word < V + own ? word : -1;
    if (word >= V) return word < V + own ? static_cast<int64_t>(words.size()) + word - V : -1;
    const auto found = std::lower_bound(words.begin(), words.end(), word);
    return found != words.end() && *found == word ? found - words.begin() : -1;
  }
  int64_t word(int64_t choice, int64_t V) const {
    const int64_t listed = static_cast<int64_t>(words.size());
    return !listed ? choice : choice < listed ? words[choice] : V + choice - listed;
  }
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
  bool looks_back = false;  // attention is over the words said so far, BOS first, and not over the source
  bool scored = true;       // attention weighs scores, which a trace shows as energies
  bool gated = false;       // it copies, and p_gen says at each step how much it does not
  bool points = false;      // it copies words of the source alone
  bool notes = false;       // what the last layer reads is noted, for a model around this one
  bool reads = false;       // most of the work is to read: sources of like lengths are best read together
  virtual ~Model() = default;
  // Where the ids of a source are words with their characters, tell them apart: the source is then its words.
  virtual void spell(Sentence &) const {}
  // Remember the sentences, and write the first states (count, state_width).
  virtual void encode(const std::vector<Sentence *> &sentences, float *states) const = 0;
  // One word on.  previous (M), states (M, state_width) -> logits (M, row_width)
  virtual void step(const std::vector<Row> &rows, const int64_t *previous, float *states, float *logits) const = 0;

  // The likeliest answer to what was read, with EOS, its scores and attention; false: it has to be searched for.
  virtual bool answer(const Sentence &, std::vector<int64_t> &, Floats &, Floats &) const { return false; }

  // The last layer, which says words.
  virtual Linear &output() = 0;
  // Be ready for sentences that may say some words only.
  virtual void shorten() { output().keep_rows(); }
  int64_t choices(const Sentence &sentence) const {
    return (sentence.words.empty() ? V : static_cast<int64_t>(sentence.words.size())) + sentence.own;
  }
  // How far apart the logits of these rows lie.
  virtual int64_t row_width(const std::vector<Row> &) const { return V; }
  // The size of the encoder's states; what the decoder reads of a word at its place, and the size of that.
  virtual int64_t source_size() const { return 0; }
  virtual int64_t input_size() const { throw Unknown("copying around such a model"); }
  virtual void input(int64_t, int64_t, float *) const {}
  // What the last layer read at this step (M, K), by this thread.
  static Floats &noted() {
    static thread_local Floats read;
    return read;
  }
  // x (M, K) through the last layer: of each row its sentence's choices, rows V apart.
  void say(const std::vector<Row> &rows, const Linear &all, const float *x, int64_t x_apart, float *logits) const {
    const int64_t M = static_cast<int64_t>(rows.size());
    if (notes) {
      noted().resize(M * all.K);
      for (int64_t i = 0; i < M; i++) std::copy_n(x + i * x_apart, all.K, &noted()[i * all.K]);
    }
    if (rows[0].sentence->words.empty()) return all(M, x, x_apart, logits, V);
    for (int64_t first = 0, after; first < M; first = after) {
      Sentence &sentence = *rows[first].sentence;
      for (after = first + 1; after < M && rows[after].sentence == &sentence; after++) {
      }
      if (!sentence.vocabulary) sentence.vocabulary = all.picked(sentence.words);
      sentence.vocabulary(after - first, x + first * x_apart, x_apart, logits + first * V, V);
    }
  }
  // What attention may look at in a step.
  int64_t columns(const Sentence &sentence, int64_t step) const { return looks_back ? step + 1 : sentence.S(); }
  // Room for what a step of so many hypotheses leaves behind.
  virtual void make_room(Sentence &sentence, int64_t live) const {
    const int64_t size = live * layers * heads * columns(sentence, static_cast<int64_t>(sentence.weights.size()));
    sentence.weights.emplace_back(size);
    sentence.cache.emplace_back(live * cache_width);
    if (!sentence.watched) return;
    sentence.energies.assign(size, 0.0f);
    sentence.norms.assign(live * layers, 0.0f);
  }
  float *weights(const Row &row, int64_t step, int64_t slot, int64_t layer) const {
    return row.sentence->weights[step].data() + (slot * layers + layer) * heads * columns(*row.sentence, step);
  }
  // Null where nobody watches.
  float *energies(const Row &row, int64_t layer) const {
    if (!row.sentence->watched) return nullptr;
    return row.sentence->energies.data() + (row.slot * layers + layer) * heads * columns(*row.sentence, row.t);
  }
};

}  // namespace engine
