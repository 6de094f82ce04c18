// models/classifier.py and models/tagger.py: any encoder, and a decoder that says one label, or a tag for each word.
//
// Axes: M rows, S source, D states, A size of what is compared, R queries, V labels or tags.
#pragma once
#include "transformer.h"

namespace engine {

constexpr float NEVER = -1e4f;  // a logit whose exponential is zero, and which sums leave finite

// EOS is sure where an answer ends, and every control impossible where it does not. The controls come first.
inline void certain(float *logits, int64_t count, bool ends) {
  std::fill(logits, logits + (ends ? count : static_cast<int64_t>(CONTROLS)), NEVER);
  if (ends) logits[EOS] = 0;
}

// A recurrent encoder, or the Transformer's.
struct AnyEncoder {
  RecurrentEncoder recurrent;
  Side transformer;
  int64_t D = 0, words = 0;

  explicit AnyEncoder(const Folder &folder) {
    if (folder.word("model.encoder.kind") != "transformer") {
      recurrent = RecurrentEncoder(folder, folder.word("model.cell"));
      D = recurrent.D, words = recurrent.embedding.count;
      return;
    }
    D = folder.number("model.embedding");
    transformer = Side(folder, "encoder", "model.encoder", "encoder.entry.embed", D, false);
    if (transformer.C % 2) throw Unknown("heads of an odd size");
    folder.agree("model.encoder.layers", transformer.depth());
    for (const char *path : {"model.hidden", "model.layers", "model.cell"}) folder.ignore(path);  // of the others
    words = transformer.entry.embedding.count;
  }
  void operator()(const Sentences &sentences, Encoded &out) const {
    if (!transformer.D) return recurrent(sentences, out);
    out.D = D;
    transformer.read(sentences, out.tokens, out.states);
  }
  // The state of sentence b that has read the whole source: the last one, unless an encoder reads otherwise.
  void summary(const Encoded &encoded, size_t b, float *out) const {
    const float *first = &encoded.states[encoded.tokens.starts[b] * D];
    const float *last = first + (encoded.tokens.lengths[b] - 1) * D;
    std::copy_n(recurrent.reverse ? first : last, D, out);
    if (recurrent.kind == "bidirectional") std::copy_n(first + D / 2, D / 2, out + D / 2);
  }
};

// R queries look at the text; what they find says the label.
struct Classifier : Model {
  const Table *table;
  AnyEncoder encoder;
  std::vector<Attention> looks;
  Floats q;  // (R, A)
  Linear W, W_s;
  int64_t A;

  explicit Classifier(const Folder &folder) : table(folder.table), encoder(folder), A(encoder.D) {
    const string pooling = folder.choice("model.pooling", {"attention", "mean", "last"});
    const int64_t D = encoder.D, R = pooling == "attention" ? folder.number("model.queries") : pooling == "mean";
    if (pooling == "attention") {
      A = folder.number("model.size");
      W = Linear(folder, "decoder.W", D, A, true);
      q = folder.dense("decoder.q", R, A);
    } else {
      q.assign(R * A, 0.0f);
      folder.ignore("model.queries"), folder.ignore("model.size");
    }
    for (int64_t r = 0; r < R; r++) {
      looks.emplace_back(folder, "decoder.looks." + std::to_string(r), "model.attention", A, A, 8);
      looks.back().bring_others(D);
    }
    if (!R) folder.ignore("model.attention.");
    W_s = Linear(folder, "decoder.W_s", std::max<int64_t>(1, R) * D, -1, true);
    V = W_s.N, source_words = encoder.words, layers = R, heads = R ? looks[0].N : 0;
  }
  Linear &output() override { return W_s; }
  void encode(const Sentences &sentences, float *) const override {
    Encoded encoded(sentences);
    encoder(sentences, encoded);
    Floats compared;
    if (W) {
      W(encoded.tokens.total, encoded.states, compared);
      table->tangent(compared.data(), encoded.tokens.total * A);
    }
    const Floats &u = W ? compared : encoded.states;
    for (size_t b = 0; b < sentences.size(); b++) {
      const int64_t first = encoded.tokens.starts[b], S = encoded.tokens.lengths[b];
      sentences[b]->memory.resize(looks.size());
      for (size_t r = 0; r < looks.size(); r++)
        looks[r].remember(S, &u[first * A], sentences[b]->memory[r], &encoded.states[first * encoder.D]);
      sentences[b]->summary.resize(looks.empty() ? encoder.D : 0);
      if (looks.empty()) encoder.summary(encoded, b, sentences[b]->summary.data());
    }
  }
  void step(const std::vector<Row> &rows, const int64_t *, float *, float *logits) const override {
    static thread_local Floats found;
    const int64_t M = static_cast<int64_t>(rows.size()), D = encoder.D, apart = W_s.K;
    found.resize(M * apart);
    for (size_t r = 0; r < looks.size(); r++)
      looks[r].attend(*this, rows, static_cast<int64_t>(r), &q[r * A], 0, &found[r * D], apart);
    for (int64_t i = 0; i < M && looks.empty(); i++) std::copy_n(rows[i].sentence->summary.data(), D, &found[i * D]);
    say(rows, W_s, found.data(), apart, logits);
    for (int64_t i = 0; i < M; i++) certain(logits + i * V, choices(*rows[i].sentence), rows[i].t > 0);
  }
};

// Word by word, tag by tag; with a conditional random field, p(tag | tags before) of the whole tagging.
struct Tagger : Model {
  const Table *table;
  AnyEncoder encoder;
  Linear W;
  Floats from, into;  // A[y, z], from tag y to tag z, by row and by column; nothing without a field
  int64_t wide = 0;   // of a row of these: V and what fills whole vectors, -inf

  explicit Tagger(const Folder &folder)
      : table(folder.table), encoder(folder), W(folder, "decoder.W", encoder.D, -1, true) {
    V = W.N, source_words = encoder.words, layers = heads = 1, scored = false;
    if (V < CONTROLS) throw Unknown("so few tags");
    if (!folder.yes("model.crf")) return;
    const Floats A = folder.dense("decoder.A", V, V);
    wide = (V + 7) / 8 * 8;
    from.assign(V * wide, -INFINITY), into = from;
    for (int64_t i = 0; i < static_cast<int64_t>(A.size()); i++)
      from[i / V * wide + i % V] = into[i % V * wide + i / V] = A[i];
  }
  Linear &output() override { return W; }
  void shorten() override { throw Unknown("a shortlist of tags"); }

  // A sentence remembers the logits of each word's tags, but for what the tag before adds: P + beta.
  void encode(const Sentences &sentences, float *) const override {
    Encoded encoded(sentences);
    encoder(sentences, encoded);
    Floats P;
    W(encoded.tokens.total, encoded.states, P);
    for (size_t b = 0; b < sentences.size(); b++) {
      const int64_t S = encoded.tokens.lengths[b];
      float *own = &P[encoded.tokens.starts[b] * V];
      for (int64_t s = 0; s < S; s++) certain(own + s * V, V, s == S - 1);
      if (!from.empty() && sentences[b]->greedy) viterbi(S - 1, own, sentences[b]->best);
      if (!from.empty()) backward(S - 1, own);
      sentences[b]->memory.resize(1);
      sentences[b]->memory[0].values.assign(own, own + S * V);
    }
  }
  void step(const std::vector<Row> &rows, const int64_t *previous, float *, float *logits) const override {
    for (size_t i = 0; i < rows.size(); i++, logits += V) {
      const Row &row = rows[i];
      const int64_t words = row.sentence->S() - 1, at = std::min(row.t, words);
      std::copy_n(&row.sentence->memory[0].values[at * V], V, logits);
      if (!from.empty() && at < words) table->add(logits, &from[(row.t ? previous[i] : BOS) * wide], V);
      certain(logits, V, at == words);  // the sums above moved what is impossible
      weights(row, row.t, row.slot, 0)[at] = 1;
    }
  }

 private:
  // P (words, V) += beta: the log of the sum over all ends of the tagging, after each tag of each word.
  void backward(int64_t words, float *P) const {
    static thread_local Floats beta, sum;
    beta.assign(&into[EOS * wide], &into[EOS * wide] + V), sum.resize(wide);
    for (int64_t i = words - 1; i >= 0; i--) {
      if (i < words - 1)
        for (int64_t y = 0; y < V; y++) {
          std::copy_n(&from[y * wide], wide, sum.data());
          table->add(sum.data(), P + (i + 1) * V, V);
          beta[y] = table->log_sum_exp(sum.data(), wide);
        }
      table->add(P + i * V, beta.data(), V);
    }
  }
  // The likeliest tagging; P (words, V).
  void viterbi(int64_t words, const float *P, std::vector<int64_t> &best) const {
    static thread_local Floats score, next, sum;
    static thread_local std::vector<int64_t> came;
    if (!words) return;
    score.assign(&from[BOS * wide], &from[BOS * wide] + wide), next = score, sum.resize(wide), came.resize(words * V);
    auto top = [&](int64_t z, int64_t &y) {  // over tags y before z
      std::copy_n(&into[z * wide], wide, sum.data());
      table->add(sum.data(), score.data(), wide);
      const float highest = table->highest(sum.data(), wide);
      y = table->place(sum.data(), V, highest);
      return highest;
    };
    for (int64_t i = 0; i < words; i++) {
      for (int64_t z = 0; i && z < V; z++) next[z] = top(z, came[i * V + z]);
      if (i) score.swap(next);
      table->add(score.data(), P + i * V, V);
    }
    best.resize(words);
    top(EOS, best[words - 1]);
    for (int64_t i = words - 1; i > 0; i--) best[i - 1] = came[i * V + best[i]];
  }
};

}  // namespace engine
