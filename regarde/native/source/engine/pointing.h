// models/pointer.py and models/span.py: the answer is positions of the source.
//
// Axes: M rows, S source (EOS included), E inputs, H hidden, D states.
//
// The vocabulary is the controls. Word V + j is position j, one of the words that a sentence has of its own, and pointing at
// the EOS of the source says EOS. What is impossible is -inf.
#pragma once
#include "reading.h"

namespace engine {

// d_i = cell(x_{i-1}, d_{i-1}), and the weights of an attention to the source, asked by d_i, are the answer.
struct Pointer : Model {
  const Table *table;
  AnyEncoder encoder;
  Stack stack;
  Bridge bridge;
  Attention attention;
  Floats begin;  // x_0
  Linear none;   // there is no last layer
  int64_t E;
  bool once = false, spans = false;

  explicit Pointer(const Folder &folder) : Pointer(folder, -1, "model.attention") {
    once = folder.yes("model.once");
    bridge = Bridge(folder, encoder.recurrent, stack);
    attention = Attention(folder, "decoder.attention", "model.attention", stack.H(), encoder.D, 1);
    folder.agree("model.hidden", stack.H()), folder.agree("model.layers", stack.depth());
    finish();
  }
  Linear &output() override { return none; }
  void shorten() override { throw Unknown("a shortlist of positions"); }
  int64_t row_width(const std::vector<Row> &rows) const override {
    int64_t most = 0;
    for (const Row &row : rows) most = std::max(most, row.sentence->own);
    return V + most;
  }
  void spell(Sentence &sentence) const override {
    if (encoder.spelling) Spelling::gather(sentence);
    sentence.own = std::max<int64_t>(0, sentence.S() - 1);
  }
  void encode(const Sentences &sentences, float *states) const override {
    Encoded encoded(sentences);
    encoder(sentences, encoded);
    remember(sentences, encoded.tokens, encoded.states, encoded.D);
    bridge(encoded, static_cast<int64_t>(sentences.size()), stack.width(), states, state_width);
  }
  void step(const std::vector<Row> &rows, const int64_t *previous, float *states, float *logits) const override {
    static thread_local Floats context;
    static thread_local std::vector<std::vector<uint8_t>> open;
    const int64_t M = static_cast<int64_t>(rows.size()), apart = row_width(rows);
    Floats x(M * E);
    open.resize(M);
    for (int64_t i = 0; i < M; i++) {
      const int64_t before = rows[i].t ? previous[i] : static_cast<int64_t>(BOS);
      rows[i].sentence->cache[rows[i].t][rows[i].slot] = static_cast<float>(before);  // exact below 2^24
      input(*rows[i].sentence, before, &x[i * E]);
      open[i] = allowed(rows[i], before);
    }
    climb(stack, 0, M, x, states, state_width, nullptr, 0);
    context.resize(M * attention.width);
    attention.attend(*this, rows, 0, x.data(), stack.H(), context.data(), attention.width, &open);
    for (int64_t i = 0; i < M; i++) say_weights(rows[i], open[i], logits + i * apart);
  }

 protected:
  // The parts that both models have; inputs of size `size`, or of the encoder's embeddings.
  Pointer(const Folder &folder, int64_t size, const char *)
      : table(folder.table), encoder(folder, "encoder.encoder"),
        E(size > 0 ? size : encoder.spelling ? encoder.spelling->size : encoder.recurrent.embedding.size) {
    if (encoder.transformer.D) throw Unknown("pointing with such an encoder");
    stack = Stack(folder, "decoder.stack.layers", folder.word("model.cell"), 0, {E});
    begin = folder.vector("decoder.begin", E);
    V = CONTROLS, source_words = encoder.words, reads = true;
  }
  void finish() {
    if (attention.several) throw Unknown("pointing with several heads");
    state_width = stack.width(), layers = 1, heads = 1, cache_width = 1;
  }
  void remember(const Sentences &sentences, const Tokens &tokens, const Floats &states, int64_t D) const {
    for (size_t b = 0; b < sentences.size(); b++) {
      sentences[b]->memory.resize(1);
      attention.remember(tokens.lengths[b], &states[tokens.starts[b] * D], sentences[b]->memory[0]);
    }
  }
  // What the decoder reads where it pointed.
  virtual void input(const Sentence &sentence, int64_t word, float *x) const {
    const int64_t place = position(sentence, word);
    if (word == BOS) std::copy_n(begin.data(), E, x);
    else if (encoder.spelling) std::copy_n(&sentence.vectors[place * E], E, x);
    else encoder.recurrent.embedding.row(sentence.ids[place], x);
  }
  static int64_t position(const Sentence &sentence, int64_t word) {
    const int64_t last = sentence.S() - 1;
    return word == EOS ? last : std::min(std::max<int64_t>(0, word - CONTROLS), last);
  }
  // Where it may point now, EOS included.
  virtual std::vector<uint8_t> allowed(const Row &row, int64_t) const {
    std::vector<uint8_t> open = row.sentence->memory[0].mask;
    for (int64_t step = 0; once && step <= row.t; step++) {
      const int64_t slot = step == row.t ? row.slot : row.path[step];
      const int64_t word = static_cast<int64_t>(row.sentence->cache[step][slot]);
      if (word >= CONTROLS) open[position(*row.sentence, word)] = 0;
    }
    return open;
  }
  virtual void say_weights(const Row &row, const std::vector<uint8_t> &open, float *logits) const {
    const int64_t S = row.sentence->S();
    const float *a = weights(row, row.t, row.slot, 0);
    auto log_of = [&](int64_t s) { return open[s] ? std::log(std::max(a[s], std::numeric_limits<float>::min())) : -INFINITY; };
    std::fill(logits, logits + V, -INFINITY);
    logits[EOS] = log_of(S - 1);
    for (int64_t s = 0; s + 1 < S; s++) logits[V + s] = log_of(s);
  }
};

// The words of the passage look at the question, a second layer reads both, and two pointers mark the answer.
struct Span : Pointer {
  Attention look;
  Cell ahead, back;
  Linear W;

  explicit Span(const Folder &folder) : Pointer(folder, 2 * folder.number("model.hidden"), "") {
    const int64_t D = encoder.D;
    const string cell = folder.word("model.cell");
    look = Attention(folder, "encoder.attention", "model.question", D, D, 1);
    if (look.several || look.kind != Attention::global) throw Unknown("such a look at the question");
    folder.ignore("model.question.dropout");
    ahead = Cell(folder, "encoder.again.forwards", cell, {2 * D}), back = Cell(folder, "encoder.again.backwards", cell, {2 * D});
    if (ahead.H != back.H || 2 * ahead.H != E || stack.depth() != 1) throw Unknown("layers of different sizes");
    W = Linear(folder, "decoder.bridge.W", 2 * ahead.K, stack.width(), true);
    attention = Attention(folder, "decoder.attention", "model.attention", stack.H(), 2 * ahead.H, 1);
    spans = true;
    finish();
  }
  void encode(const Sentences &sentences, float *states) const override {
    Encoded encoded(sentences);
    encoder(sentences, encoded);
    const Tokens &tokens = encoded.tokens;
    const int64_t B = static_cast<int64_t>(sentences.size()), D = encoder.D, H = ahead.H, K = ahead.K;
    Floats joined(tokens.total * 2 * D), shares, g(tokens.total * 2 * H), last(B * K), first(B * K), finals(B * 2 * K);
    for (int64_t b = 0; b < B; b++)
      ask(*sentences[b], &encoded.states[tokens.starts[b] * D], tokens.lengths[b], &joined[tokens.starts[b] * 2 * D]);
    ahead.W[0](tokens.total, joined, shares);
    run(ahead, tokens, shares, forwards, g.data(), 2 * H, last.data());
    back.W[0](tokens.total, joined, shares);
    run(back, tokens, shares, backwards, g.data() + H, 2 * H, first.data());
    tokens.show(sentences, g.data(), 2 * H);
    remember(sentences, tokens, g, 2 * H);
    for (int64_t b = 0; b < B; b++) {
      std::copy_n(&last[b * K], K, &finals[b * 2 * K]);
      std::copy_n(&first[b * K], K, &finals[b * 2 * K + K]);
    }
    W(B, finals.data(), 2 * K, states, state_width);
    for (int64_t b = 0; b < B; b++) table->tangent(states + b * state_width, stack.width());
  }

 private:
  // The words before the first EOS; the first, if there are none.
  static int64_t passage(const Sentence &sentence) {
    return std::find(sentence.ids.begin(), sentence.ids.end(), static_cast<int64_t>(EOS)) - sentence.ids.begin();
  }
  // [h_j ; c_j] of each word, c_j what it found in the question.  (S, D) -> (S, 2 D)
  void ask(const Sentence &sentence, const float *h, int64_t S, float *joined) const {
    const int64_t D = encoder.D, P = std::max<int64_t>(1, passage(sentence));
    const int64_t first = P + 1 < S ? P + 1 : S - 1, count = S - first;
    const Score &score = look.score;
    Floats keys(count * score.width), asked(score.of_query ? S * score.of_query.N : 0), a(count);
    std::vector<uint8_t> open(count, 1);
    if (!look.attend_eos && count > 1) open[count - 1] = 0;
    score.keys(count, h + first * D, D, keys.data());
    if (score.of_query) score.of_query(S, h, D, asked.data(), score.of_query.N);
    for (int64_t s = 0; s < S; s++, joined += 2 * D) {
      score(score.of_query ? &asked[s * score.of_query.N] : h + s * D, keys.data(), count, a.data());
      if (look.sparse) sparsemax(a.data(), open.data(), count);
      else table->softmax(a.data(), open.data(), count);
      std::copy_n(h + s * D, D, joined);
      table->bring(a.data(), h + first * D, D, count, D, joined + D);
    }
  }
  void input(const Sentence &sentence, int64_t word, float *x) const override {
    const float *from = word == BOS ? begin.data() : &sentence.memory[0].values[position(sentence, word) * E];
    std::copy_n(from, E, x);
  }
  // A span begins anywhere in the passage, and ends where it began or later.
  std::vector<uint8_t> allowed(const Row &row, int64_t before) const override {
    std::vector<uint8_t> open = row.sentence->memory[0].mask;
    const int64_t P = std::max<int64_t>(1, passage(*row.sentence));
    const int64_t begun = std::min(std::max<int64_t>(0, before - CONTROLS), P - 1);
    for (int64_t s = 0; s < static_cast<int64_t>(open.size()); s++) open[s] = open[s] && s >= begun && s < P;
    return open;
  }
  void say_weights(const Row &row, const std::vector<uint8_t> &open, float *logits) const override {
    Pointer::say_weights(row, open, logits);
    if (row.t < 2) {
      logits[EOS] = -INFINITY;
      return;
    }
    std::fill(logits, logits + choices(*row.sentence), -INFINITY);
    logits[EOS] = 0;
  }
};

}  // namespace engine
