// models/language.py: decoders without a source, whose attention is over the words they have said.
//
// Axes: M rows, H hidden, t words before, w of them looked back at, V vocabulary.
#pragma once
#include "transformer.h"

namespace engine {

// The last layer, or the table of embeddings where it is tied.
inline Linear language_output(const Folder &folder, const string &words, int64_t size, int64_t count, bool biased) {
  const bool tied = folder.yes("model.tied");
  return Linear(folder, tied ? words + ".table" : "decoder.output", size, count, biased && !tied);
}

// A stack of cells.
struct RecurrentLanguage : RecurrentModel {
  Stack stack;
  Linear W;
  explicit RecurrentLanguage(const Folder &folder, int64_t parts = 1)
      : RecurrentModel(folder, folder.word("model.cell"), false),
        stack(folder, "decoder.stack.layers", cell_kind, 0, {embedding.size}) {
    if (stack.H() % parts) throw Unknown("so many parts");
    W = language_output(folder, "decoder.embedding", stack.H() / parts, embedding.count, true);
    of_words = std::make_unique<WordShares>(embedding.count, stack.cells[0].G);
    folder.agree("model.hidden", stack.H()), folder.agree("model.layers", stack.depth());
    state_width = stack.width(), V = W.N, looks_back = true;
    source_words = folder.number("vocabulary.source");  // none of which it is ever given
  }
  Linear &output() override { return W; }
  void encode(const Sentences &sentences, float *states) const override {
    std::fill_n(states, static_cast<int64_t>(sentences.size()) * state_width, 0.0f);
  }
  void step(const std::vector<Row> &rows, const int64_t *previous, float *states, float *logits) const override {
    Floats x;
    advance(static_cast<int64_t>(rows.size()), previous, states, x);
    say(rows, W, x.data(), stack.H(), logits);
  }
  // One word on.  -> top (M, H)
  void advance(int64_t M, const int64_t *previous, float *states, Floats &x) const {
    const Cell &bottom = stack.cells[0];
    Floats gates(M * bottom.G);
    (*of_words)(embedding, bottom.W[0], M, previous, gates.data());
    step_apart(bottom, M, gates, states, state_width, x);
    climb(stack, 1, M, x, states, state_width, nullptr, 0);
  }
};

// Daniluk et al. 2017: it looks at its own last `window` outputs, which are cut into parts.
struct AttentiveLanguage : RecurrentLanguage {
  int64_t parts, window, C;  // C: the size of a part
  Score score;
  Linear W_r, W_x;
  explicit AttentiveLanguage(const Folder &folder)
      : RecurrentLanguage(folder, std::max<int64_t>(1, folder.number("model.parts"))), parts(folder.number("model.parts")),
        window(folder.number("model.window")), C(stack.H() / std::max<int64_t>(1, parts)),
        score(folder, "decoder.attention.score", "model.score", C, C), W_r(folder, "decoder.W_r", C, C),
        W_x(folder, "decoder.W_x", C, C) {
    if (parts < 1 || parts > 3 || window < 1) throw Unknown("so many parts, or such a window");
    if (score.kind == Score::location) throw Unknown("a place among words that move on");
    layers = heads = 1, cache_width = score.width + C;  // of each word: its key, its value
  }
  void step(const std::vector<Row> &rows, const int64_t *previous, float *states, float *logits) const override {
    const int64_t M = static_cast<int64_t>(rows.size()), H = stack.H(), K = score.width;
    Floats x, found(M * C), said(M * C), asked;
    advance(M, previous, states, x);
    if (score.of_query) score.of_query(M, x.data(), H, (asked.resize(M * score.of_query.N), asked.data()), score.of_query.N);
    for (int64_t i = 0; i < M; i++) {
      const float *q = score.of_query ? &asked[i * score.of_query.N] : &x[i * H];
      float *own = rows[i].sentence->cache[rows[i].t].data() + rows[i].slot * cache_width;
      score.keys(1, &x[i * H], C, own);
      std::copy_n(&x[i * H] + (parts > 1 ? C : 0), C, own + K);
      look(rows[i], q, &found[i * C]);
    }
    W_r(M, found.data(), C, said.data(), C);
    W_x.add(M, x.data() + (parts - 1) * C, H, said.data(), C);
    table->tangent(said.data(), M * C);
    say(rows, W, said.data(), C, logits);
  }

 private:
  // A query against the words in the window; the word that asks has an energy too, and no weight.
  void look(const Row &row, const float *q, float *found) const {
    static thread_local Floats keys, values;
    static thread_local std::vector<uint8_t> before;
    const int64_t w = std::min(row.t, window), first = row.t - w, K = score.width;
    keys.resize((w + 1) * K), values.resize((w + 1) * C), before.assign(w + 1, 1), before[w] = 0;
    for (int64_t s = 0; s <= w; s++) {
      const int64_t step = first + s, slot = step == row.t ? row.slot : row.path[step];
      const float *word = row.sentence->cache[step].data() + slot * cache_width;
      std::copy_n(word, K, &keys[s * K]);
      std::copy_n(word + K, C, &values[s * C]);
    }
    float *a = weights(row, row.t, row.slot, 0) + first;
    score(q, keys.data(), w + 1, a);
    if (float *shown = energies(row, 0)) {
      std::fill_n(shown, first, -INFINITY);
      std::copy_n(a, w + 1, shown + first);
    }
    table->softmax(a, before.data(), w + 1);
    table->bring(a, values.data(), C, w, C, found);
    if (row.sentence->watched) row.sentence->norms[row.slot] = length(found, C);
  }
};

// Radford et al. 2018: blocks of causal self-attention and feed-forward.
struct TransformerLanguage : Model {
  Linear W;  // first, as in Transformer
  Side side;
  explicit TransformerLanguage(const Folder &folder)
      : W(language_output(folder, "decoder.entry.embed", folder.number("model.size"), -1, false)),
        side(folder, "decoder", "model", folder.yes("model.tied") ? "" : "decoder.entry.embed",
             folder.number("model.size"), false) {
    if (folder.yes("model.tied")) side.entry.embedding = Embedding(W);
    if (W.N != side.entry.embedding.count) throw Unknown("weights for so many words");
    if (side.D % 2) throw Unknown("an odd size");
    if (folder.yes("model.output_bias")) W.bias = folder.vector("decoder.output.bias", W.N);
    folder.agree("model.layers", side.depth());
    layers = side.depth(), heads = side.N, cache_width = side.cache_width(), V = W.N;
    looks_back = true, scored = false;
    source_words = folder.number("vocabulary.source");  // none of which it is ever given
  }
  Linear &output() override { return W; }
  void encode(const Sentences &, float *) const override {}
  void step(const std::vector<Row> &rows, const int64_t *previous, float *, float *logits) const override {
    const int64_t M = static_cast<int64_t>(rows.size());
    static thread_local Floats x, seen, y;
    side.enter(rows, previous, x);
    for (int64_t layer = 0; layer < layers; layer++) {
      side.recall(*this, rows, layer, x, seen, y);
      side.blocks[layer].feed_forward(M, x, seen, y);
    }
    side.leave(M, x);
    say(rows, W, x.data(), side.D, logits);
  }
};

}  // namespace engine
