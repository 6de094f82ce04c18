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

// models/spelled.py: a word as its embedding and the last states of two cells over its characters.
struct Spelling {
  Embedding words, characters;
  Cell ahead, back;
  WordShares of_ahead, of_back;
  int64_t size;

  Spelling(const Folder &folder, const string &name)
      : words(folder, name), characters(folder, name + ".characters", -1, ".weight"),
        ahead(folder, name + ".reader.forwards", folder.word("model.cell"), {characters.size}),
        back(folder, name + ".reader.backwards", folder.word("model.cell"), {characters.size}),
        of_ahead(characters.count, ahead.G), of_back(characters.count, back.G), size(words.size + 2 * ahead.H) {
    if (back.H != ahead.H) throw Unknown("directions of different sizes");
    folder.agree("model.embedding", words.size), folder.agree("model.characters", characters.size);
    folder.agree("model.spelling", ahead.H);
  }
  // `BOS word character …` for each word; EOS is a word without characters.
  static void gather(Sentence &sentence) {
    std::vector<int64_t> found;
    bool begins = false;
    for (int64_t id : sentence.ids)
      if (id == BOS) {
        begins = true;
      } else if (begins || id == EOS) {
        found.push_back(id), sentence.ends.push_back(static_cast<int64_t>(sentence.letters.size()));
        begins = false;
      } else if (!found.empty()) {
        sentence.letters.push_back(id), sentence.ends.back()++;
      }
    sentence.ids.swap(found);
  }
  // The vectors of all words; equal ones are read once.
  void operator()(const Sentences &sentences) const {
    std::map<std::vector<int64_t>, int64_t> numbers;
    std::vector<int64_t> own, ids, lengths;
    for (const Sentence *sentence : sentences)
      for (int64_t s = 0; s < sentence->S(); s++) {
        const auto first = sentence->letters.begin();
        std::vector<int64_t> word(first + (s ? sentence->ends[s - 1] : 0), first + sentence->ends[s]);
        const auto place = numbers.emplace(word, static_cast<int64_t>(numbers.size()));
        own.push_back(place.first->second);
        if (!place.second) continue;
        ids.insert(ids.end(), word.begin(), word.end()), lengths.push_back(static_cast<int64_t>(word.size()));
      }
    const Tokens tokens(lengths);
    const int64_t H = ahead.H, K = ahead.K, count = static_cast<int64_t>(lengths.size());
    Floats passed(tokens.total * H), last(count * K), first(count * K);
    run(ahead, tokens, ids, characters, of_ahead, forwards, passed.data(), H, last.data());
    run(back, tokens, ids, characters, of_back, backwards, passed.data(), H, first.data());
    auto number = own.begin();
    for (Sentence *sentence : sentences) {
      sentence->vectors.resize(sentence->S() * size);
      float *x = sentence->vectors.data();
      for (int64_t id : sentence->ids) {
        words.row(id, x);
        std::copy_n(&last[*number * K], H, x + words.size), std::copy_n(&first[*number * K], H, x + words.size + H);
        x += size, number++;
      }
    }
  }
};

// A recurrent encoder, or the Transformer's.
struct AnyEncoder {
  RecurrentEncoder recurrent;
  Side transformer;
  std::unique_ptr<Spelling> spelling;  // null where words are not spelled
  int64_t D = 0, words = 0;

  // Tensors under `plain`, or, where words are spelled, under encoder.encoder.
  explicit AnyEncoder(const Folder &folder, const string &plain = "encoder") {
    const bool recurs = folder.word("model.encoder.kind") != "transformer";
    const bool spells = folder.number("model.spelling", 0) > 0;
    const string name = spells ? "encoder.encoder" : plain, table = name + (recurs ? ".embedding" : ".entry.embed");
    if (spells) spelling = std::make_unique<Spelling>(folder, table);
    else folder.ignore("model.characters");
    if (recurs) {
      const Embedding given = spells ? Embedding(spelling->size) : Embedding(folder, table);
      recurrent = RecurrentEncoder(folder, folder.word("model.cell"), name, given);
      D = recurrent.D, words = (spells ? spelling->words : given).count;
      return;
    }
    D = spells ? spelling->size : folder.number("model.embedding");
    transformer = Side(folder, name, "model.encoder", spells ? "" : table, D, false);
    if (transformer.C % 2) throw Unknown("heads of an odd size");
    folder.agree("model.encoder.layers", transformer.depth());
    for (const char *path : {"model.hidden", "model.layers", "model.cell"}) folder.ignore(path);  // of the others
    words = (spells ? spelling->words : transformer.entry.embedding).count;
  }
  void operator()(const Sentences &sentences, Encoded &out) const {
    if (spelling) (*spelling)(sentences);
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
  bool several;  // any number of labels, in their order
  bool steady;   // one label, and what is looked at depends on the text alone

  explicit Classifier(const Folder &folder) : table(folder.table), encoder(folder), A(encoder.D), several(folder.yes("model.several")) {
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
    steady = !several;
    for (const Attention &look : looks) steady = steady && look.kind == Attention::global;
    V = W_s.N, source_words = encoder.words, layers = R, heads = R ? looks[0].N : 0, reads = true;
    if (V < CONTROLS) throw Unknown("so few labels");
  }
  Linear &output() override { return W_s; }
  void shorten() override {
    if (several) throw Unknown("a shortlist of several labels");
    Model::shorten();
  }
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
  void step(const std::vector<Row> &rows, const int64_t *previous, float *, float *logits) const override {
    static thread_local Floats found;
    const int64_t M = static_cast<int64_t>(rows.size()), D = encoder.D, apart = W_s.K;
    if (steady && std::all_of(rows.begin(), rows.end(), [](const Row &row) { return row.t && !row.sentence->watched; })) {
      for (int64_t i = 0; i < M; i++, logits += V) {  // only EOS is left, and what was looked at is known
        std::copy_n(weights(rows[i], 0, rows[i].path[0], 0), layers * heads * rows[i].sentence->S(),
                    weights(rows[i], rows[i].t, rows[i].slot, 0));
        certain(logits, choices(*rows[i].sentence), true);
      }
      return;
    }
    found.resize(M * apart);
    for (size_t r = 0; r < looks.size(); r++)
      looks[r].attend(*this, rows, static_cast<int64_t>(r), &q[r * A], 0, &found[r * D], apart);
    for (int64_t i = 0; i < M && looks.empty(); i++) std::copy_n(rows[i].sentence->summary.data(), D, &found[i * D]);
    say(rows, W_s, found.data(), apart, logits);
    for (int64_t i = 0; i < M; i++) {
      if (!several) certain(logits + i * V, choices(*rows[i].sentence), rows[i].t > 0);
      else in_order(rows[i], rows[i].t ? previous[i] : static_cast<int64_t>(BOS), logits + i * V);
    }
  }

 private:
  // Log-probabilities of the next label after the last one, in place; the first step knows the likeliest set.
  void in_order(const Row &row, int64_t last, float *z) const {
    if (!row.t && row.sentence->greedy) {
      row.sentence->whole = true, row.sentence->best.clear();
      for (int64_t k = CONTROLS; k < V; k++)
        if (z[k] > 0) row.sentence->best.push_back(k);
    }
    const int64_t first = std::max<int64_t>(CONTROLS, last + 1);
    std::fill(z, z + first, NEVER);
    float left_out = 0;  // the sum of log(1 - p_k) so far
    for (int64_t k = first; k < V; k++) {
      const float softplus = std::max(z[k], 0.0f) + std::log1p(std::exp(-std::abs(z[k])));  // -log(1 - p_k)
      z[k] += left_out - softplus;
      left_out -= softplus;
    }
    z[EOS] = left_out;
  }
};

// Word by word, tag by tag; with a conditional random field, p(tag | tags before) of the whole tagging.
struct Tagger : Model {
  const Table *table;
  AnyEncoder encoder;
  Linear W;
  Floats from, into;  // A[y, z], from tag y to tag z, by row and by column; nothing without a field
  int64_t wide = 0;   // of a row of these: V and what fills whole vectors, -inf
  Floats ratios, tops;  // e^(A[y, z] - top of y), by row, and these tops

  explicit Tagger(const Folder &folder)
      : table(folder.table), encoder(folder), W(folder, "decoder.W", encoder.D, -1, true) {
    V = W.N, source_words = encoder.words, layers = heads = 1, scored = false, reads = true;
    if (V < CONTROLS) throw Unknown("so few tags");
    if (!folder.yes("model.crf")) return;
    const Floats A = folder.dense("decoder.A", V, V);
    wide = (V + 7) / 8 * 8;
    from.assign(V * wide, -INFINITY), into = from;
    for (int64_t i = 0; i < static_cast<int64_t>(A.size()); i++)
      from[i / V * wide + i % V] = into[i % V * wide + i / V] = A[i];
    ratios.assign(V * wide, 0.0f);
    for (int64_t y = 0; y < V; y++) {
      tops.push_back(table->highest(&from[y * wide], V));
      for (int64_t z = 0; z < V && std::isfinite(tops[y]); z++) ratios[y * wide + z] = std::exp(from[y * wide + z] - tops[y]);
    }
  }
  Linear &output() override { return W; }
  void shorten() override { throw Unknown("a shortlist of tags"); }
  void spell(Sentence &sentence) const override {
    if (encoder.spelling) Spelling::gather(sentence);
  }

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
      if (!from.empty() && sentences[b]->greedy) sentences[b]->whole = true, viterbi(S - 1, own, sentences[b]->best);
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
  bool answer(const Sentence &sentence, std::vector<int64_t> &tags, Floats &scores, Floats &looked) const override {
    static thread_local Floats x;
    const int64_t S = sentence.S();
    tags.assign(S, EOS), scores.assign(S, 0.0f), looked.assign(S * S, 0.0f);
    for (int64_t t = 0; t < S; t++) looked[t * S + t] = 1;
    for (int64_t t = 0; t + 1 < S; t++) {
      const float *own = &sentence.memory[0].values[t * V];
      x.assign(own, own + V);
      if (!from.empty()) {
        table->add(x.data(), &from[(t ? tags[t - 1] : static_cast<int64_t>(BOS)) * wide], V);
        certain(x.data(), V, false);
      }
      const float all = table->log_sum_exp(x.data(), V);
      const float top = from.empty() ? table->highest(x.data(), V) : x[sentence.best[t]];
      if (!(top > NEVER && all < INFINITY)) return false;  // numbers that are none: the search says so
      tags[t] = from.empty() ? table->place(x.data(), V, top) : sentence.best[t];
      scores[t] = top - all;
    }
    return true;
  }

 private:
  // P (words, V) += beta: the log of the sum over all ends of the tagging, after each tag of each word.
  void backward(int64_t words, float *P) const {
    static thread_local Floats beta, sum, p;
    static thread_local std::vector<uint8_t> everything;
    beta.assign(&into[EOS * wide], &into[EOS * wide] + V), sum.resize(wide), p.assign(wide, 0.0f), everything.assign(V, 1);
    for (int64_t i = words - 1; i >= 0; i--) {
      if (i < words - 1) {  // log sum_z e^(A[y, z] + x_z) = top + log sum_z e^x + log sum_z ratio softmax(x)_z
        const float *x = P + (i + 1) * V, all = table->log_sum_exp(x, V);
        std::copy_n(x, V, p.data());
        table->softmax(p.data(), everything.data(), V);
        table->dots(p.data(), ratios.data(), wide, V, wide, 1.0f, beta.data());
        for (int64_t y = 0; y < V; y++) {
          if (beta[y] > TINY) {
            beta[y] = tops[y] + all + std::log(beta[y]);
            continue;
          }
          std::copy_n(&from[y * wide], wide, sum.data());  // so unlikely that a float loses digits: in logarithms
          table->add(sum.data(), x, V);
          beta[y] = table->log_sum_exp(sum.data(), wide);
        }
      }
      table->add(P + i * V, beta.data(), V);
    }
  }
  static constexpr float TINY = 1e-20f;
  // The likeliest tagging; P (words, V).
  void viterbi(int64_t words, const float *P, std::vector<int64_t> &best) const {
    static thread_local Floats score, next, sum;
    static thread_local std::vector<int32_t> came;
    if (!words) return;
    score.assign(&from[BOS * wide], &from[BOS * wide] + wide), next = score, sum.resize(wide), came.assign(words * wide, 0);
    auto top = [&](int64_t z, int64_t &y) {  // over tags y before z
      std::copy_n(&into[z * wide], wide, sum.data());
      table->add(sum.data(), score.data(), wide);
      const float highest = table->highest(sum.data(), wide);
      y = table->place(sum.data(), V, highest);
      return highest;
    };
    for (int64_t i = 0; i < words; i++) {
      if (i) {
        std::fill(next.begin(), next.end(), -INFINITY);
        for (int64_t y = 0; y < V; y++) follow(static_cast<int32_t>(y), score[y], next.data(), &came[i * wide]);
        score.swap(next);
      }
      table->add(score.data(), P + i * V, V);
    }
    best.resize(words);
    top(EOS, best[words - 1]);
    for (int64_t i = words - 1; i > 0; i--) best[i - 1] = came[i * wide + best[i]];
  }
  // From tag y, whose tagging so far has this score, to all tags z.
  void follow(int32_t y, float score, float *__restrict next, int32_t *__restrict came) const {
    const float *A = &from[y * wide];
    for (int64_t z = 0; z < wide; z++) {
      const float sum = score + A[z];
      const bool better = sum > next[z];
      next[z] = better ? sum : next[z];
      came[z] = better ? y : came[z];
    }
  }
};

}  // namespace engine
