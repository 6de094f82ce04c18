"""`regarde studio` over HTTP: the page, and run folders as they stand on the disk."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.serving.conftest import Running


@pytest.fixture(scope="module")
def studio(tiny: Path, serve: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A trained run, and one that has just begun."""
    begun = tmp_path_factory.mktemp("begun")
    (begun / "metrics.jsonl").write_text('{"step": 1, "loss": 2.5}\n')
    with serve(f"tiny={tiny}", f"begun={begun}", "--no-open", name="studio") as found:
        yield found


def test_the_page_comes_with_a_policy_that_lets_nothing_else_in(studio: Running) -> None:
    page = studio.get("/")
    assert page.status == 200
    assert b"studio.js" in page.body
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    for name, kind in (("studio.js", "javascript"), ("studio.css", "css"), ("licences.txt", "plain")):
        assert kind in studio.get(f"/{name}").headers["content-type"]


def test_a_server_without_the_studio_has_no_page(server: Running) -> None:
    assert server.get("/studio.js").status == 404
    assert server.get("/studio/runs").status == 404


def test_runs_are_listed_trained_or_not(studio: Running) -> None:
    tiny, begun = studio.get("/studio/runs").json["runs"]
    assert (tiny["name"], tiny["model"], begun["name"], begun["model"]) == ("tiny", True, "begun", False)
    assert [model["name"] for model in studio.get("/v1/models").json["models"]] == ["tiny"]


def test_figures_come_from_where_they_were_left(studio: Running) -> None:
    first = studio.get("/studio/runs/begun/figures").json
    assert first["rows"] == [{"step": 1, "loss": 2.5}]
    assert studio.get(f"/studio/runs/begun/figures?start={first['next']}").json["rows"] == []


def test_a_checkpoint_is_asked_for_a_sample(studio: Running) -> None:
    step = studio.get("/studio/runs").json["runs"][0]["checkpoints"][-1]
    found = studio.get(f"/studio/runs/tiny/sample?step={step}&text=abc").json
    assert found["source_tokens"] == ["a", "b", "c", "</s>"]
    assert len(found["attention"]) == len(found["tokens"])
    assert studio.get(f"/studio/runs/tiny/sample?step={step}&text=").json["text"] == ""


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/studio/runs/other/figures", 404),
        ("/studio/runs/..%2F..%2Fetc/figures", 404),
        ("/studio/runs/tiny/sample?step=12345&text=abc", 404),
        ("/studio/runs/tiny/sample?step=-1&text=abc", 422),
        ("/studio/runs/tiny/sample?step=1000000000000000000000&text=abc", 422),
        ("/studio/runs/begun/figures?start=%D9%A3", 422),
        ("/studio/runs/begun/sample?step=0&text=abc", 404),
        ("/../../../etc/passwd", 404),
        ("/..%2f..%2f..%2fetc%2fpasswd", 404),
        ("/none", 404),
    ],
)
def test_what_is_not_there_is_refused(path: str, status: int, studio: Running) -> None:
    reply = studio.get(path)
    assert (reply.status, list(reply.json)) == (status, ["error"])


def test_a_page_elsewhere_may_not_ask(studio: Running) -> None:
    assert studio.get("/studio/runs", host="evil.example").status == 421
    assert studio.get("/studio/runs", origin="http://evil.example").status == 403
