// What a search did with a sentence, step by step, for who asked to see it: engines/records.py reads it.
#pragma once
#include "parts.h"

namespace engine {

// A hypothesis and the word that might follow it.
struct Candidate {
  float score, token_score;
  int64_t row, word;
};

inline bool better(const Candidate &a, const Candidate &b) {
  return a.score != b.score ? a.score > b.score : a.row != b.row ? a.row < b.row : a.word < b.word;
}

enum Fate : int64_t { KEPT, FINISHED, PRUNED, CUT };  // as in search/trace.py

// Two streams, read side by side.
struct Record {
  int64_t steps = 0;
  // of each step: its branches, and S, what attention may look at; of each of them its parent (-1 for none), the word it said last, its candidates and
  // their ids; then how many continuations; of each its branch, word and fate
  std::vector<int64_t> numbers;
  // of each branch: its score, its candidates' scores, p_gen (NaN of a model that copies nothing), energies (L, N, S), weights (L, N, S), norms of contexts (L); of
  // each continuation: the score of its word, and of all of it
  Floats reals;

  void begin(int64_t branches, int64_t S) {
    steps++;
    numbers.insert(numbers.end(), {branches, S});
  }
  void branch(int64_t parent, int64_t word, float score, const std::vector<Candidate> &candidates) {
    numbers.insert(numbers.end(), {parent, word, static_cast<int64_t>(candidates.size())});
    reals.push_back(score);
    for (const Candidate &c : candidates) {
      numbers.push_back(c.word);
      reals.push_back(c.token_score);
    }
  }
  void add(const float *values, int64_t count) { reals.insert(reals.end(), values, values + count); }
  void end(const std::vector<Candidate> &ranked, const std::vector<Fate> &fates) {
    numbers.push_back(static_cast<int64_t>(ranked.size()));
    for (size_t i = 0; i < ranked.size(); i++) {
      numbers.insert(numbers.end(), {ranked[i].row, ranked[i].word, fates[i]});
      reals.insert(reals.end(), {ranked[i].token_score, ranked[i].score});
    }
  }
};

}  // namespace engine
