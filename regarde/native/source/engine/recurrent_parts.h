// What the recurrent models share: cells over sentences, stacks, the encoders of models/encoders.py, maxout.
#pragma once
#include "attending.h"

namespace engine {

using Sentences = std::vector<Sentence *>;

// The tokens of several sentences end to end, and what stands at each.
struct Tokens {
  std::vector<int64_t> starts, lengths, by_length;  // by_length: sentences, longest first
  int64_t total = 0;

  explicit Tokens(const Sentences &sentences) {
    for (const Sentence *sentence : sentences) lengths.push_back(sentence->S());
    arrange();
  }
  explicit Tokens(std::vector<int64_t> lengths_) : lengths(std::move(lengths_)) { arrange(); }
  void arrange() {
    for (int64_t length : lengths) {
      starts.push_back(total), total += length;
      by_length.push_back(static_cast<int64_t>(by_length.size()));
    }
    std::stable_sort(by_length.begin(), by_length.end(), [&](int64_t a, int64_t b) { return lengths[a] > lengths[b]; });
  }
  std::vector<int64_t> ids(const Sentences &sentences) const {
    std::vector<int64_t> all;
    for (const Sentence *sentence : sentences) all.insert(all.end(), sentence->ids.begin(), sentence->ids.end());
    return all;
  }
  // (total, size)
  Floats embedded(const Sentences &sentences, const Embedding &embedding) const {
    Floats x(total * embedding.size);
    for (size_t b = 0; b < sentences.size(); b++) {
      const Sentence &one = *sentences[b];
      std::copy(one.vectors.begin(), one.vectors.end(), x.begin() + starts[b] * embedding.size);
      for (int64_t s = 0; one.vectors.empty() && s < lengths[b]; s++)
        embedding.row(one.ids[s], &x[(starts[b] + s) * embedding.size]);
    }
    return x;
  }
  // What the tokens have become, (total, width), for those who watch.
  void show(const Sentences &sentences, const float *states, int64_t width) const {
    for (size_t b = 0; b < sentences.size(); b++)
      if (sentences[b]->watched || sentences[b]->shown)
        sentences[b]->states.assign(states + starts[b] * width, states + (starts[b] + lengths[b]) * width);
  }
};

enum Reading { forwards, backwards, reversed };  // reversed: words back to front, EOS still last

// The tokens as a cell meets them: at each step one of each sentence that goes on, the longest first.
inline std::vector<int64_t> in_order(const Tokens &tokens, Reading reading) {
  const int64_t B = static_cast<int64_t>(tokens.starts.size()), longest = B ? tokens.lengths[tokens.by_length[0]] : 0;
  std::vector<int64_t> places;
  places.reserve(tokens.total);
  for (int64_t k = 0; k < longest; k++)
    for (int64_t row = 0; row < B && tokens.lengths[tokens.by_length[row]] > k; row++) {
      const int64_t b = tokens.by_length[row], S = tokens.lengths[b];
      const int64_t at = reading == forwards || (reading == reversed && k == S - 1) ? k : reading == backwards ? S - 1 - k : S - 2 - k;
      places.push_back(tokens.starts[b] + at);
    }
  return places;
}

constexpr int64_t LINE = 16;  // floats that memory brings at once

// A cell over whole sentences. `shares` are those of the tokens in the order of `places`.
// -> outputs (total, H) `apart`; finals (sentences, K)
inline void run(const Cell &cell, const Tokens &tokens, const std::vector<int64_t> &places,
                const std::vector<const float *> &shares, float *outputs, int64_t apart, float *finals) {
  const int64_t B = static_cast<int64_t>(tokens.starts.size());
  Floats states(B * cell.K, 0.0f), gates(B * cell.G);
  for (int64_t k = 0, first = 0, M = B; first < tokens.total; k++, first += M) {
    while (tokens.lengths[tokens.by_length[M - 1]] <= k) M--;
    for (int64_t row = 0; row < M; row++) std::copy_n(shares[first + row], cell.G, &gates[row * cell.G]);
    for (size_t next = first + M; next < std::min<size_t>(first + 2 * M, shares.size()); next++)
      for (int64_t j = 0; j < cell.G; j += LINE) __builtin_prefetch(shares[next] + j, 0, 2);
    cell.step(M, gates.data(), states.data());
    for (int64_t row = 0; row < M; row++)
      std::memcpy(outputs + places[first + row] * apart, &states[row * cell.K], sizeof(float) * cell.H);
  }
  for (int64_t row = 0; row < B; row++)
    std::memcpy(finals + tokens.by_length[row] * cell.K, &states[row * cell.K], sizeof(float) * cell.K);
}

// The same of shares (total, G) that lie as the tokens do.
inline void run(const Cell &cell, const Tokens &tokens, const Floats &shares, Reading reading, float *outputs,
                int64_t apart, float *finals) {
  const std::vector<int64_t> places = in_order(tokens, reading);
  std::vector<const float *> found;
  found.reserve(places.size());
  for (int64_t place : places) found.push_back(&shares[place * cell.G]);
  run(cell, tokens, places, found, outputs, apart, finals);
}

// The same of words.
inline void run(const Cell &cell, const Tokens &tokens, const std::vector<int64_t> &ids, const Embedding &embedding,
                const WordShares &of_words, Reading reading, float *outputs, int64_t apart, float *finals) {
  static thread_local Floats fresh;
  const std::vector<int64_t> places = in_order(tokens, reading);
  std::vector<int64_t> met;
  met.reserve(places.size());
  for (int64_t place : places) met.push_back(ids[place]);
  run(cell, tokens, places, of_words.find(embedding, cell.W[0], met, fresh), outputs, apart, finals);
}

// What the source has become: states (total, D), and of each layer the last state.
struct Encoded {
  Tokens tokens;
  Floats states;
  int64_t D = 0;
  std::vector<Floats> finals;  // of each layer: (sentences, width)
  int64_t final_width = 0;
  explicit Encoded(const Sentences &sentences) : tokens(sentences) {}
};

struct Stack {
  std::vector<Cell> cells;
  int64_t residual_from = 0;
  Stack() = default;
  // `inputs` of the first layer; `context`, if any, is the size of what enters every layer above it.
  Stack(const Folder &folder, const string &name, const string &kind, int64_t residual, std::vector<int64_t> inputs,
        int64_t context = 0) {
    do {
      cells.emplace_back(folder, name + "." + std::to_string(cells.size()), kind, inputs);
      if (cells.back().H != cells[0].H) throw Unknown("layers of different sizes");
      inputs = context ? std::vector<int64_t>{cells[0].H, context} : std::vector<int64_t>{cells[0].H};
    } while (folder.has(name + "." + std::to_string(cells.size()) + ".U.weight"));
    residual_from = residual ? residual : static_cast<int64_t>(cells.size()) + 1;
    if (residual && (residual < 2 || residual > depth())) throw Unknown("a residual connection there");
  }
  int64_t H() const { return cells[0].H; }
  int64_t K() const { return cells[0].K; }
  int64_t depth() const { return static_cast<int64_t>(cells.size()); }
  int64_t width() const { return depth() * K(); }
};

struct RecurrentEncoder {
  string kind;
  Embedding embedding;
  Stack stack;
  std::vector<Cell> ahead, back;
  int64_t residual_from = 0, D = 0, final_width = 0, layers = 0;
  bool reverse = false;
  std::shared_ptr<WordShares> bottom, bottom_back;  // of the first layer

  RecurrentEncoder() = default;
  RecurrentEncoder(const Folder &folder, const string &cell)
      : RecurrentEncoder(folder, cell, "encoder", Embedding(folder, "encoder.embedding")) {}
  // Tensors under `name`.
  RecurrentEncoder(const Folder &folder, const string &cell, const string &name, const Embedding &words)
      : embedding(words) {
    kind = folder.word("model.encoder.kind", "unidirectional");
    const int64_t residual = folder.number("model.encoder.residual_from", folder.number("model.residual_from", 0));
    if (kind == "unidirectional") {
      reverse = folder.settings.count("model.encoder.reverse") && folder.yes("model.encoder.reverse");
      stack = Stack(folder, name + ".stack.layers", cell, residual, {embedding.size});
      D = stack.H(), final_width = stack.K(), layers = stack.depth();
    } else if (kind == "bidirectional") {
      do {
        both(folder, name + ".layers." + std::to_string(ahead.size()), cell, ahead.empty() ? embedding.size : D);
        if (ahead.back().H != ahead[0].H) throw Unknown("layers of different sizes");
        D = 2 * ahead[0].H;
      } while (folder.has(name + ".layers." + std::to_string(ahead.size()) + ".forwards.U.weight"));
      residual_from = residual ? residual : static_cast<int64_t>(ahead.size()) + 1;
      if (residual && (residual < 2 || residual > static_cast<int64_t>(ahead.size())))
        throw Unknown("a residual connection there");
      final_width = 2 * ahead[0].K, layers = static_cast<int64_t>(ahead.size());
    } else if (kind == "bottom-bidirectional") {
      both(folder, name + ".bottom", cell, embedding.size);
      if (residual == 1) throw Unknown("a residual connection there");
      stack = Stack(folder, name + ".stack.layers", cell, residual ? residual - 1 : 0, {2 * ahead[0].H});
      if (stack.K() != ahead[0].K) throw Unknown("layers of different sizes");
      D = stack.H(), final_width = stack.K(), layers = 1 + stack.depth();
    } else {
      throw Unknown("an encoder of kind " + kind);
    }
    if (embedding.count) folder.agree("model.embedding", embedding.size);
    if (!folder.settings.count("model.encoder.kind")) return;  // of a model that has no other
    folder.agree("model.encoder.hidden", (ahead.empty() ? stack.cells : ahead)[0].H, folder.number("model.hidden"));
    folder.agree("model.encoder.layers", layers, folder.number("model.layers", 1));
    if (!embedding.count) return;
    const Cell &first = ahead.empty() ? stack.cells[0] : ahead[0];
    bottom = std::make_shared<WordShares>(embedding.count, first.G);
    if (!back.empty()) bottom_back = std::make_shared<WordShares>(embedding.count, first.G);
  }
  void both(const Folder &folder, const string &name, const string &cell, int64_t input) {
    ahead.emplace_back(folder, name + ".forwards", cell, std::vector<int64_t>{input});
    back.emplace_back(folder, name + ".backwards", cell, std::vector<int64_t>{input});
    if (back.back().H != ahead.back().H) throw Unknown("directions of different sizes");
  }

  void operator()(const Sentences &sentences, Encoded &out) const {
    const Tokens &tokens = out.tokens;
    const int64_t B = static_cast<int64_t>(sentences.size());
    static thread_local Floats shares;  // so large that fresh pages would cost as much as filling them
    Floats x = bottom ? Floats() : tokens.embedded(sentences, embedding);
    const std::vector<int64_t> ids = tokens.ids(sentences);
    auto pass = [&](const Cell &cell, const WordShares *of_words, Reading reading, float *y, int64_t apart, float *last) {
      if (of_words) return run(cell, tokens, ids, embedding, *of_words, reading, y, apart, last);
      cell.W[0](tokens.total, x, shares);
      run(cell, tokens, shares, reading, y, apart, last);
    };
    for (size_t i = 0; i < ahead.size(); i++) {
      const int64_t H = ahead[i].H, K = ahead[i].K;
      Floats y(tokens.total * 2 * H), first(B * K), last(B * K), joined(B * 2 * K);
      pass(ahead[i], i ? nullptr : bottom.get(), forwards, y.data(), 2 * H, first.data());
      pass(back[i], i ? nullptr : bottom_back.get(), backwards, y.data() + H, 2 * H, last.data());
      for (int64_t b = 0; b < B; b++) {
        std::memcpy(&joined[b * 2 * K], &first[b * K], sizeof(float) * K);
        std::memcpy(&joined[b * 2 * K + K], &last[b * K], sizeof(float) * K);
      }
      if (kind == "bidirectional" && static_cast<int64_t>(i) + 1 >= residual_from)
        for (size_t j = 0; j < y.size(); j++) y[j] += x[j];
      x.swap(y);
      out.D = 2 * H;
      out.final_width = kind == "bidirectional" ? 2 * K : K;
      out.finals.push_back(kind == "bidirectional" ? joined : last);
    }
    for (int64_t layer = 0; kind != "bidirectional" && layer < stack.depth(); layer++) {
      const Cell &cell = stack.cells[layer];
      Floats y(tokens.total * cell.H), final(B * cell.K);
      pass(cell, ahead.empty() && !layer ? bottom.get() : nullptr, reverse ? reversed : forwards, y.data(), cell.H,
           final.data());
      if (layer + 1 >= stack.residual_from)
        for (size_t j = 0; j < y.size(); j++) y[j] += x[j];
      x.swap(y);
      out.D = cell.H, out.final_width = cell.K;
      out.finals.push_back(final);
    }
    out.states.swap(x);
    tokens.show(sentences, out.states.data(), out.D);
  }
};

// How a decoder starts from the last states: as they are, or through tanh(W [final_1; …; final_L]).
struct Bridge {
  Linear W;
  const Table *table = nullptr;
  Bridge() = default;
  Bridge(const Folder &folder, const RecurrentEncoder &encoder, const Stack &stack) : table(folder.table) {
    if (folder.choice("model.start", {"copy", "project"}) == "project")
      W = Linear(folder, "decoder.bridge.W", encoder.layers * encoder.final_width, stack.width(), true);
    else if (encoder.layers != stack.depth() || encoder.final_width != stack.K())
      throw Unknown("a start from an encoder of other sizes");
  }
  void operator()(const Encoded &encoded, int64_t B, int64_t width, float *states, int64_t apart) const {
    const int64_t L = static_cast<int64_t>(encoded.finals.size()), K = encoded.final_width;
    Floats joined(B * L * K);
    for (int64_t b = 0; b < B; b++)
      for (int64_t l = 0; l < L; l++)
        std::memcpy(&joined[(b * L + l) * K], &encoded.finals[l][b * K], sizeof(float) * K);
    if (!W) {
      for (int64_t b = 0; b < B; b++) std::memcpy(states + b * apart, &joined[b * width], sizeof(float) * width);
      return;
    }
    W(B, joined.data(), L * K, states, apart);
    for (int64_t b = 0; b < B; b++) table->tangent(states + b * apart, width);
  }
};

struct Maxout {
  std::vector<Linear> maps;
  Maxout() = default;
  Maxout(const Folder &folder, const string &name, const std::vector<int64_t> &inputs) {
    for (size_t i = 0; i < inputs.size(); i++)
      maps.emplace_back(folder, name + ".maps." + std::to_string(i), inputs[i], i ? maps[0].N : -1, i == 0);
    if (maps[0].N % 2) throw Unknown("a maxout without pairs");
  }
  int64_t size() const { return maps[0].N / 2; }
  // The same from sums of linear maps that are there.
  void operator()(int64_t M, const float *sums, Floats &out) const {
    out.resize(M * size());
    for (int64_t j = 0; j < M * size(); j++) out[j] = std::max(sums[2 * j], sums[2 * j + 1]);
  }
  // The larger of each pair of the sum of linear maps.
  void operator()(int64_t M, const std::vector<const float *> &inputs, const std::vector<int64_t> &apart,
                  Floats &out) const {
    static thread_local Floats sums;
    const int64_t N = maps[0].N;
    sums.resize(M * N);
    maps[0](M, inputs[0], apart[0], sums.data(), N);
    for (size_t i = 1; i < maps.size(); i++) maps[i].add(M, inputs[i], apart[i], sums.data(), N);
    (*this)(M, sums.data(), out);
  }
};

// What all recurrent decoders have.
struct RecurrentModel : Model {
  const Table *table;
  string cell_kind;
  RecurrentEncoder encoder;
  Embedding embedding;
  std::unique_ptr<WordShares> of_words;  // of the cell that reads the words said

  RecurrentModel(const Folder &folder, const string &cell, bool own_encoder = true)
      : table(folder.table), cell_kind(cell), embedding(folder, "decoder.embedding") {
    if (own_encoder) encoder = RecurrentEncoder(folder, cell);
    source_words = encoder.embedding.count;
    folder.agree("model.embedding", embedding.size);
  }
  int64_t source_size() const override { return encoder.D; }
  int64_t input_size() const override { return embedding.size; }
  void input(int64_t word, int64_t, float *x) const override { embedding.row(word, x); }
  void remember(const Attention &attention, const Sentences &sentences, const Encoded &encoded) const {
    for (size_t b = 0; b < sentences.size(); b++) {
      sentences[b]->memory.resize(1);
      attention.remember(encoded.tokens.lengths[b], &encoded.states[encoded.tokens.starts[b] * encoded.D],
                         sentences[b]->memory[0]);
    }
  }
};

// One step of a stack: gates (M, G) hold what enters the first layer. states (M, L K). -> top (M, H)
inline void climb(const Stack &stack, int64_t first_layer, int64_t M, Floats &x, float *states, int64_t apart,
                  const float *context, int64_t context_apart) {
  static thread_local Floats gates, own;
  for (int64_t layer = first_layer; layer < stack.depth(); layer++) {
    const Cell &cell = stack.cells[layer];
    gates.resize(M * cell.G);
    cell.W[0](M, x.data(), cell.W[0].K, gates.data(), cell.G);
    if (context) cell.W[1].add(M, context, context_apart, gates.data(), cell.G);
    own.resize(M * cell.K);
    for (int64_t i = 0; i < M; i++)
      std::memcpy(&own[i * cell.K], states + i * apart + layer * cell.K, sizeof(float) * cell.K);
    cell.step(M, gates.data(), own.data());
    Floats shown(M * cell.H);
    for (int64_t i = 0; i < M; i++) {
      std::memcpy(states + i * apart + layer * cell.K, &own[i * cell.K], sizeof(float) * cell.K);
      for (int64_t j = 0; j < cell.H; j++)
        shown[i * cell.H + j] = own[i * cell.K + j] + (layer + 1 >= stack.residual_from ? x[i * cell.H + j] : 0.0f);
    }
    x.swap(shown);
  }
}

// A cell whose gates are given; its state lies among others.
inline void step_apart(const Cell &cell, int64_t M, Floats &gates, float *states, int64_t apart, Floats &shown) {
  Floats own(M * cell.K);
  for (int64_t i = 0; i < M; i++) std::memcpy(&own[i * cell.K], states + i * apart, sizeof(float) * cell.K);
  cell.step(M, gates.data(), own.data());
  shown.resize(M * cell.H);
  for (int64_t i = 0; i < M; i++) {
    std::memcpy(states + i * apart, &own[i * cell.K], sizeof(float) * cell.K);
    std::memcpy(&shown[i * cell.H], &own[i * cell.K], sizeof(float) * cell.H);
  }
}

}  // namespace engine
