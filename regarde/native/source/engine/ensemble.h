// models/ensemble.py: several models as one, at each step the mean of their probabilities.
#pragma once
#include <algorithm>

#include "parts.h"

namespace engine {

// Each member has its own sentence within the ensemble's, its own part of the state, and its own room at every step.
struct Ensemble : Model {
  const Table *table;
  std::vector<Model *> members;
  std::vector<int64_t> waits;  // by how many steps a member's attention waits for that of the latest

  // Row t of member m's attention explains word t - offsets[m].
  Ensemble(const Table *table, const std::vector<Model *> &members, const std::vector<int64_t> &offsets)
      : table(table), members(members) {
    if (members.empty() || members.size() != offsets.size()) throw Unknown("an ensemble of no models");
    V = members[0]->V, source_words = members[0]->source_words, looks_back = members[0]->looks_back;
    points = members[0]->points;
    const int64_t latest = *std::max_element(offsets.begin(), offsets.end());
    for (size_t m = 0; m < members.size(); m++) {
      if (members[m]->V != V || members[m]->source_words != source_words)
        throw Unknown("an ensemble of models with other words");
      if (members[m]->looks_back != members[0]->looks_back) throw Unknown("an ensemble of models with other sources");
      if (members[m]->points != points) throw Unknown("an ensemble of models of which some copy");
      gated = gated || members[m]->gated;
      state_width += members[m]->state_width;
      waits.push_back(latest - offsets[m]);
      if (members[m]->layers) layers = heads = 1;
    }
  }

  Linear &output() override { throw Unknown("the one last layer of several models"); }
  void shorten() override {
    for (Model *member : members) member->shorten();
  }

  void spell(Sentence &sentence) const override { members[0]->spell(sentence); }  // all read the same tokens
  void encode(const std::vector<Sentence *> &sentences, float *states) const override {
    const size_t B = sentences.size();
    for (Sentence *sentence : sentences) sentence->members.resize(members.size());
    int64_t from = 0;
    for (size_t m = 0; m < members.size(); m++) {
      std::vector<Sentence *> own;
      for (Sentence *sentence : sentences) {
        Sentence &member = sentence->members[m];
        member.ids = sentence->ids, member.words = sentence->words;
        member.letters = sentence->letters, member.ends = sentence->ends;
        member.copies = sentence->copies, member.own = sentence->own;
        own.push_back(&sentence->members[m]);
      }
      const int64_t width = members[m]->state_width;
      Floats first(B * width);
      members[m]->encode(own, first.data());
      for (size_t b = 0; b < B; b++)
        std::copy_n(first.data() + b * width, width, states + b * state_width + from);
      from += width;
    }
  }

  void make_room(Sentence &sentence, int64_t live) const override {
    Model::make_room(sentence, live);
    if (gated) sentence.p_gen.emplace_back(live);
    for (size_t m = 0; m < members.size(); m++) members[m]->make_room(sentence.members[m], live);
  }

  int64_t row_width(const std::vector<Row> &rows) const override {
    int64_t most = 0;
    for (const Row &row : rows) most = std::max(most, row.sentence->own);
    return V + most;
  }

  void step(const std::vector<Row> &rows, const int64_t *previous, float *states, float *logits) const override {
    const int64_t M = static_cast<int64_t>(rows.size()), apart = row_width(rows);
    std::vector<Floats> said(members.size(), Floats(M * apart));
    std::vector<Row> own_rows(rows);
    Floats own;
    int64_t from = 0;
    for (size_t m = 0; m < members.size(); m++) {
      const int64_t width = members[m]->state_width;
      own.resize(M * width);
      for (int64_t i = 0; i < M; i++) {
        own_rows[i].sentence = &rows[i].sentence->members[m];
        std::copy_n(states + i * state_width + from, width, own.data() + i * width);
      }
      members[m]->step(own_rows, previous, own.data(), said[m].data());
      for (int64_t i = 0; i < M; i++)
        std::copy_n(own.data() + i * width, width, states + i * state_width + from);
      from += width;
    }
    for (int64_t i = 0; i < M; i++) {
      mean(i * apart, choices(*rows[i].sentence), said, logits + i * apart);
      if (layers) look(rows[i]);
      if (gated) gate(rows[i]);
    }
  }

 private:
  // The mean over the members that copy.
  void gate(const Row &row) const {
    float sum = 0, count = 0;
    for (size_t m = 0; m < members.size(); m++)
      if (members[m]->gated) sum += row.sentence->members[m].p_gen[row.t][row.slot], count++;
    row.sentence->p_gen[row.t][row.slot] = sum / count;
  }

  // The logarithm of the members' mean probabilities, whose logits begin at `first`.
  void mean(int64_t first, int64_t words, const std::vector<Floats> &said, float *logits) const {
    static thread_local Floats p;
    static thread_local std::vector<uint8_t> everything;
    const float count = static_cast<float>(members.size()), tiny = 1e-30f;
    everything.assign(words, 1);
    std::fill(logits, logits + words, 0.0f);
    for (const Floats &own : said) {
      p.assign(own.begin() + first, own.begin() + first + words);
      table->softmax(p.data(), everything.data(), words);
      for (int64_t word = 0; word < words; word++) logits[word] += p[word] / count;
    }
    Floats all;
    for (int64_t word = 0; word < words; word++) {
      if (logits[word] > tiny || logits[word] != logits[word]) {
        logits[word] = std::log(logits[word]);
        continue;
      }
      if (all.empty())  // so unlikely that no float holds its probability: in logarithms throughout
        for (const Floats &own : said) all.push_back(table->log_sum_exp(&own[first], words));
      double total = 0, top = -INFINITY;
      for (size_t m = 0; m < said.size(); m++) top = std::max(top, static_cast<double>(said[m][first + word] - all[m]));
      if (top == -INFINITY) {  // a word of this source that nobody looks at
        logits[word] = -INFINITY;
        continue;
      }
      for (size_t m = 0; m < said.size(); m++) total += std::exp(said[m][first + word] - all[m] - top);
      logits[word] = static_cast<float>(top + std::log(total / count));
    }
  }

  // The mean over the members with attention, each reduced to one head, of those that speak yet.
  void look(const Row &row) const {
    const int64_t S = columns(*row.sentence, row.t);
    float *mean = weights(row, row.t, row.slot, 0), speaking = 0;
    std::fill(mean, mean + S, 0.0f);
    for (size_t m = 0; m < members.size(); m++) {
      const int64_t step = row.t - waits[m], LN = members[m]->layers * members[m]->heads;
      if (!LN || step < 0) continue;
      const int64_t slot = step == row.t ? row.slot : row.path[step];
      const float *from = row.sentence->members[m].weights[step].data() + slot * LN * S;
      for (int64_t ln = 0; ln < LN; ln++)
        for (int64_t s = 0; s < S; s++) mean[s] += from[ln * S + s] / static_cast<float>(LN);
      speaking++;
    }
    for (int64_t s = 0; s < S; s++) mean[s] /= speaking;
  }
};

}  // namespace engine
