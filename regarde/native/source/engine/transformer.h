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
  enum Kind { sinusoidal, learned, rotary } kind = sinusoidal;
  Embedding places;
  Positions() = default;
  Positions(const Folder &folder, const string &name, int64_t D) {
    const string chosen = folder.choice("model.positions", {"sinusoidal", "learned", "rotary"});
    kind = chosen == "learned" ? learned : chosen == "rotary" ? rotary : sinusoidal;
    if (kind == learned) places = Embedding(folder, name + ".where", D);
  }
  // sin and cos of each pair's angle, side by side: those of early positions are kept.
  void prepare(int64_t n) {
    size = n;
    kept.resize(kind == learned ? 0 : KEPT * n);
    for (int64_t position = 0; position < static_cast<int64_t>(kept.size()) / n; position++)
      compute(position, &kept[position * n]);
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
  void compute(int64_t position, float *wave) const {
    for (int64_t j = 0; j < size; j += 2) {
      const float slow = std::pow(10000.0f, static_cast<float>(j) / static_cast<float>(size));
      const float angle = static_cast<float>(position) / slow;
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
  Entry() = default;
  Entry(const Folder &folder, const string &name, const string &words)
      : embedding(folder, words), positions(folder, name, embedding.size) {}
  void operator()(int64_t id, int64_t position, float *x) const {
    const int64_t D = embedding.size;
    const float scale = static_cast<float>(std::sqrt(static_cast<double>(D)));
    embedding.row(id, x);
    for (int64_t j = 0; j < D; j++) x[j] *= scale;
    positions.place(x, position, D);
  }
};

struct Block {
  Linear W_qkv, W_o, W_1, W_2;
  Norm attention_norm, cross_norm, feed_norm;
  Attention cross;
  bool pre = false;
  const Table *table = nullptr;

  Block(const Folder &folder, const string &name, bool decoder, int64_t D, int64_t heads) : table(folder.table) {
    W_qkv = Linear(folder, name + ".attention.W_qkv", D, 3 * D), W_o = Linear(folder, name + ".attention.W_o", D, D);
    W_1 = Linear(folder, name + ".feed_forward.W_1", D, -1, true);
    W_2 = Linear(folder, name + ".feed_forward.W_2", W_1.N, D, true);
    attention_norm = Norm(folder, name + ".around_attention.norm", D);
    feed_norm = Norm(folder, name + ".around_feed_forward.norm", D);
    pre = folder.choice("model.norm", {"pre", "post"}) == "pre";
    if (!decoder) return;
    cross_norm = Norm(folder, name + ".around_cross.norm", D);
    cross = Attention(folder, name + ".cross", "model.attention", D, D, heads);
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
      table->rectify(inner.data(), M * W_1.N);
      W_2(M, inner.data(), W_1.N, out, D());
    });
  }
};

struct Transformer : Model {
  const Table *table;
  int64_t D, N, C;  // model size, heads of self-attention, their size
  Entry source, target;
  std::vector<Block> reading, writing;
  Norm read_norm, written_norm;
  Linear vocabulary;
  bool pre;

  // One table of embeddings for both sides, which is saved once.
  static bool shared(const Folder &folder) {
    return folder.choice("model.tying", {"none", "two-way", "three-way"}) == "three-way";
  }

  explicit Transformer(const Folder &folder)
      : table(folder.table), D(folder.number("model.size")), N(folder.number("model.heads")), C(N > 0 ? D / N : 0),
        source(folder, "encoder.entry", shared(folder) ? "decoder.entry.embed" : "encoder.entry.embed"),
        target(folder, "decoder.entry", "decoder.entry.embed"),
        pre(folder.word("model.norm") == "pre") {
    if (D < 1 || N < 1 || D % N || source.embedding.size != D || target.embedding.size != D)
      throw Unknown("a Transformer of such sizes");
    if (shared(folder)) source.embedding = target.embedding;
    if (source.positions.kind == Positions::sinusoidal && D % 2) throw Unknown("positions of an odd size");
    if (source.positions.kind == Positions::rotary && C % 2) throw Unknown("positions of an odd size");
    for (Positions *side : {&source.positions, &target.positions})
      side->prepare(side->kind == Positions::rotary ? C : D);
    for (int i = 0; folder.has("encoder.blocks." + std::to_string(i) + ".attention.W_o.weight"); i++)
      reading.emplace_back(folder, "encoder.blocks." + std::to_string(i), false, D, N);
    for (int i = 0; folder.has("decoder.blocks." + std::to_string(i) + ".attention.W_o.weight"); i++)
      writing.emplace_back(folder, "decoder.blocks." + std::to_string(i), true, D, N);
    if (writing.empty()) throw Unknown("a Transformer without layers");
    folder.agree("model.layers", static_cast<int64_t>(reading.size()));
    const int64_t own_layers = folder.number("model.decoder_layers", 0);
    if (static_cast<size_t>(own_layers) != writing.size() && (own_layers || writing.size() != reading.size()))
      throw Unknown("weights of other sizes than model.decoder_layers");
    folder.agree("model.feed_forward", writing[0].W_1.N);
    if (source.positions.kind == Positions::learned) folder.agree("model.longest", source.positions.places.count);
    if (pre) read_norm = Norm(folder, "encoder.norm", D), written_norm = Norm(folder, "decoder.norm", D);
    const bool own = folder.word("model.tying") == "none";
    vocabulary = Linear(folder, own ? "decoder.vocabulary" : "decoder.entry.embed.table", D, target.embedding.count);
    layers = static_cast<int64_t>(writing.size()), heads = writing[0].cross.N;
    cache_width = layers * 2 * D, V = vocabulary.N, source_words = source.embedding.count;
  }

  // One word against words whose keys and values may lie anywhere.
  void look(const float *q, const std::vector<const float *> &kept, Floats &scores, float *out) const {
    scores.resize(kept.size());
    table->look(q, kept.data(), static_cast<int64_t>(kept.size()), N, C, D, 1 / std::sqrt(static_cast<float>(C)),
                scores.data(), out);
  }

  Linear &output() override { return vocabulary; }

  void encode(const Sentences &sentences, float *) const override {
    const Tokens tokens(sentences);
    const int64_t total = tokens.total;
    Floats x(total * D), seen, y, qkv(total * 3 * D), found(total * D), scores;
    for (size_t b = 0; b < sentences.size(); b++)
      for (int64_t s = 0; s < tokens.lengths[b]; s++) source(sentences[b]->ids[s], s, &x[(tokens.starts[b] + s) * D]);
    for (const Block &block : reading) {
      block.around(block.attention_norm, total, x, seen, y, [&](const float *in, float *out) {
        block.W_qkv(total, in, D, qkv.data(), 3 * D);
        std::vector<const float *> kept;
        for (size_t b = 0; b < sentences.size(); b++) {
          const int64_t S = tokens.lengths[b];
          float *first = &qkv[tokens.starts[b] * 3 * D];
          kept.clear();
          for (int64_t s = 0; s < S; s++) {
            source.positions.turn(first + s * 3 * D, s, N, C);
            source.positions.turn(first + s * 3 * D + D, s, N, C);
            kept.push_back(first + s * 3 * D + D);
          }
          for (int64_t s = 0; s < S; s++) look(first + s * 3 * D, kept, scores, &found[(tokens.starts[b] + s) * D]);
        }
        block.W_o(total, found.data(), D, out, D);
      });
      block.feed_forward(total, x, seen, y);
    }
    if (pre) read_norm(total, x.data(), x.data());
    tokens.show(sentences, x.data(), D);
    for (size_t b = 0; b < sentences.size(); b++) {
      sentences[b]->memory.resize(writing.size());
      for (size_t layer = 0; layer < writing.size(); layer++)
        writing[layer].cross.remember(tokens.lengths[b], &x[tokens.starts[b] * D], sentences[b]->memory[layer]);
    }
  }

  void step(const std::vector<Row> &rows, const int64_t *previous, float *, float *logits) const override {
    const int64_t M = static_cast<int64_t>(rows.size());
    static thread_local Floats x, seen, y, qkv, found, scores;
    static thread_local std::vector<const float *> kept;
    x.resize(M * D), qkv.resize(M * 3 * D), found.resize(M * D);
    for (int64_t i = 0; i < M; i++) target(previous[i], rows[i].t, &x[i * D]);
    for (int64_t layer = 0; layer < layers; layer++) {
      const Block &block = writing[layer];
      block.around(block.attention_norm, M, x, seen, y, [&](const float *in, float *out) {
        block.W_qkv(M, in, D, qkv.data(), 3 * D);
        for (int64_t i = 0; i < M; i++) {
          const Row &row = rows[i];
          float *q = &qkv[i * 3 * D];
          target.positions.turn(q, row.t, N, C);
          target.positions.turn(q + D, row.t, N, C);
          float *own = row.sentence->cache[row.t].data() + row.slot * cache_width + layer * 2 * D;
          std::memcpy(own, q + D, sizeof(float) * 2 * D);
          kept.clear();
          for (int64_t t = 0; t < row.t; t++)
            kept.push_back(row.sentence->cache[t].data() + row.path[t] * cache_width + layer * 2 * D);
          kept.push_back(own);
          look(q, kept, scores, &found[i * D]);
        }
        block.W_o(M, found.data(), D, out, D);
      });
      block.around(block.cross_norm, M, x, seen, y, [&](const float *in, float *out) {
        block.cross.attend(*this, rows, layer, in, D, out, D);
      });
      block.feed_forward(M, x, seen, y);
    }
    if (pre) written_norm(M, x.data(), x.data());
    say(rows, vocabulary, x.data(), D, logits);
  }
};

}  // namespace engine
