// Word alignment by Gibbs sampling (Östling and Tiedemann 2016): IBM Model 1 (Brown et al. 1993), the hidden Markov model
// (Vogel et al. 1996), and the latter with fertilities, under Dirichlet priors.
//
// Every target word f_j has a link a_j, to a source word e_i or to none (0). A sweep draws each link given all others:
//
//   p(a_j = i | rest)  ~  t(f_j | e_i) d(i - a_before) d(a_after - i) r(e_i, k_i)
//   t(f | e) = (n(e, f) + prior(e, f)) / (n(e) + sum_f prior(e, f))
//   r(e, k)  = p(fertility k + 1 | e) / p(fertility k | e)
//
// n counts the links of all other target words. The jumps d and the fertilities are those of the sweep before.
//
//   S  source words of a pair      T  target words of a pair

#include <algorithm>
#include <cstdint>
#include <new>
#include <vector>

#include "aligner.h"

#define EXPORT extern "C" __attribute__((visibility("default")))

namespace aligner {
namespace {

constexpr uint16_t NOT_DRAWN = 65535;

// Numbers in [0, 1) from a seed (splitmix64).
struct Dice {
  uint64_t state;
  float next() {
    uint64_t z = (state += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return static_cast<float>((z ^ (z >> 31)) >> 40) * 0x1p-24f;
  }
};

// n(e, f), by open addressing. A count that falls to zero keeps its slot until `rebuild`.
class Counts {
public:
  struct Slot {
    uint64_t key;  // e, f; 0: free
    float count;
  };
  Counts() : slots_(SMALLEST), mask_(SMALLEST - 1) {}

  static uint64_t key(int32_t e, int32_t f) { return static_cast<uint64_t>(e) << 32 | static_cast<uint32_t>(f); }
  void prefetch(uint64_t key) const { __builtin_prefetch(&slots_[place(key)]); }
  float at(uint64_t key) const {
    for (uint64_t i = place(key);; i = (i + 1) & mask_)
      if (slots_[i].key == key)
        return slots_[i].count;
      else if (!slots_[i].key)
        return 0;
  }
  void add(uint64_t key, float more) {
    uint64_t i = place(key);
    while (slots_[i].key && slots_[i].key != key) i = (i + 1) & mask_;
    if (slots_[i].key) {
      slots_[i].count += more;
    } else {
      slots_[i] = {key, more};
      if (++used_ * 2 > slots_.size()) rebuild();
    }
  }
  // The same without zeros, and with room for as many again.
  void rebuild() {
    std::vector<Slot> old;
    old.swap(slots_);
    uint64_t size = SMALLEST;
    used_ = 0;
    for (const Slot &slot : old) used_ += slot.count > 0;
    while (size < 3 * used_) size *= 2;
    slots_.assign(size, Slot{0, 0});
    mask_ = size - 1;
    for (const Slot &slot : old)
      if (slot.count > 0) {
        uint64_t i = place(slot.key);
        while (slots_[i].key) i = (i + 1) & mask_;
        slots_[i] = slot;
      }
  }
  const std::vector<Slot> &slots() const { return slots_; }

private:
  static constexpr uint64_t SMALLEST = 1 << 12;
  uint64_t place(uint64_t key) const {
    key *= 0x9e3779b97f4a7c15u;
    return (key ^ key >> 32) & mask_;
  }
  std::vector<Slot> slots_;
  uint64_t mask_, used_ = 0;
};

}  // namespace

// One chain of samples.
class Chain {
public:
  Chain(const Bitext &bitext, uint64_t seed)
      : text_(bitext), dice_{seed * 0xd1342543de82ef95u + 1}, links_(bitext.target_starts[bitext.pairs], NOT_DRAWN),
        totals_(bitext.kinds), inverse_(bitext.kinds), jumps_(2 * FURTHEST + 1), ratios_(bitext.kinds * MOST) {
    for (int64_t n = 0; n < text_.known; n++) {
      counts_.add(Counts::key(text_.known_source[n], text_.known_target[n]), text_.known_counts[n]);
      totals_[text_.known_source[n]] += text_.known_counts[n];
    }
    for (int64_t e = 0; e < text_.kinds; e++) update(e);
  }

  void sweep(Model model) {
    counts_.rebuild();
    estimate(nullptr, nullptr);
    for (int64_t pair = 0; pair < text_.pairs; pair++) draw(pair, model, nullptr);
  }

  // Draw the links of some pairs again, `times` times, and add the probabilities (T, 1 + S) of all links of each.
  void read(int64_t first, int64_t count, Model model, int64_t times, float *probabilities) {
    for (int64_t time = 0; time < times; time++) {
      float *to = probabilities;
      for (int64_t pair = first; pair < first + count; pair++) {
        draw(pair, model, to);
        to += (1 + length(text_.source_starts, pair)) * length(text_.target_starts, pair);
      }
    }
  }

  // Jumps and fertilities from the links as they are, and the priors; and their counts with the priors, if wanted.
  void estimate(float *jump_counts, float *fertility_counts) {
    std::vector<float> jumps(text_.jump_prior, text_.jump_prior + 2 * FURTHEST + 1);
    std::vector<float> fertilities(text_.fertility_prior, text_.fertility_prior + text_.kinds * (MOST + 1));
    for (int64_t pair = 0; pair < text_.pairs; pair++) {
      const int64_t S = length(text_.source_starts, pair), T = length(text_.target_starts, pair);
      const int32_t *source = text_.source + text_.source_starts[pair];
      const uint16_t *links = links_.data() + text_.target_starts[pair];
      if (!T || links[0] == NOT_DRAWN) continue;
      born_.assign(S + 1, 0);
      int64_t before = 0;
      for (int64_t j = 0; j < T; j++)
        if (links[j]) {
          jumps[jump(links[j] - before)] += 1;
          before = links[j];
          born_[before]++;
        }
      jumps[jump(S + 1 - before)] += 1;
      for (int64_t i = 1; i <= S; i++) fertilities[source[i - 1] * (MOST + 1) + std::min<int64_t>(born_[i], MOST)] += 1;
    }
    float total = 0;
    for (float count : jumps) total += count;
    for (size_t d = 0; d < jumps.size(); d++) jumps_[d] = jumps[d] / total;
    for (int64_t e = 0; e < text_.kinds; e++)
      for (int64_t k = 0; k < MOST; k++)
        ratios_[e * MOST + k] = fertilities[e * (MOST + 1) + k + 1] / fertilities[e * (MOST + 1) + k];
    if (jump_counts) std::copy(jumps.begin(), jumps.end(), jump_counts);
    if (fertility_counts) std::copy(fertilities.begin(), fertilities.end(), fertility_counts);
  }

  // How many kinds of links there are; those kinds, and how often each was drawn.
  int64_t lexicon(int32_t *sources, int32_t *targets, float *counts) const {
    int64_t found = 0;
    for (const Counts::Slot &slot : counts_.slots())
      if (slot.count > 0) {
        if (sources) {
          sources[found] = static_cast<int32_t>(slot.key >> 32);
          targets[found] = static_cast<int32_t>(slot.key & 0xffffffffu);
          counts[found] = slot.count;
        }
        found++;
      }
    return found;
  }

private:
  static int64_t length(const int64_t *starts, int64_t pair) { return starts[pair + 1] - starts[pair]; }
  static int64_t jump(int64_t by) { return std::clamp(by, -FURTHEST, FURTHEST) + FURTHEST; }

  // 1 / (n(e) + sum_f prior(e, f))
  void update(int64_t e) { inverse_[e] = static_cast<float>(1 / (totals_[e] + text_.prior_sums[e])); }

  void count(int32_t e, int32_t f, float more) {
    counts_.add(Counts::key(e, f), more);
    totals_[e] += more;
    update(e);
  }

  // All links of a pair, one after the other.
  void draw(int64_t pair, Model model, float *probabilities) {
    const int64_t S = length(text_.source_starts, pair), T = length(text_.target_starts, pair);
    const int32_t *source = text_.source + text_.source_starts[pair], *target = text_.target + text_.target_starts[pair];
    uint16_t *links = links_.data() + text_.target_starts[pair];
    const float none = static_cast<float>(text_.none), some = 1 - none;
    const float prior = static_cast<float>(text_.lexical), alike = static_cast<float>(text_.lexical + text_.alike);

    words_.assign(1, 0), spellings_.assign(1, -1);
    words_.insert(words_.end(), source, source + S);
    for (int64_t i = 0; i < S; i++) spellings_.push_back(text_.source_spellings[source[i]]);
    weights_.resize(S + 1), born_.assign(S + 1, 0), after_.resize(T + 1);
    after_[T] = static_cast<int32_t>(S + 1);  // the next link to a word, or the end
    for (int64_t j = T - 1; j >= 0; j--) {
      const bool linked = links[j] && links[j] != NOT_DRAWN;
      after_[j] = linked ? links[j] : after_[j + 1];
      if (linked) born_[links[j]]++;
    }
    float *weights = weights_.data();
    int64_t before = 0;
    for (int64_t j = 0; j < T; j++) {
      const int32_t f = target[j], spelling = text_.target_spellings[f];
      const int64_t after = after_[j + 1];
      if (links[j] != NOT_DRAWN) {
        count(words_[links[j]], f, -1);
        if (links[j]) born_[links[j]]--;
      }
      if (j + 1 < T)
        for (int64_t i = 0; i <= S; i++) counts_.prefetch(Counts::key(words_[i], target[j + 1]));
      for (int64_t i = 0; i <= S; i++)
        weights[i] = (counts_.at(Counts::key(words_[i], f)) + (spellings_[i] == spelling ? alike : prior)) * inverse_[words_[i]];
      if (model == Model::IBM1) {
        weights[0] *= none * static_cast<float>(S);
        for (int64_t i = 1; i <= S; i++) weights[i] *= some;
      } else {
        const float *from = jumps_.data() + FURTHEST - before, *to = jumps_.data() + FURTHEST + after;
        weights[0] *= none * jumps_[jump(after - before)];
        if (S < FURTHEST)
          for (int64_t i = 1; i <= S; i++) weights[i] *= some * from[i] * to[-i];
        else
          for (int64_t i = 1; i <= S; i++) weights[i] *= some * jumps_[jump(i - before)] * jumps_[jump(after - i)];
      }
      if (model == Model::FERTILITY)
        for (int64_t i = 1; i <= S; i++) weights[i] *= ratios_[words_[i] * MOST + std::min<int64_t>(born_[i], MOST - 1)];
      float sum = 0;
      for (int64_t i = 0; i <= S; i++) sum += weights[i];
      if (probabilities) {
        for (int64_t i = 0; i <= S; i++) probabilities[i] += weights[i] / sum;
        probabilities += S + 1;
      }
      float left = dice_.next() * sum;
      int64_t drawn = 0;
      while (drawn < S && (left -= weights[drawn]) >= 0) drawn++;
      links[j] = static_cast<uint16_t>(drawn);
      count(words_[drawn], f, 1);
      if (drawn) born_[drawn]++, before = drawn;
    }
  }

  const Bitext text_;
  Dice dice_;
  Counts counts_;
  std::vector<uint16_t> links_;
  std::vector<double> totals_;
  std::vector<float> inverse_, jumps_, ratios_, weights_;
  std::vector<int32_t> words_, spellings_, born_, after_;
};

}  // namespace aligner

using aligner::Chain;

// A chain, or null if there is no memory for it.
EXPORT Chain *aligner_chain(const aligner::Bitext *bitext, uint64_t seed) {
  try {
    return new Chain(*bitext, seed);
  } catch (const std::bad_alloc &) {
    return nullptr;
  }
}
EXPORT void aligner_free(Chain *chain) { delete chain; }

// 0, or 1 if there is no memory left.
EXPORT int aligner_sweep(Chain *chain, int64_t model) {
  try {
    chain->sweep(static_cast<aligner::Model>(model));
    return 0;
  } catch (const std::bad_alloc &) {
    return 1;
  }
}
EXPORT int aligner_read(Chain *chain, int64_t first, int64_t count, int64_t model, int64_t times, float *probabilities) {
  try {
    chain->read(first, count, static_cast<aligner::Model>(model), times, probabilities);
    return 0;
  } catch (const std::bad_alloc &) {
    return 1;
  }
}
EXPORT int aligner_estimate(Chain *chain, float *jump_counts, float *fertility_counts) {
  try {
    chain->estimate(jump_counts, fertility_counts);
    return 0;
  } catch (const std::bad_alloc &) {
    return 1;
  }
}
EXPORT int64_t aligner_lexicon(const Chain *chain, int32_t *sources, int32_t *targets, float *counts) {
  return chain->lexicon(sources, targets, counts);
}
