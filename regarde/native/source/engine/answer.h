// What a search found, as two streams: engines/records.py reads them side by side.
#pragma once
#include <new>

#include "searching.h"

namespace engine {

// What went wrong, in the words that engines/native.py knows.
inline const char *cause(const std::exception &problem) {
  const bool memory = dynamic_cast<const std::bad_alloc *>(&problem) || dynamic_cast<const std::length_error *>(&problem);
  return memory ? "out of memory" : problem.what();
}

struct Answer {
  std::vector<int64_t> numbers;  // of each sentence how many; of each hypothesis T, S, finished + 2 gated, its ids
  std::vector<float> reals;      // of each hypothesis its score, token scores, attention, and p_gen if it is gated
  // then, where a trace was asked for, the records of tracing.h
  std::string error;

  // Everything that the search holds; it holds it no longer.
  void take(Search &search) {
    size_t whole = search.results.size(), real = 0;
    for (const auto &hypotheses : search.results)
      for (const auto &h : hypotheses) whole += 3 + h.ids.size(), real += 1 + h.token_scores.size() + h.heads.size() + h.p_gen.size();
    numbers.reserve(whole), reals.reserve(real);
    for (auto &hypotheses : search.results) {
      numbers.push_back(static_cast<int64_t>(hypotheses.size()));
      for (const auto &h : hypotheses) {
        const int64_t kind = h.finished + 2 * !h.p_gen.empty();
        numbers.insert(numbers.end(), {static_cast<int64_t>(h.ids.size()), h.S, kind});
        numbers.insert(numbers.end(), h.ids.begin(), h.ids.end());
        reals.push_back(h.score);
        reals.insert(reals.end(), h.token_scores.begin(), h.token_scores.end());
        reals.insert(reals.end(), h.heads.begin(), h.heads.end());
        reals.insert(reals.end(), h.p_gen.begin(), h.p_gen.end());
      }
      std::vector<Hypothesis>().swap(hypotheses);
    }
    for (const Record &record : search.records) {
      numbers.push_back(record.steps);
      numbers.insert(numbers.end(), record.numbers.begin(), record.numbers.end());
      reals.insert(reals.end(), record.reals.begin(), record.reals.end());
    }
  }
};

}  // namespace engine
