// Requests that come while others are answered: their sentences share the batches of a few threads that never end.
#pragma once
#include <unistd.h>

#include <condition_variable>
#include <deque>
#include <map>
#include <system_error>
#include <thread>

#include "answer.h"
#include "batch.h"

namespace engine {

// What became of a request.
struct Event {
  enum Kind : int64_t { PART, DONE, GIVEN_UP } kind;
  int64_t number;
  std::unique_ptr<Answer> answer;
};

class Continuous {
  struct Ticket : Search {
    int64_t number, left;  // sentences without an answer
    bool followed;         // each word is to be told
    bool unwanted = false;
    std::string error;
    Ticket(const Model &model, const Table &table, const Request &request, const Shortlist &shortlist, int64_t number,
           bool followed)
        : Search(model, table, request, shortlist), number(number), left(tasks()), followed(followed) {}
  };

  const Model &model;
  const Table &table;
  const Shortlist &shortlist;
  const int64_t rows;
  const int told;  // a pipe: a byte is written where there were no events
  std::mutex mutex;
  std::condition_variable woken;
  std::map<int64_t, std::unique_ptr<Ticket>> tickets;
  std::deque<std::pair<Ticket *, std::unique_ptr<Active>>> waiting;  // each request once, with its next sentence
  std::deque<Event> events;
  int64_t queued = 0;  // sentences that no thread has taken
  int64_t idle = 0;
  bool over = false;
  std::vector<std::thread> workers;

 public:
  Continuous(const Model &model, const Table &table, const Shortlist &shortlist, int64_t rows, int64_t threads, int told)
      : model(model), table(table), shortlist(shortlist), rows(rows), told(told) {
    try {
      for (int64_t i = 0; i < threads; i++) workers.emplace_back([this] { work(); });
    } catch (const std::system_error &) {  // no more threads to be had: those there are do the work
      if (workers.empty()) throw;
    }
  }
  ~Continuous() {
    {
      std::lock_guard<std::mutex> hold(mutex);
      over = true;
    }
    woken.notify_all();
    for (std::thread &worker : workers) worker.join();
  }
  Continuous(const Continuous &) = delete;
  Continuous &operator=(const Continuous &) = delete;

  // What the request points to must stay until its last event.
  void submit(int64_t number, const Request &request, bool followed) {
    auto ticket = std::make_unique<Ticket>(model, table, request, shortlist, number, followed);
    std::unique_ptr<Active> first = ticket->take();
    {
      std::lock_guard<std::mutex> hold(mutex);
      queued += ticket->left;
      waiting.emplace_back(ticket.get(), std::move(first));
      tickets[number] = std::move(ticket);
    }
    woken.notify_one();
  }

  // Nobody wants the answer any more; the last event comes all the same, once the request is out of everything.
  void cancel(int64_t number) {
    std::lock_guard<std::mutex> hold(mutex);
    auto found = tickets.find(number);
    if (found == tickets.end()) return;
    found->second->unwanted = true;
    for (auto place = waiting.begin(); place != waiting.end(); ++place)
      if (place->first->number == number) {
        Ticket *ticket = place->first;
        waiting.erase(place);
        const int64_t count = untaken(*ticket) + 1;
        queued -= count;
        leave(*ticket, count);
        return;
      }
  }

  bool next(Event &event) {
    std::lock_guard<std::mutex> hold(mutex);
    if (events.empty()) return false;
    event = std::move(events.front());
    events.pop_front();
    return true;
  }

 private:
  static constexpr int64_t SOME = 2, PATIENCE = 4;

  void work() {
    Batch batch(model);
    int64_t steps = 0;  // since somebody was let in
    while (true) {
      try {
        std::vector<std::unique_ptr<Active>> found = fresh(batch, steps);
        steps = found.empty() ? steps + 1 : 0;
        batch.admit(std::move(found));
        if (batch.empty()) return;
        batch.step([this](Active &one) { return goes_on(one); }, [this](Active &one) { end(one); });
      } catch (const std::exception &problem) {  // nothing that a request can say leads here; but nobody may wait for ever
        const std::string said = cause(problem);
        batch.abandon([&](Active &one) { end(one, said); });
      }
    }
  }

  // New sentences as far as there is room, a request's next one after those of the others; it waits where there is
  // nothing else to do. None, and an empty batch: it is over.
  std::vector<std::unique_ptr<Active>> fresh(Batch &batch, int64_t steps) {
    std::vector<std::unique_ptr<Active>> found;
    int64_t used = batch.width();
    std::unique_lock<std::mutex> hold(mutex);
    if (!used) {
      idle++;
      woken.wait(hold, [this] { return over || !waiting.empty(); });
      idle--;
    }
    if (over) {
      batch.abandon([](Active &) {});
      return found;
    }
    if (waiting.empty() || !admits(rows, used, waiting.front().first->width())) return found;
    // among many nobody notices a few steps, and to encode one alone takes as long as to encode a few
    if (SOME * queued < batch.size() && steps < batch.size() / PATIENCE) return found;
    while (!waiting.empty()) {
      Ticket *ticket = waiting.front().first;
      const int64_t width = ticket->width();
      if (used && used + width > rows) break;
      used += width, queued--;
      found.push_back(std::move(waiting.front().second));
      waiting.pop_front();
      if (auto another = ticket->take()) waiting.emplace_back(ticket, std::move(another));
      if (idle && static_cast<int64_t>(found.size()) > static_cast<int64_t>(waiting.size())) break;  // for who is idle
    }
    if (!waiting.empty()) woken.notify_one();
    return found;
  }

  bool goes_on(const Active &one) {
    std::lock_guard<std::mutex> hold(mutex);
    const auto &ticket = static_cast<const Ticket &>(*one.search);
    if (ticket.unwanted) return false;
    if (ticket.followed) {
      auto said = std::make_unique<Answer>();
      said->numbers.push_back(one.sentence.number);
      said->numbers.insert(said->numbers.end(), one.words.begin(), one.words.begin() + one.t);
      tell({Event::PART, ticket.number, std::move(said)});
    }
    return true;
  }

  void end(const Active &one, const std::string &error = "") {
    std::lock_guard<std::mutex> hold(mutex);
    auto &ticket = static_cast<Ticket &>(*one.search);
    if (!error.empty()) ticket.error = error;
    leave(ticket, 1);
  }

  static int64_t untaken(Ticket &ticket) {
    int64_t count = 0;
    while (ticket.take()) count++;
    return count;
  }

  // With the mutex held: so many sentences of a request have left, and with the last of them the request.
  void leave(Ticket &ticket, int64_t count) {
    ticket.left -= count;
    if (ticket.left > 0) return;
    auto answer = std::make_unique<Answer>();
    answer->error = ticket.error;
    const bool wanted = !ticket.unwanted && ticket.error.empty();
    if (wanted) answer->take(ticket);
    const int64_t number = ticket.number;
    tickets.erase(number);
    tell({wanted || !answer->error.empty() ? Event::DONE : Event::GIVEN_UP, number, std::move(answer)});
  }

  void tell(Event event) {
    events.push_back(std::move(event));
    if (events.size() > 1) return;
    const auto written = write(told, "!", 1);
    (void)written;  // a full pipe wakes whoever reads it as well
  }
};

}  // namespace engine
