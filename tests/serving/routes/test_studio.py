"""`regarde studio` over HTTP: the page, and run folders as they stand on the disk."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from regarde.folder.manifest import add_file
from tests.serving.conftest import Running


@pytest.fixture(scope="module")
def begun(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that has just begun."""
    folder = tmp_path_factory.mktemp("begun")
    (folder / "metrics.jsonl").write_text('{"step": 1, "loss": 2.5}\n')
    return folder


@pytest.fixture(scope="module")
def studio(tiny: Path, begun: Path, serve: Any) -> Iterator[Running]:
    """A trained run, and one that has just begun."""
    with serve(f"tiny={tiny}", f"begun={begun}", "--no-open", name="studio") as found:
        yield found


def test_the_page_comes_with_a_policy_that_lets_nothing_else_in(studio: Running) -> None:
    page = studio.get("/")
    assert page.status == 200
    assert b"studio.js" in page.body
    policy = page.headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    for name, kind in (("studio.js", "javascript"), ("studio.css", "css"), ("licenses.txt", "plain")):
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


@pytest.mark.parametrize(
    "line",
    [
        b"[" * 100_000,
        b'{"step": 2, "loss": ' + b'{"a":' * 100_000,
        b'{"step": 1' + b"0" * 400 + b"}",
        b'{"step": 1' + b"0" * 5000 + b"}",
        b'{"step": NaN, "loss": 1}',
        b'{"step": true}',
        b'{"loss": 1.0}',
        b'{"step": "2"}',
        b'{"step": 2, "\xff": 1}',
        b"[1, 2]",
        b"7",
        b"",
        b"\x00\xff\xfe",
        b'{"step": 2, "loss": "' + b"x" * (5 << 20) + b'"}',
    ],
    ids=lambda line: repr(line[:24]),
)
def test_a_line_that_is_no_record_is_left_out_and_counted(line: bytes, studio: Running, begun: Path) -> None:
    path = begun / "metrics.jsonl"
    before = path.read_bytes()
    try:
        path.write_bytes(before + line + b"\n" + b'{"step": 3, "loss": 2.0}\n')
        rows, unread, start = [], 0, 0
        for _ in range(4):
            reply = studio.get(f"/studio/runs/begun/figures?start={start}")
            assert reply.status == 200
            rows, unread, start = rows + reply.json["rows"], unread + reply.json["unread"], reply.json["next"]
        assert start == path.stat().st_size
        assert (rows[0], rows[-1], unread) == ({"step": 1, "loss": 2.5}, {"step": 3, "loss": 2.0}, len(rows) == 2)
    finally:
        path.write_bytes(before)


def test_numbers_and_names_that_json_cannot_hold_are_left_out_of_a_row(studio: Running, begun: Path) -> None:
    path = begun / "metrics.jsonl"
    before = path.read_bytes()
    odd = (
        f'{{"step": 4, "\\ud800": 1, "a": Infinity, "b": -1{"0" * 400}, "c": [1], "d": null, "e": false, "f": -0.5}}\n'
    )
    try:
        path.write_text(odd)
        assert studio.get("/studio/runs/begun/figures").json["rows"] == [{"step": 4, "f": -0.5}]
        path.unlink()
        os.mkfifo(path)
        assert studio.get("/studio/runs/begun/figures").json["rows"] == []
    finally:
        path.unlink()
        path.write_bytes(before)


def test_a_checkpoint_that_cannot_be_read_is_not_found(studio: Running, begun: Path, tiny: Path) -> None:
    step = studio.get("/studio/runs").json["runs"][0]["checkpoints"][-1]
    for number, content in enumerate(["a = " + "[" * 100_000, "a = nan", "\x00", ""]):
        folder = begun / "checkpoints" / f"step-{number}"
        shutil.copytree(tiny / "checkpoints" / f"step-{step}", folder)
        add_file(folder, "config.toml", content.encode())
        assert studio.get(f"/studio/runs/begun/sample?step={number}&text=abc").status == 404


def test_a_sample_is_bounded_like_a_translation(studio: Running) -> None:
    step = studio.get("/studio/runs").json["runs"][0]["checkpoints"][-1]
    reply = studio.get(f"/studio/runs/tiny/sample?step={step}&text={'a' * 300}")
    assert reply.status == 422
    assert "expected at most 250" in reply.json["error"]


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
