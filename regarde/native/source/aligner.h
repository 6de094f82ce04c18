// What the aligner is given (aligner.cpp).

#pragma once
#include <cstdint>

namespace aligner {

constexpr int64_t FURTHEST = 512;  // jumps further than this count as this far
constexpr int64_t MOST = 16;       // fertilities above this count as this many

enum class Model : int64_t { IBM1, HMM, FERTILITY };

// Pairs of sentences as numbers of words, from 1; source word 0 is none. Words of both sides with the same spelling number
// look alike; a source word that looks like no target word has -1, and target words have 0 or more.
struct Bitext {
  int64_t pairs, kinds, known;   // kinds of source words; links that are known before
  double lexical, alike, none;   // prior of each translation, and more where both look alike; probability of no link
  const int64_t *source_starts, *target_starts;
  const int32_t *source, *target, *source_spellings, *target_spellings;
  const double *prior_sums;                          // over all target words, for each kind of source word
  const float *jump_prior, *fertility_prior;         // (2 FURTHEST + 1), (kinds, MOST + 1)
  const int32_t *known_source, *known_target;        // links of other pairs, and how many of each
  const float *known_counts;
};

}  // namespace aligner
