"""What is refused before a model is asked, each rule by itself: names, fields and rates."""

from __future__ import annotations

import time

import pytest
from starlette.datastructures import Headers

from regarde.serving.http.admission import Admission
from regarde.serving.http.limits import Limits, RequestError
from regarde.serving.http.security import Policy
from regarde.serving.routes.fields import Strings


@pytest.mark.parametrize("hosts", [[], ["localhost", "localhost"], ["localhost", "elsewhere.example"]])
def test_a_request_names_its_host_once(hosts: list[str]) -> None:
    Policy().check_names(Headers(raw=[(b"host", b"localhost:80")]))
    with pytest.raises(RequestError, match="host name is not allowed"):
        Policy().check_names(Headers(raw=[(b"host", host.encode()) for host in hosts]))


def test_the_limit_of_characters_is_one_for_all_texts_together() -> None:
    field = Strings("Texts.", longest=10, most=3)
    assert field.check("text", ["abcde", "fghij"]) == ["abcde", "fghij"]
    with pytest.raises(RequestError, match="11 characters, expected at most 10"):
        field.check("text", ["abcde", "fghijk"])


def test_a_rate_is_regained_evenly_and_never_saved_up(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1000.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    admission = Admission(Limits(rate=30))  # one more every two seconds
    for wait, allowed in [(0.0, 30), (2.0, 1), (3.0, 1), (2.0, 1), (10_000.0, 30)]:
        now += wait
        for _ in range(allowed):
            admission.count_request("client")
        with pytest.raises(RequestError) as refused:
            admission.count_request("client")
        assert refused.value.retry_after in (1, 2)
