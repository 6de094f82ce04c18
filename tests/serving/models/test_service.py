"""Texts that are hard to read: they keep nobody else waiting, and what waits to be read has a deadline."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from starlette.requests import Request

from regarde.folder.loading import load_scribe
from regarde.serving.http.admission import Admission
from regarde.serving.http.limits import Limits, RequestError
from regarde.serving.http.log import Log
from regarde.serving.http.metrics import Metrics
from regarde.serving.http.security import Policy
from regarde.serving.models.client import WorkerClient
from regarde.serving.models.encoding import RequestEncoder
from regarde.serving.models.requests import PredictionRequest
from regarde.serving.models.service import Service
from regarde.serving.models.sizes import ResponseSizes
from tests.serving.conftest import Running

AT_ONCE = 8  # requests
LIVE = 1.0  # seconds; 0.1 on a machine that does nothing else, and 4.7 when texts were read on the event loop
BETWEEN = {"source": "de", "target": "en"}
HOSTILE: dict[str, tuple[str, dict[str, Any]]] = {
    "tags": ("/translate", BETWEEN | {"q": "<a" * 10_000, "format": "html"}),
    "quotes": ("/translate", BETWEEN | {"q": "<a '" * 4_999 + "<b>", "format": "html"}),
    "dots": ("/translate", BETWEEN | {"q": ".)" * 10_000}),
    "marks": ("/v1/translate", {"text": "e" + "\u0316\u0300" * 9_999}),
}


@pytest.fixture(scope="module")
def served(german: Path, serve: Any) -> Iterator[Running]:
    with serve(f"de-en={german}") as found:
        found.post("/translate", BETWEEN | {"q": "abc"})
        yield found


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_texts_keep_nobody_waiting(served: Running, name: str) -> None:
    waited, ended = [], threading.Event()
    with ThreadPoolExecutor(AT_ONCE) as clients:
        answers = [clients.submit(served.post, *HOSTILE[name]) for _ in range(AT_ONCE)]
        threading.Thread(target=lambda: [answer.exception() for answer in answers] and ended.set()).start()
        began = time.monotonic()
        ordinary = served.post("/translate", BETWEEN | {"q": "abc"})
        took = time.monotonic() - began
        while not ended.wait(0.01):
            began = time.monotonic()
            assert served.get("/health/live").status == 200
            waited.append(time.monotonic() - began)
    assert ordinary.status == 200
    assert took < Limits().deadline / 2
    assert max(waited, default=0.0) < LIVE
    assert {answer.result().status for answer in answers} <= {200, 422, 503}
    print(f"{name}: ordinary {took:.3f} s, live {max(waited, default=0.0):.3f} s of {len(waited)}")


def test_a_prefix_is_read_once_for_all_texts(tiny: Path) -> None:
    encoder = RequestEncoder(load_scribe(tiny, 0), ResponseSizes(9, 1, 1, 1))
    request = PredictionRequest(model="", texts=["a", "b", "c"], prefix="abc", max_tokens=250, max_bytes=1 << 30)
    encoded = encoder.encode(request)
    assert len({id(sentence.prefix) for (sentence,) in encoded.texts}) == 1
    assert len(encoded.texts[0][0].prefix.ids) == 3


def test_a_large_body_of_many_values_is_refused_before_it_is_read(served: Running) -> None:
    body = b'{"text": [' + b"[]," * 300_000 + b"[]]}"
    answer = served.send("POST", "/v1/translate", body, content_type="application/json")
    assert answer.status == 400
    assert "more than 50,000 values" in answer.json["error"]


def test_a_form_may_be_as_large_as_its_text(served: Running) -> None:
    form = b"source=de&target=en&q=" + b"%20" * 19_000 + b"abc"
    answer = served.send("POST", "/translate", form, content_type="application/x-www-form-urlencoded")
    assert answer.status == 200


def test_what_waits_to_be_read_is_given_up_at_its_deadline() -> None:
    limits, read, end = Limits(deadline=0.2), [], threading.Event()
    admission, metrics = Admission(limits), Metrics()
    worker = WorkerClient({}, 1, limits.deadline, metrics, Log())
    service = Service(worker, limits, Policy(), admission, metrics, Log())

    def work(name: str) -> None:
        read.append(name)
        end.wait(30)

    async def there() -> Any:
        await asyncio.sleep(30)

    async def asked() -> list[BaseException | None]:
        requests = (
            service.prepare(Request({"type": "http"}, there), work, name, 10_000) for name in ("first", "second")
        )
        return await asyncio.gather(*requests, return_exceptions=True)

    began = time.monotonic()
    try:
        found = asyncio.run(asked())
    finally:
        end.set()
    assert time.monotonic() - began < 10
    assert [type(each) is RequestError and each.status for each in found] == [503, 503]
    assert admission.in_progress == 0
    assert read == ["first"]
