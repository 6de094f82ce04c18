// Greedy, beam, sampling and forced decoding, as regarde/search has them, of one sentence after the other: what enters
// a batch (batch.h), and what becomes of it there.
#pragma once
#include <algorithm>
#include <atomic>
#include <functional>
#include <memory>
#include <mutex>

#include "request.h"
#include "tracing.h"

namespace engine {

// For each source word, what its translations are made of; and what those of any sentence are.
struct Shortlist {
  std::vector<int64_t> frequent, starts, ids;  // those of source word w: ids[starts[w]] to ids[starts[w + 1]]
  bool empty() const { return starts.empty(); }
  // Sorted, with others that may be said; the controls come first, where they are in every vocabulary.
  std::vector<int64_t> words(const std::vector<int64_t> &source, const std::vector<int64_t> &others) const {
    std::vector<int64_t> found = {PAD, UNK, BOS, EOS};
    found.insert(found.end(), frequent.begin(), frequent.end());
    found.insert(found.end(), others.begin(), others.end());
    for (int64_t word : source)
      if (word >= 0 && word + 1 < static_cast<int64_t>(starts.size()))
        found.insert(found.end(), ids.begin() + starts[word], ids.begin() + starts[word + 1]);
    std::sort(found.begin(), found.end());
    found.erase(std::unique(found.begin(), found.end()), found.end());
    return found;
  }
};

struct Hypothesis {
  std::vector<int64_t> ids;
  Floats token_scores, heads, p_gen;
  float score;
  int64_t S;
  bool finished;
};

class Search;

// A sentence being searched: its beams, and what they have said.
struct Active {
  Search *search = nullptr;  // whose it is
  Sentence sentence;
  int64_t t = 0, live = 1, longest = 0, sample = 0;
  std::vector<int64_t> path, words;  // (live, t)
  Floats token_scores, scores;       // (live, t), (live)
  std::vector<Hypothesis> found;
  Record record;
};

class Search {
  const Model &model;
  const Table &table;
  const Request request;
  const Shortlist &shortlist;
  const Interventions interventions;
  std::atomic<int64_t> next{0};
  std::vector<int64_t> order;  // in which tasks are taken; empty: as they come

 public:
  std::vector<std::vector<Hypothesis>> results;
  std::vector<Record> records;  // of each sentence and sample, where a trace was asked for

  Search(const Model &model, const Table &table, const Request &request, const Shortlist &shortlist)
      : model(model), table(table), request(request), shortlist(shortlist),
        interventions{model.heads, request.pins, request.masked, request.pin_places, request.pinned}, results(request.count),
        records(request.watched ? request.count * samples() : 0) {
    if (!model.reads || tasks() < 2) return;
    auto words = [&](int64_t task) { return request.starts[task / samples() + 1] - request.starts[task / samples()]; };
    for (int64_t task = 0; task < tasks(); task++) order.push_back(task);
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return words(a) > words(b); });
  }

  int64_t width() const { return request.kind == BEAM ? request.size : 1; }
  int64_t samples() const { return request.kind == SAMPLING ? request.n_best : 1; }

  int64_t tasks() const { return request.count * samples(); }

  // The next sentence that nobody has taken; null: there are no more.
  std::unique_ptr<Active> take() {
    const int64_t turn = next++;
    if (turn >= tasks()) return nullptr;
    const int64_t number = order.empty() ? turn : order[turn];
    auto one = std::make_unique<Active>();
    const int64_t source = number / samples();
    one->search = this;
    one->sample = number % samples();
    one->sentence.number = source;
    one->sentence.wide = width() > 1;
    one->sentence.greedy = request.kind == GREEDY && !prefix_length(source);
    one->sentence.watched = request.watched > 0;
    if (request.masked) one->sentence.interventions = &interventions;
    one->sentence.ids.assign(request.ids + request.starts[source], request.ids + request.starts[source + 1]);
    one->sentence.ids.push_back(EOS);
    model.spell(one->sentence);
    const float most = static_cast<float>(one->sentence.S()) * static_cast<float>(request.max_ratio);
    one->longest = static_cast<int64_t>(most) + request.max_extra;
    if (one->sentence.S() == 1)  // a prompt of a language model
      one->longest = std::min(one->longest + prefix_length(source), request.context);
    else if (prefix_length(source)) one->longest = std::max(one->longest, prefix_length(source) + 1);
    if (request.kind == FORCED) one->longest = request.target_starts[source + 1] - request.target_starts[source];
    one->scores = {0.0f};
    if (!shortlist.empty() && request.kind != FORCED) {
      std::vector<int64_t> others;  // what it begins with, and what it may copy
      if (request.first >= 0) others.push_back(known(one->sentence, request.first));
      for (int64_t t = 0; t < prefix_length(source); t++) others.push_back(known(one->sentence, prefix(source)[t]));
      others.insert(others.end(), one->sentence.copies.begin(), one->sentence.copies.end());
      others.erase(std::remove_if(others.begin(), others.end(), [&](int64_t word) { return word >= model.V; }), others.end());
      one->sentence.words = shortlist.words(one->sentence.ids, others);
    }
    return one;
  }

  // Whether the sentence, which was just read, is done: the model has its answer without a search.
  bool settle(Active &one) {
    const Sentence &sentence = one.sentence;
    Hypothesis h;
    if (!sentence.greedy || sentence.watched || sentence.interventions || !sentence.words.empty() ||
        !model.answer(sentence, h.ids, h.token_scores, h.heads))
      return false;
    if (length(h.ids) <= request.min_length || (sentence.best.empty() && length(h.ids) > one.longest)) return false;
    h.score = 0, h.S = sentence.S(), h.finished = true;
    for (float score : h.token_scores) h.score += score;
    one.found.push_back(std::move(h));
    finish(one);
    return true;
  }

  // The continuations that go on; none: the sentence is done. Rows of candidates are the sentence's own slots.
  std::vector<Candidate> advance(Active &one, float *logits, int64_t apart) {
    std::vector<Candidate> ranked;
    const int64_t V = model.choices(one.sentence);
    if (one.sentence.watched) one.record.begin(one.live, model.columns(one.sentence, one.t));
    if (!one.sentence.best.empty()) one.longest = std::max(one.longest, length(one.sentence.best) + 1);
    Floats sums(one.live);
    float likeliest = -INFINITY;  // word of this step, whichever hypothesis it follows
    for (int64_t slot = 0; slot < one.live; slot++) {
      float *x = logits + slot * apart;
      const float sum = table.log_sum_exp(x, V);
      const bool sound = sum > -INFINITY && all_numbers(x, V);
      sums[slot] = sound ? sum : NAN;
      if (!sound && request.kind != FORCED) {  // no answer at all: scribe.py says why
        one.found.clear();
        return {};
      }
      if (request.kind != FORCED) forbid(one, x, sum);
      if (one.sentence.watched) watch(one, slot, x, sums[slot]);
      if (request.prune > 0) likeliest = std::max(likeliest, table.highest(x, V) - sums[slot]);
    }
    const float least = request.prune > 0 ? likeliest - static_cast<float>(request.prune) : -INFINITY;
    for (int64_t slot = 0; slot < one.live; slot++) {
      const float *x = logits + slot * apart, all = sums[slot];
      if (request.kind == FORCED) ranked = {given(x, all, one)};
      else if (request.kind == GREEDY) ranked = {best(x, V, all, one.scores[slot])};
      else if (request.kind == SAMPLING) ranked = {drawn(x, all, one)};
      else rank(x, V, all, one.scores[slot], slot, 2 * request.size, least, ranked);
    }
    name(one.sentence, ranked);
    one.t++;
    const int64_t K = width();
    const bool last = (request.kind == FORCED || request.cut) && one.t == one.longest;
    std::vector<Candidate> open;
    std::vector<Fate> fates(ranked.size(), PRUNED);
    std::vector<size_t> places;  // of the open ones
    for (size_t i = 0; i < ranked.size(); i++) {
      const Candidate &c = ranked[i];
      const bool ends = last || (request.kind != FORCED && c.word == EOS);
      if (!ends && static_cast<int64_t>(open.size()) < K) {
        open.push_back(c), places.push_back(i);
      } else if (ends && static_cast<int64_t>(i) < K) {
        one.found.push_back(hypothesis(one, c));
        fates[i] = FINISHED;
      }
    }
    if (request.prune > 0) prune(one, fates, open, places);
    const bool enough = static_cast<int64_t>(one.found.size()) >= K && settled(one, open);
    const bool going = !enough && one.t < one.longest && !open.empty();
    const int64_t wanted = request.kind == BEAM ? request.n_best : 1;
    const bool cut = !going && static_cast<int64_t>(one.found.size()) < wanted;
    if (going || cut)
      for (size_t i : places) fates[i] = going ? KEPT : CUT;
    for (size_t i = 0; i < fates.size(); i++)
      if (fates[i] == FINISHED && ranked[i].word != EOS) fates[i] = CUT;
    if (one.sentence.watched) one.record.end(ranked, fates);
    if (cut) {
      for (const Candidate &c : open) one.found.push_back(hypothesis(one, c));
      if (request.prune > 0) drop(one, nearest(one));
    }
    return going ? extend(one, open) : std::vector<Candidate>{};
  }

  // What the sentence found is the answer to it.
  void finish(Active &one) {
    auto &all = results[one.sentence.number];
    if (one.sentence.watched) records[one.sentence.number * samples() + one.sample] = std::move(one.record);
    auto by_score = [](const Hypothesis &a, const Hypothesis &b) { return a.score > b.score; };
    if (request.kind == BEAM) {
      std::stable_sort(one.found.begin(), one.found.end(), [this](const Hypothesis &a, const Hypothesis &b) {
        return a.finished != b.finished && !request.cut ? a.finished : a.score > b.score;
      });
      if (static_cast<int64_t>(one.found.size()) > request.n_best) one.found.resize(request.n_best);
      std::stable_sort(one.found.begin(), one.found.end(), by_score);
      all = std::move(one.found);
      return;
    }
    if (request.kind != SAMPLING) {
      all = std::move(one.found);
      return;
    }
    std::lock_guard<std::mutex> hold(mutex);  // the samples of a sentence may come from several workers
    samples_of.resize(request.count);
    for (Hypothesis &h : one.found) samples_of[one.sentence.number].emplace_back(one.sample, std::move(h));
    auto &own = samples_of[one.sentence.number];
    if (static_cast<int64_t>(own.size()) < samples()) return;
    std::sort(own.begin(), own.end(), [](const auto &a, const auto &b) { return a.first < b.first; });
    for (auto &pair : own) all.push_back(std::move(pair.second));
    std::stable_sort(all.begin(), all.end(), by_score);
  }

 private:
  int64_t prefix_length(int64_t number) const {
    return request.prefix_starts ? request.prefix_starts[number + 1] - request.prefix_starts[number] : 0;
  }

  static int64_t length(const std::vector<int64_t> &words) { return static_cast<int64_t>(words.size()); }

  const int64_t *prefix(int64_t number) const { return request.prefix_ids + request.prefix_starts[number]; }

  // Candidates speak of a sentence's choices until their words are looked up.
  void name(const Sentence &sentence, std::vector<Candidate> &candidates) const {
    if (sentence.words.empty()) return;
    for (Candidate &c : candidates) c.word = sentence.word(c.word, model.V);
  }

  // Where a word is among the choices; -1 where it is none of them.
  int64_t place(const Sentence &sentence, int64_t word) const {
    return sentence.place(known(sentence, word), model.V);
  }

  // What may not be said now; `all`: log-sum-exp of the logits.
  void forbid(const Active &one, float *x, float all) const {
    const int64_t number = one.sentence.number, prefixed = prefix_length(number);
    if (!one.t && request.first >= 0 && one.sentence.best.empty() && (!prefixed || *prefix(number) == request.first)) {
      const int64_t word = place(one.sentence, request.first);
      std::fill(x, x + model.choices(one.sentence), -INFINITY);
      x[word] = all;  // as if it were certain
      return;
    }
    const int64_t told = prefixed ? prefixed : length(one.sentence.best);
    if (one.t < told || (one.sentence.whole && one.t == told)) {
      const int64_t said = one.t == told ? static_cast<int64_t>(EOS) : prefixed ? prefix(number)[one.t] : one.sentence.best[one.t];
      const int64_t word = place(one.sentence, said);
      const float kept = x[word];
      std::fill(x, x + model.choices(one.sentence), -INFINITY);
      x[word] = kept;
      return;
    }
    if (prefixed && one.t == prefixed)
      for (int64_t i = request.barred_starts[number]; i < request.barred_starts[number + 1]; i++) {
        const int64_t word = place(one.sentence, request.barred_ids[i]);
        if (word >= 0) x[word] = -INFINITY;
      }
    x[PAD] = x[BOS] = -INFINITY;
    if (!request.allow_unknown) x[UNK] = -INFINITY;
    if (one.t >= request.min_length) return;
    const float end = x[EOS];
    x[EOS] = -INFINITY;
    if (table.highest(x, model.choices(one.sentence)) == -INFINITY) x[EOS] = end;  // a shortlist may leave nothing else
  }

  // One hypothesis before it goes on: where it comes from, where it looks, what it might say.
  void watch(Active &one, int64_t slot, const float *x, float all) const {
    const int64_t t = one.t, L = model.layers, size = L * model.heads * model.columns(one.sentence, t);
    std::vector<Candidate> likeliest;
    rank(x, model.choices(one.sentence), all, 0, slot, request.watched, -INFINITY, likeliest);
    name(one.sentence, likeliest);
    const int64_t last = slot * t + t - 1;
    one.record.branch(t ? one.path[last] : -1, t ? one.words[last] : static_cast<int64_t>(BOS), one.scores[slot], likeliest);
    const float p_gen = model.gated ? one.sentence.p_gen[t][slot] : NAN;
    one.record.add(&p_gen, 1);
    one.record.add(one.sentence.energies.data() + slot * size, size);
    one.record.add(one.sentence.weights[t].data() + slot * size, size);
    one.record.add(one.sentence.norms.data() + slot * L, L);
  }

  int64_t known(const Sentence &sentence, int64_t word) const {
    if (word < 0 || word >= model.V + sentence.own) throw std::out_of_range("a token that the model does not know");
    return word;
  }

  // Is none of them NaN or +infinity? Finite weights may be so large that their products overflow.
  static bool all_numbers(const float *x, int64_t count) {
    uint32_t odd = 0;
    for (int64_t i = 0; i < count; i++) {
      uint32_t bits;
      std::memcpy(&bits, x + i, sizeof bits);
      odd |= static_cast<uint32_t>(bits == 0x7f800000u) | static_cast<uint32_t>((bits & 0x7fffffffu) > 0x7f800000u);
    }
    return !odd;
  }

  // Forced decoding: the word that is said.
  Candidate given(const float *x, float all, const Active &one) const {
    const int64_t word = known(one.sentence, request.target_ids[request.target_starts[one.sentence.number] + one.t]);
    return {one.scores[0] + (x[word] - all), x[word] - all, 0, word};
  }

  Candidate best(const float *x, int64_t V, float all, float so_far) const {
    const float top = table.highest(x, V);
    const int64_t word = table.place(x, V, top);
    return {so_far + (top - all), top - all, 0, word};
  }

  // Keep the best `most` of what is there and what this row offers in words whose own score is `least` or more.
  void rank(const float *x, int64_t V, float all, float so_far, int64_t slot, int64_t most, float least,
            std::vector<Candidate> &ranked) const {
    const int64_t block = 64;
    for (int64_t first = 0; first < V; first += block) {
      const int64_t count = std::min(block, V - first);
      const bool full = static_cast<int64_t>(ranked.size()) == most;
      if (full && so_far + (table.highest(x + first, count) - all) < ranked.back().score) continue;
      for (int64_t word = first; word < first + count; word++) {
        if (x[word] == -INFINITY || x[word] - all < least) continue;
        const Candidate c{so_far + (x[word] - all), x[word] - all, slot, word};
        if (static_cast<int64_t>(ranked.size()) == most) {
          if (!better(c, ranked.back())) continue;
          ranked.pop_back();
        }
        ranked.insert(std::upper_bound(ranked.begin(), ranked.end(), c, better), c);
      }
    }
  }

  // search/beam.py, the second pruning: finished hypotheses, and open ones that could not end near enough to the best.
  void prune(Active &one, std::vector<Fate> &fates, std::vector<Candidate> &open, std::vector<size_t> &places) const {
    const double least = nearest(one);
    auto ended = one.found.end() - std::count(fates.begin(), fates.end(), FINISHED);  // those of this step, in order
    for (Fate &fate : fates)
      if (fate == FINISHED && (ended++)->score < least) fate = PRUNED;
    drop(one, least);
    const double penalty = length_penalty(one.longest);
    size_t kept = 0;
    while (kept < open.size() && open[kept].score / penalty >= least) kept++;  // they come best first
    open.resize(kept), places.resize(kept);
  }

  // Whether enough hypotheses are finished: always, or where the best open one would not be among the best.
  bool settled(Active &one, const std::vector<Candidate> &open) const {
    if (request.kind != BEAM || request.early) return true;
    std::stable_sort(one.found.begin(), one.found.end(),
                     [](const Hypothesis &a, const Hypothesis &b) { return a.score > b.score; });
    one.found.resize(request.size);
    return open.empty() || open[0].score / length_penalty(one.t) <= one.found.back().score;
  }

  // The score below which a hypothesis is given up.
  double nearest(const Active &one) const {
    double best = -INFINITY;
    for (const Hypothesis &h : one.found)
      if (h.finished) best = std::max(best, static_cast<double>(h.score));
    return best - request.prune;
  }

  void drop(Active &one, double least) const {
    auto far = [least](const Hypothesis &h) { return h.score < least; };
    one.found.erase(std::remove_if(one.found.begin(), one.found.end(), far), one.found.end());
  }

  // search/single.py, Sampling: narrowed by top-k and nucleus, then the word on which the dice fall.
  Candidate drawn(const float *x, float all, const Active &one) const {
    const int64_t V = model.choices(one.sentence);
    Floats scores(V);
    for (int64_t i = 0; i < V; i++) scores[i] = (x[i] - all) / static_cast<float>(request.temperature);
    if (request.top_k) {
      Floats sorted = scores;
      const int64_t k = std::min(request.top_k, V);
      std::nth_element(sorted.begin(), sorted.begin() + (k - 1), sorted.end(), std::greater<float>());
      for (float &score : scores) score = score < sorted[k - 1] ? -INFINITY : score;
    }
    if (request.top_p < 1) {
      const float top = *std::max_element(scores.begin(), scores.end());
      double total = 0;
      std::vector<int64_t> order(V);
      for (int64_t i = 0; i < V; i++) order[i] = i, total += std::exp(static_cast<double>(scores[i] - top));
      std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return scores[a] > scores[b]; });
      double before = 0;
      for (int64_t i : order) {
        const double p = std::exp(static_cast<double>(scores[i] - top)) / total;
        if (before >= std::max(request.top_p, 1e-9)) scores[i] = -INFINITY;
        before += p;
      }
    }
    const float top = *std::max_element(scores.begin(), scores.end());
    double total = 0;
    for (float score : scores) total += std::exp(static_cast<double>(score) - top);
    const int64_t place = request.dice_starts[one.sentence.number * samples() + one.sample] + one.t;
    const double thrown = request.dice[place] * total;
    double sum = 0;
    int64_t word = V - 1;
    for (int64_t i = 0; i < V; i++) {
      sum += std::exp(static_cast<double>(scores[i]) - top);
      if (sum > thrown) {
        word = i;
        break;
      }
    }
    return {one.scores[0] + (x[word] - all), x[word] - all, 0, word};
  }

  std::vector<Candidate> extend(Active &one, const std::vector<Candidate> &chosen) const {
    const int64_t t = one.t, live = static_cast<int64_t>(chosen.size());
    std::vector<int64_t> path(live * t), words(live * t);
    Floats token_scores(live * t), scores(live);
    for (int64_t i = 0; i < live; i++) {
      const Candidate &c = chosen[i];
      std::copy_n(one.path.begin() + c.row * (t - 1), t - 1, path.begin() + i * t);
      std::copy_n(one.words.begin() + c.row * (t - 1), t - 1, words.begin() + i * t);
      std::copy_n(one.token_scores.begin() + c.row * (t - 1), t - 1, token_scores.begin() + i * t);
      path[i * t + t - 1] = c.row, words[i * t + t - 1] = c.word, token_scores[i * t + t - 1] = c.token_score;
      scores[i] = c.score;
    }
    one.path.swap(path), one.words.swap(words), one.token_scores.swap(token_scores), one.scores.swap(scores);
    one.live = live;
    return chosen;
  }

  // Called when one.t counts the word of the candidate, but path and words do not hold it yet.
  Hypothesis hypothesis(const Active &one, const Candidate &c) const {
    const int64_t T = one.t, S = model.columns(one.sentence, T - 1), L = model.layers, N = model.heads;
    Hypothesis h;
    h.S = S;
    h.ids.assign(one.words.begin() + c.row * (T - 1), one.words.begin() + (c.row + 1) * (T - 1));
    h.ids.push_back(c.word);
    h.token_scores.assign(one.token_scores.begin() + c.row * (T - 1), one.token_scores.begin() + (c.row + 1) * (T - 1));
    h.token_scores.push_back(c.token_score);
    h.heads.resize(L * N * T * S);
    for (int64_t t = 0; t < T; t++) {
      const int64_t slot = t == T - 1 ? c.row : one.path[c.row * (T - 1) + t], own = model.columns(one.sentence, t);
      const float *from = one.sentence.weights[t].data() + slot * L * N * own;
      for (int64_t ln = 0; ln < L * N; ln++)
        std::memcpy(&h.heads[(ln * T + t) * S], from + ln * own, sizeof(float) * own);
    }
    for (int64_t t = 0; model.gated && t < T; t++)
      h.p_gen.push_back(one.sentence.p_gen[t][t == T - 1 ? c.row : one.path[c.row * (T - 1) + t]]);
    h.finished = request.kind == FORCED || c.word == EOS;
    h.score = c.score;
    if (request.kind == BEAM) h.score = static_cast<float>(ranked_score(h, c.score, T, S));
    return h;
  }

  double length_penalty(int64_t T) const {
    const double length = static_cast<double>(T);
    return std::pow(request.power ? length : (5.0 + length) / 6.0, request.alpha);
  }

  // Wu et al. 2016, equation 14.
  double ranked_score(const Hypothesis &h, float score, int64_t T, int64_t S) const {
    double total = score / length_penalty(T);
    const int64_t LN = model.layers * model.heads;
    if (request.beta == 0 || LN == 0) return total;
    for (int64_t s = 0; s < S - 1; s++) {
      double covered = 0;
      for (int64_t row = 0; row < LN * T; row++) covered += h.heads[row * S + s];
      total += request.beta * std::log(std::min(std::max(covered / static_cast<double>(LN), 1e-6), 1.0));
    }
    return total;
  }

  std::mutex mutex;
  std::vector<std::vector<std::pair<int64_t, Hypothesis>>> samples_of;
};

}  // namespace engine
