"""Counters and gauges in the format of Prometheus. No label contains anything that a client sent."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator

from regarde.serving.http.admission import Admission

BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, math.inf)


class Metrics:
    """Counts events, and writes the counts as text."""

    def __init__(self) -> None:
        self.requests: Counter[tuple[str, int]] = Counter()  # by route and status
        self.sentences: Counter[str] = Counter()  # by model
        self.repaired = 0  # texts with NUL or lone surrogates, which were replaced
        self.disconnects = 0  # clients that closed the connection before their response
        self.starts = 0  # of the worker process
        self._seconds: defaultdict[str, Counter[float]] = defaultdict(Counter)
        self._sums: Counter[str] = Counter()

    def count_response(self, route: str, status: int, seconds: float) -> None:
        self.requests[route, status] += 1
        self._seconds[route][next(bound for bound in BUCKETS if seconds <= bound)] += 1
        self._sums[route] += seconds  # type: ignore[assignment]  # a counter of floats works too

    def text(self, admission: Admission, ready: bool) -> str:
        """The exposition format, version 0.0.4."""
        return "".join(f"{line}\n" for line in self._lines(admission, ready))

    def _lines(self, admission: Admission, ready: bool) -> Iterator[str]:
        yield "# TYPE regarde_requests_total counter"
        for (route, status), count in sorted(self.requests.items()):
            yield f'regarde_requests_total{{route="{route}",status="{status}"}} {count}'
        yield "# TYPE regarde_request_seconds histogram"
        for route, counts in sorted(self._seconds.items()):
            total = 0
            for bound in BUCKETS:
                total += counts[bound]
                shown = "+Inf" if bound == math.inf else f"{bound:g}"
                yield f'regarde_request_seconds_bucket{{route="{route}",le="{shown}"}} {total}'
            yield f'regarde_request_seconds_sum{{route="{route}"}} {self._sums[route]:.6f}'
            yield f'regarde_request_seconds_count{{route="{route}"}} {total}'
        yield "# TYPE regarde_sentences_total counter"
        for model, count in sorted(self.sentences.items()):
            yield f'regarde_sentences_total{{model="{model}"}} {count}'
        for name, kind, value in (
            ("repaired_texts_total", "counter", self.repaired),
            ("clients_left_total", "counter", self.disconnects),
            ("worker_starts_total", "counter", self.starts),
            ("sentences_under_way", "gauge", admission.in_progress),
            ("expected_wait_seconds", "gauge", round(admission.wait, 6)),
            ("ready", "gauge", int(ready)),
        ):
            yield f"# TYPE regarde_{name} {kind}"
            yield f"regarde_{name} {value}"
