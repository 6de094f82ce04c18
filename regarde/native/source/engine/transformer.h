// models/transformer.py: all words of a source at once, the target word by word with keys and values kept.
#pragma once
#include "recurrent_models.h"

namespace engine {

struct Norm {
  Floats gain, bias;
  const Table *table = nullptr;
  int64_t D = 0;
  Norm() = default;
  Norm(const Folder &folder, const string &name, int64_t D_)
      : gain(folder.vector(name + ".weight", D_)), bias(folder.vector(name + ".bias", D_)), table(folder.table), D(D_) {}
  void operator()(int64_t M, const float *x, float *y) const {
    for (int64_t i = 0; i < M; i++) table->norm(x + i * D, gain.data(), bias.data(), D, y + i * D);
  }
};

// sqrt(D) e(word) + p(position), or queries and keys turned by it.
struct Positions {
  enum Kind { sinusoidal, fairseq, learned, rotary } kind = sinusoidal;
  Embedding places;
  Positions() = default;
  // Of a model of size D with heads of size C; settings under `path`.
  Positions(const Folder &folder, const string &name, const string &path, int64_t D, int64_t C) {
    const std::vector<string> kinds = {"sinusoidal", "fairseq", "learned", "rotary"};
    const string chosen = folder.choice(path + ".positions", kinds);
    kind = static_cast<Kind>(std::find(kinds.begin(), kinds.end(), chosen) - kinds.begin());
    size = kind == rotary ? C : D;
    if (kind == learned) {
      places = Embedding(folder, name + ".where", D);
      folder.agree(path + ".longest", places.count);
    } else if (size % 2) {
      throw Unknown("positions of an odd size");
    } else {
      prepare();
    }
  }
  void place(float *x, int64_t position, int64_t D) const {
    if (kind == rotary) return;
    static thread_local Floats room;
    room.resize(D);
    if (kind == learned) places.row(std::min(position, places.count - 1), room.data());
    const float *p = kind == learned ? room.data() : waves(position, room.data());
    for (int64_t j = 0; j < D; j++) x[j] += p[j];
  }
  void turn(float *x, int64_t position, int64_t heads, int64_t C) const {
    if (kind != rotary) return;
    static thread_local Floats room;
    room.resize(C);
    const float *wave = waves(position, room.data());
    for (int64_t n = 0; n < heads; n++)
      for (int64_t j = 0; j < C; j += 2) {
        float &even = x[n * C + j], &odd = x[n * C + j + 1];
        const float s = wave[j], c = wave[j + 1], turned = even * c - odd * s;
        odd = even * s + odd * c;
        even = turned;
      }
  }

 private:
  static constexpr int64_t KEPT = 256;
  int64_t size = 0;
  Floats kept;
  // sin and cos of each pair's angle, side by side: those of early positions are kept.
  void prepare() {
    kept.resize(KEPT * size);
    for (int64_t position = 0; position < KEPT; position++) compute(position, &kept[position * size]);
  }
  void compute(int64_t position, float *wave) const {
    const int64_t whole = kind == fairseq ? std::max<int64_t>(2, size - 2) : size, before = kind == fairseq ? 2 : 0;
    for (int64_t j = 0; j < size; j += 2) {
      const float slow = std::pow(10000.0f, static_cast<float>(j) / static_cast<float>(whole));
      const float angle = static_cast<float>(position + before) / slow;
      wave[j] = std::sin(angle), wave[j + 1] = std::cos(angle);
    }
  }
  const float *waves(int64_t position, float *room) const {
    if (position < KEPT) return &kept[position * size];
    compute(position, room);
    return room;
  }
};

struct Entry {
  Embedding embedding;
  Positions positions;
  Norm norm;
  float scale = 1;
  Entry() = default;
  Entry(const Folder &folder, const string &name, const string &path, const string &words, int64_t D, int64_t C)
      : embedding(words.empty() ? Embedding(D) : Embedding(folder, words, D)), positions(folder, name, path, D, C) {
    if (folder.yes(path + ".scaled", true)) scale = static_cast<float>(std::sqrt(static_cast<double>(D)));
    if (folder.yes(path + ".embedding_norm", false)) norm = Norm(folder, name + ".norm", D);
  }
  void operator()(int64_t id, int64_t position, float *x) const {
    embedding.row(id, x);
    place(position, x);
  }
  // The same for a vector that is there already.
  void place(int64_t position, float *x) const {
    const int64_t D = embedding.size;
    for (int64_t j = 0; j < D; j++) x[j] *= scale;
    positions.place(x, position, D);
    if (norm.D) norm(1, x, x);
  }
};

struct Block {
  Linear W_qkv, W_o, W_1, W_2;
  Norm attention_norm, cross_norm, feed_norm;
  Attention cross;
  bool pre = false;
  void (*activate)(float *, int64_t) = nullptr;
  const Table *table = nullptr;

  // Settings under `path`; `crossing` is where it looks at a source too.
  Block(const Folder &folder, const string &name, const string &path, int64_t D, int64_t heads, bool crossing)
      : table(folder.table) {
    const bool biased = folder.yes(path + ".self_attention_bias", false);
    W_qkv = Linear(folder, name + ".attention.W_qkv", D, 3 * D, biased);
    W_o = Linear(folder, name + ".attention.W_o", D, D, biased);
    W_1 = Linear(folder, name + ".feed_forward.W_1", D, -1, true);
    W_2 = Linear(folder, name + ".feed_forward.W_2", W_1.N, D, true);
    const string own = path + ".decoder_feed_forward";
    folder.agree(crossing && folder.settings.count(own) ? own : path + ".feed_forward", W_1.N);
    const std::vector<string> activations = {"relu", "swish", "gelu", "gelu-tanh"};
    const string chosen = folder.word(path + ".activation", "relu");
    const auto found = std::find(activations.begin(), activations.end(), chosen);
    if (found == activations.end()) throw Unknown(path + ".activation = " + chosen);
    activate = table->activate[found - activations.begin()];
    attention_norm = Norm(folder, name + ".around_attention.norm", D);
    feed_norm = Norm(folder, name + ".around_feed_forward.norm", D);
    pre = folder.choice(path + ".norm", {"pre", "post"}) == "pre";
    if (!crossing) return;
    cross_norm = Norm(folder, name + ".around_cross.norm", D);
    cross = Attention(folder, name + ".cross", path + ".attention", D, D, heads);
  }
  int64_t D() const { return W_o.N; }

  // The way around a sub-layer, of which `f` makes y out of what it sees.
  template <class F> void around(const Norm &norm, int64_t M, Floats &x, Floats &seen, Floats &y, F f) const {
    if (pre) {
      seen.resize(M * D());
      norm(M, x.data(), seen.data());
    }
    y.resize(M * D());
    f(pre ? seen.data() : x.data(), y.data());
    table->add(x.data(), y.data(), M * D());
    if (!pre) norm(M, x.data(), x.data());
  }
  void feed_forward(int64_t M, Floats &x, Floats &seen, Floats &y) const {
    static thread_local Floats inner;
    around(feed_norm, M, x, seen, y, [&](const float *in, float *out) {
      inner.resize(M * W_1.N);
      W_1(M, in, D(), inner.data(), W_1.N);
      activate(inner.data(), M * W_1.N);
      W_2(M, inner.data(), W_1.N, out, D());
    });
  }
};

// The encoder or the decoder: words and their places, blocks, and the norm above them where norms come first.
struct Side {
  const Table *table = nullptr;
  int64_t D = 0, N = 0, C = 0;  // model size, heads of self-attention, their size
  Entry entry;
  std::vector<Block> blocks;
  Norm norm;
  int64_t end = -1;  // what the last word of a source is read as; -1: as it is

  Side() = default;
  // Tensors under `name`, settings under `path`, the table of `words`; none where sentences come with their vectors.
  Side(const Folder &folder, const string &name, const string &path, const string &words, int64_t D_, bool crossing)
      : table(folder.table), D(D_), N(folder.number(path + ".heads")) {
    if (crossing) N = folder.number(path + ".decoder_heads", N);
    C = N > 0 ? D / N : 0;
    if (D < 1 || N < 1 || D % N) throw Unknown("a Transformer of such sizes");
    entry = Entry(folder, name + ".entry", path, words, D, C);
    for (string block = name + ".blocks.0"; folder.has(block + ".attention.W_o.weight");
         block = name + ".blocks." + std::to_string(blocks.size()))
      blocks.emplace_back(folder, block, path, D, N, crossing);
    if (blocks.empty()) throw Unknown("a Transformer without layers");
    if (blocks[0].pre) norm = Norm(folder, name + ".norm", D);
  }
  int64_t depth() const { return static_cast<int64_t>(blocks.size()); }
  // What is kept of a word: keys and values of each layer.
  int64_t cache_width() const { return depth() * 2 * D; }

  // All words of the sentences at once, each looking at all of its own: (total, D)
  void read(const Sentences &sentences, const Tokens &tokens, Floats &x) const {
    const int64_t total = tokens.total;
    Floats seen, y, qkv(total * 3 * D), found(total * D), scores;
    x.resize(total * D);
    for (size_t b = 0; b < sentences.size(); b++)
      for (int64_t s = 0; s < tokens.lengths[b]; s++) {
        const Sentence &one = *sentences[b];
        float *at = &x[(tokens.starts[b] + s) * D];
        if (one.vectors.empty()) {
          entry(end >= 0 && s + 1 == tokens.lengths[b] ? end : one.ids[s], s, at);
        } else {
          std::copy_n(&one.vectors[s * D], D, at);
          entry.place(s, at);
        }
      }
    for (const Block &block : blocks) {
      block.around(block.attention_norm, total, x, seen, y, [&](const float *in, float *out) {
        block.W_qkv(total, in, D, qkv.data(), 3 * D);
        std::vector<const float *> kept;
        for (size_t b = 0; b < sentences.size(); b++) {
          const int64_t S = tokens.lengths[b];
          float *first = &qkv[tokens.starts[b] * 3 * D];
          kept.clear();
          for (int64_t s = 0; s < S; s++) {
            turn(first + s * 3 * D, s);
            kept.push_back(first + s * 3 * D + D);
          }
          for (int64_t s = 0; s < S; s++)
            look(first + s * 3 * D, kept, scores, &found[(tokens.starts[b] + s) * D], nullptr);
        }
        block.W_o(total, found.data(), D, out, D);
      });
      block.feed_forward(total, x, seen, y);
    }
    leave(total, x);
    tokens.show(sentences, x.data(), D);
  }

  // The rows' last words at their places: (M, D)
  void enter(const std::vector<Row> &rows, const int64_t *previous, Floats &x) const {
    x.resize(rows.size() * D);
    for (size_t i = 0; i < rows.size(); i++) entry(previous[i], rows[i].t, &x[i * D]);
  }
  // Self-attention of one layer: each row's last word looks at itself and at those before, whose keys and values are
  // kept. The weights are those of `model` where it looks back.
  void recall(const Model &model, const std::vector<Row> &rows, int64_t layer, Floats &x, Floats &seen, Floats &y) const {
    static thread_local Floats qkv, found, scores;
    static thread_local std::vector<const float *> kept;
    const int64_t M = static_cast<int64_t>(rows.size()), width = cache_width();
    const Block &block = blocks[layer];
    qkv.resize(M * 3 * D), found.resize(M * D);
    block.around(block.attention_norm, M, x, seen, y, [&](const float *in, float *out) {
      block.W_qkv(M, in, D, qkv.data(), 3 * D);
      for (int64_t i = 0; i < M; i++) {
        const Row &row = rows[i];
        float *q = &qkv[i * 3 * D];
        turn(q, row.t);
        float *own = row.sentence->cache[row.t].data() + row.slot * width + layer * 2 * D;
        std::memcpy(own, q + D, sizeof(float) * 2 * D);
        kept.clear();
        for (int64_t t = 0; t < row.t; t++)
          kept.push_back(row.sentence->cache[t].data() + row.path[t] * width + layer * 2 * D);
        kept.push_back(own);
        look(q, kept, scores, &found[i * D], model.looks_back ? model.weights(row, row.t, row.slot, layer) : nullptr);
      }
      block.W_o(M, found.data(), D, out, D);
    });
  }
  void leave(int64_t M, Floats &x) const {
    if (norm.D) norm(M, x.data(), x.data());
  }

 private:
  // Query and key, which lie side by side.
  void turn(float *qk, int64_t position) const { entry.positions.turn(qk, position, 2 * N, C); }
  // One word against words whose keys and values may lie anywhere; weights (N, words), or null.
  void look(const float *q, const std::vector<const float *> &kept, Floats &scores, float *out, float *weights) const {
    scores.resize(kept.size());
    table->look(q, kept.data(), static_cast<int64_t>(kept.size()), N, C, D, 1 / std::sqrt(static_cast<float>(C)),
                scores.data(), out, weights);
  }
};

struct Transformer : Model {
  Linear vocabulary;  // first, because it is the largest: its tensor and what is made of it are in memory together
  Side source, target;

  static const string &tying(const Folder &folder) {
    return folder.choice("model.tying", {"none", "two-way", "three-way"});
  }
  static string output_name(const Folder &folder) {
    return tying(folder) == "none" ? "decoder.vocabulary" : "decoder.entry.embed.table";
  }

  // A matrix that is embeddings and output is kept once, as the output has it.
  explicit Transformer(const Folder &folder)
      : vocabulary(folder, output_name(folder), folder.number("model.size"), -1),
        source(folder, "encoder", "model", tying(folder) == "three-way" ? "" : "encoder.entry.embed",
               folder.number("model.size"), false),
        target(folder, "decoder", "model", tying(folder) == "none" ? "decoder.entry.embed" : "",
               folder.number("model.size"), true) {
    if (tying(folder) != "none") target.entry.embedding = Embedding(vocabulary);
    if (tying(folder) == "three-way") source.entry.embedding = target.entry.embedding;
    if (vocabulary.N != target.entry.embedding.count) throw Unknown("weights for so many words");
    source.end = folder.number("model.source_end", -1);
    if (source.end >= source.entry.embedding.count) throw Unknown("such an end of a source");
    folder.agree("model.layers", source.depth());
    const int64_t own_layers = folder.number("model.decoder_layers", 0);
    if (own_layers != target.depth() && (own_layers || target.depth() != source.depth()))
      throw Unknown("weights of other sizes than model.decoder_layers");
    if (folder.yes("model.output_bias")) vocabulary.bias = folder.vector("decoder.vocabulary.bias", vocabulary.N);
    layers = target.depth(), heads = target.blocks[0].cross.N, cache_width = target.cache_width();
    V = vocabulary.N, source_words = source.entry.embedding.count;
  }

  Linear &output() override { return vocabulary; }
  int64_t source_size() const override { return source.D; }
  int64_t input_size() const override { return target.D; }
  void input(int64_t word, int64_t t, float *x) const override { target.entry(word, t, x); }

  void encode(const Sentences &sentences, float *) const override {
    const Tokens tokens(sentences);
    Floats x;
    source.read(sentences, tokens, x);
    for (size_t b = 0; b < sentences.size(); b++) {
      sentences[b]->memory.resize(layers);
      for (int64_t layer = 0; layer < layers; layer++)
        target.blocks[layer].cross.remember(tokens.lengths[b], &x[tokens.starts[b] * target.D],
                                            sentences[b]->memory[layer]);
    }
  }

  void step(const std::vector<Row> &rows, const int64_t *previous, float *, float *logits) const override {
    const int64_t M = static_cast<int64_t>(rows.size()), D = target.D;
    static thread_local Floats x, seen, y;
    target.enter(rows, previous, x);
    for (int64_t layer = 0; layer < layers; layer++) {
      const Block &block = target.blocks[layer];
      target.recall(*this, rows, layer, x, seen, y);
      block.around(block.cross_norm, M, x, seen, y, [&](const float *in, float *out) {
        block.cross.attend(*this, rows, layer, in, D, out, D);
      });
      block.feed_forward(M, x, seen, y);
    }
    target.leave(M, x);
    say(rows, vocabulary, x.data(), D, logits);
  }
};

}  // namespace engine
