// models/copying.py: copying around any model that attends to the source.
//
// Axes: M rows, S source, D states, V words, W the words that a sentence may say (all, or those of a shortlist).
//
//   p_gen = sigmoid(w_h . h*_t + w_s . s_t + w_x . x_t + b)
//   P(w) = (p_gen P_vocab(w) + (1 - p_gen) sum_{j : x_j = w} a_tj) / (p_gen + (1 - p_gen) sum_j a_tj)
//
// The model within is built from the same folder, without the names of what is around it. It leaves what its last layer
// reads in `noted`. After the W words come those of this source alone (text/extended.py).
#pragma once
#include "transformer.h"

namespace engine {

struct Copying : Model {
  const Table *table;
  std::unique_ptr<Model> inner;
  bool pointing;
  int64_t layer, head, D, H;
  Floats w_h, w_s, w_x, same, mapping;
  float b;

  // `make` builds the model within from its folder.
  template <class Make>
  Copying(const Folder &folder, const Make &make) : table(folder.table) {
    pointing = folder.choice("model.copying.kind", {"pointer", "mapped"}) == "pointer";
    const Folder within = inside(folder);
    inner = make(within);
    for (const string &path : within.asked) folder.asked.insert(path);
    for (const auto &names : outside)
      if (within.used.count(names.second)) folder.used.insert(names.first);
    inner->notes = true;
    V = inner->V, source_words = inner->source_words, layers = inner->layers, heads = inner->heads;
    state_width = inner->state_width, cache_width = inner->cache_width, scored = inner->scored;
    gated = true, points = pointing;
    layer = place(folder, "model.copying.layer", layers), head = place(folder, "model.copying.head", heads);
    D = inner->source_size(), H = inner->output().K;
    w_h = folder.dense("decoder.w_h.weight", 1, D), w_s = folder.dense("decoder.w_s.weight", 1, H);
    w_x = folder.dense("decoder.w_x.weight", 1, inner->input_size());
    const Floats bias = folder.vector("decoder.w_x.bias", 1);
    b = bias.empty() ? 0.0f : bias[0];
    if (pointing) same = folder.vector("decoder.same", source_words);
    else mapping = folder.dense("decoder.M.weight", source_words, V);
  }

  Linear &output() override { return inner->output(); }
  void shorten() override { inner->shorten(); }
  int64_t row_width(const std::vector<Row> &rows) const override {
    int64_t most = 0;
    for (const Row &row : rows) most = std::max(most, row.sentence->own);
    return V + most;
  }

  // Which target word each position is, and how many words are of this source alone; encoders read those as UNK.
  void spell(Sentence &sentence) const override {
    if (!pointing) return;
    std::map<int64_t, int64_t> numbers;
    for (int64_t &id : sentence.ids) {
      if (id < 0) throw std::out_of_range("a token that the model does not know");
      int64_t word = id < source_words ? listed(id) : std::min(id - source_words, V);
      if (word == V) word += numbers.emplace(id, static_cast<int64_t>(numbers.size())).first->second;
      sentence.copies.push_back(word);
      if (id >= source_words) id = UNK;
    }
    sentence.own = static_cast<int64_t>(numbers.size());
  }

  void encode(const Sentences &sentences, float *states) const override {
    for (Sentence *sentence : sentences) sentence->shown = true;
    inner->encode(sentences, states);
    for (Sentence *sentence : sentences) {
      const int64_t S = sentence->S();
      sentence->gates.resize(S);
      for (int64_t s = 0; s < S; s++) sentence->gates[s] = dot(&sentence->states[s * D], w_h.data(), D);
      if (!sentence->watched) Floats().swap(sentence->states);
      if (!pointing) map(*sentence);
    }
  }

  void make_room(Sentence &sentence, int64_t live) const override {
    inner->make_room(sentence, live);
    sentence.p_gen.emplace_back(live);
  }

  void step(const std::vector<Row> &rows, const int64_t *previous, float *states, float *logits) const override {
    static thread_local std::vector<int64_t> known;
    static thread_local Floats said, input, looked;
    const int64_t M = static_cast<int64_t>(rows.size()), apart = row_width(rows), E = inner->input_size();
    known.assign(previous, previous + M);
    for (int64_t i = 0; i < M; i++) {
      if (known[i] >= V + rows[i].sentence->own) throw std::out_of_range("a token that the model does not know");
      if (known[i] >= V) known[i] = UNK;
    }
    said.resize(M * V), input.resize(E);
    inner->step(rows, known.data(), states, said.data());
    const Floats &read = noted();
    for (int64_t i = 0; i < M; i++) {
      const Row &row = rows[i];
      look(row, looked);
      inner->input(known[i], row.t, input.data());
      const float gate = dot(looked.data(), row.sentence->gates.data(), row.sentence->S()) +
                         dot(&read[i * H], w_s.data(), H) + dot(input.data(), w_x.data(), E) + b;
      row.sentence->p_gen[row.t][row.slot] = 1 / (1 + std::exp(-gate));
      mix(*row.sentence, gate, looked, &said[i * V], logits + i * apart);
    }
  }

 private:
  std::map<string, string> outside;  // the names of tensors here, and within

  Folder inside(const Folder &folder) {
    Folder within;
    within.table = folder.table, within.settings = folder.settings;
    for (const auto &tensor : folder.tensors) {
      string name = tensor.first;
      for (const string &around : {string("encoder.encoder."), string("decoder.inner.")})
        if (name.compare(0, around.size(), around) == 0) name = name.substr(0, name.find('.') + 1) + name.substr(around.size());
      const bool around = name != tensor.first || (!pointing && name.compare(0, 8, "encoder.") == 0);
      if (around) within.tensors[name] = tensor.second, outside[tensor.first] = name;
    }
    return within;
  }

  // Counted from 1 in the settings; -1: none is chosen.
  static int64_t place(const Folder &folder, const string &path, int64_t there) {
    const int64_t chosen = folder.number(path);
    if (chosen < 0 || chosen > there) throw Unknown(path + " = " + std::to_string(chosen));
    return chosen - 1;
  }

  int64_t listed(int64_t id) const {
    const float found = std::min(std::max(std::nearbyint(same[id]), 0.0f), static_cast<float>(V));
    return static_cast<int64_t>(found);
  }

  static float dot(const float *x, const float *y, int64_t count) {
    float sum = 0;
    for (int64_t i = 0; i < count; i++) sum += x[i] * y[i];
    return sum;
  }

  // softmax(M[x_j]) of each position, of all words.
  void map(Sentence &sentence) const {
    const std::vector<uint8_t> everything(V, 1);
    sentence.mapped.clear();
    for (int64_t id : sentence.ids) {
      if (id < 0 || id >= source_words) throw std::out_of_range("a token that the model does not know");
      const size_t first = sentence.mapped.size();
      sentence.mapped.insert(sentence.mapped.end(), mapping.begin() + id * V, mapping.begin() + (id + 1) * V);
      table->softmax(&sentence.mapped[first], everything.data(), V);
    }
  }

  // The weights that copy.
  void look(const Row &row, Floats &looked) const {
    const int64_t S = row.sentence->S();
    const float *weights = this->weights(row, row.t, row.slot, layer < 0 ? layers - 1 : layer);
    if (head >= 0) {
      looked.assign(weights + head * S, weights + (head + 1) * S);
      return;
    }
    looked.assign(S, 0.0f);
    for (int64_t n = 0; n < heads; n++) table->add(looked.data(), weights + n * S, S);
    for (float &weight : looked) weight /= static_cast<float>(heads);
  }

  static float log_sigmoid(float x) { return x > 0 ? -std::log1p(std::exp(-x)) : x - std::log1p(std::exp(x)); }
  static float log_add(float x, float y) {
    return x > y ? x + std::log1p(std::exp(y - x)) : y + std::log1p(std::exp(x - y));
  }

  // log P of each choice of a sentence, from the logits of those that are words.
  void mix(const Sentence &sentence, float gate, const Floats &looked, const float *said, float *out) const {
    static thread_local Floats copied;
    const int64_t W = choices(sentence) - sentence.own, S = sentence.S();
    float held = 0;
    for (float weight : looked) held += weight;
    const float p_gen = 1 / (1 + std::exp(-gate)), all = std::log(p_gen + (1 - p_gen) * held);
    const float saying = log_sigmoid(gate) - all - table->log_sum_exp(said, W), copying = log_sigmoid(-gate) - all;
    for (int64_t w = 0; w < W; w++) out[w] = said[w] + saying;
    std::fill(out + W, out + W + sentence.own, -INFINITY);
    copied.assign(W + sentence.own, 0.0f);
    if (pointing) {
      for (int64_t s = 0; s < S; s++) copied[sentence.place(sentence.copies[s], V)] += looked[s];
      for (int64_t s = 0; s < S; s++) {
        const int64_t choice = sentence.place(sentence.copies[s], V);
        float &mass = copied[choice], &score = out[choice];
        if (mass > 0) score = score == -INFINITY ? copying + std::log(mass) : log_add(score, copying + std::log(mass));
        mass = 0;  // once for each word
      }
      return;
    }
    for (int64_t w = 0; w < W; w++) {
      const int64_t word = sentence.words.empty() ? w : sentence.words[w];
      for (int64_t s = 0; s < S; s++) copied[w] += looked[s] * sentence.mapped[s * V + word];
    }
    for (int64_t w = 0; w < W; w++)
      if (copied[w] > 0) out[w] = log_add(out[w], copying + std::log(copied[w]));
  }
};

}  // namespace engine
