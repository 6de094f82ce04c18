// Sentences side by side, of one request or of many: they enter together, go on word by word, and leave one by one.
#pragma once
#include "searching.h"

namespace engine {

class Batch {
  const Model &model;
  std::vector<std::unique_ptr<Active>> active;
  Floats states, moved, logits;
  std::vector<Row> rows;
  std::vector<int64_t> previous, parents, following;

 public:
  explicit Batch(const Model &model) : model(model) {}
  bool empty() const { return active.empty(); }
  int64_t size() const { return static_cast<int64_t>(active.size()); }
  // Rows that its sentences may take.
  int64_t width() const {
    int64_t sum = 0;
    for (const auto &one : active) sum += one->search->width();
    return sum;
  }

  // They are encoded together. With `settling`, those that need no search leave at once.
  void admit(std::vector<std::unique_ptr<Active>> fresh, bool settling = false) {
    if (fresh.empty()) return;
    const size_t others = active.size(), said = previous.size();
    std::vector<Sentence *> sentences;
    for (auto &one : fresh) {
      sentences.push_back(&one->sentence);
      previous.push_back(BOS);
      active.push_back(std::move(one));
    }
    const size_t before = states.size();
    states.resize(before + fresh.size() * model.state_width);
    model.encode(sentences, states.data() + before);
    if (!settling) return;
    const size_t width = model.state_width;
    size_t kept = 0;
    for (size_t i = 0; i < fresh.size(); i++) {
      if (active[others + i]->search->settle(*active[others + i])) continue;
      if (kept < i) {
        std::copy_n(states.data() + before + i * width, width, states.data() + before + kept * width);
        active[others + kept] = std::move(active[others + i]);
      }
      kept++;
    }
    active.resize(others + kept), previous.resize(said + kept), states.resize(before + kept * width);
  }

  // One word on. `goes_on` is told of each sentence that does, `ended` of each that does not.
  template <class GoesOn, class Ended>
  void step(const GoesOn &goes_on, const Ended &ended) {
    rows.clear();
    for (auto &one : active) {
      model.make_room(one->sentence, one->live);
      for (int64_t slot = 0; slot < one->live; slot++)
        rows.push_back({&one->sentence, slot, one->t, one->path.data() + slot * one->t});
    }
    const int64_t M = static_cast<int64_t>(rows.size());
    const int64_t apart = model.row_width(rows);
    logits.resize(M * apart);
    model.step(rows, previous.data(), states.data(), logits.data());
    parents.clear(), following.clear();
    int64_t row = 0;
    std::vector<std::unique_ptr<Active>> staying;
    for (auto &one : active) {
      const int64_t live = one->live;
      std::vector<Candidate> going = one->search->advance(*one, &logits[row * apart], apart);
      if (going.empty()) one->search->finish(*one);
      if (going.empty() || !goes_on(*one)) {
        ended(*one);
      } else {
        for (const Candidate &candidate : going) {
          parents.push_back(row + candidate.row);
          following.push_back(candidate.word);
        }
        staying.push_back(std::move(one));
      }
      row += live;
    }
    moved.resize(parents.size() * model.state_width);
    for (size_t i = 0; i < parents.size(); i++)
      std::copy_n(states.data() + parents[i] * model.state_width, model.state_width,
                  moved.data() + i * model.state_width);  // which may be nothing
    states.swap(moved);
    states.resize(parents.size() * model.state_width);
    previous.swap(following);
    active.swap(staying);
  }

  // All of them leave, whatever they have said.
  template <class Ended>
  void abandon(const Ended &ended) {
    for (auto &one : active) ended(*one);
    active.clear(), states.clear(), previous.clear();
  }
};

// Is there room enough for new sentences? A few at a time: encoding one alone would be slow, waiting for many would
// leave places empty.
inline bool admits(int64_t rows, int64_t used, int64_t width) {
  const int64_t capacity = std::max<int64_t>(1, rows / width), room = (rows - used) / width;
  return !used || room >= std::max<int64_t>(1, capacity / 4);
}

// One worker of a request: takes sentences as places become free, until there are none.
inline void work(Search &search, const Model &model, int64_t rows) {
  Batch batch(model);
  const int64_t width = search.width();
  while (true) {
    if (admits(rows, batch.width(), width)) {
      std::vector<std::unique_ptr<Active>> fresh;
      for (int64_t room = std::max(rows - batch.width(), batch.empty() ? width : 0); room >= width; room -= width) {
        auto one = search.take();
        if (!one) break;
        fresh.push_back(std::move(one));
      }
      const bool came = !fresh.empty();
      batch.admit(std::move(fresh), true);
      if (came && batch.empty()) continue;
    }
    if (batch.empty()) return;
    batch.step([](const Active &) { return true; }, [](const Active &) {});
  }
}

}  // namespace engine
