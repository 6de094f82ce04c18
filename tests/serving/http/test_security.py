"""Who may ask, and what nobody can find out."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from regarde.serving.http.keys import add, read
from tests.conftest import Command
from tests.serving.conftest import Running

METHODS = ["GET", "HEAD", "POST", "PUT", "DELETE", "PATCH", "OPTIONS"]
PATHS = ["/v1/translate", "/translate", "/health", "/", "/nowhere"]


@pytest.mark.parametrize("method", METHODS)
def test_a_foreign_host_is_refused_by_every_method(server: Running, method: str) -> None:
    for path in PATHS:
        for host in ("evil.example", f"evil.example:{server.port}", "127.0.0.1.evil.example", ""):
            assert server.send(method, path, host=host).status == 421, (path, host)
    assert server.get("/health", host="LocalHost:1").status == 200


@pytest.mark.parametrize("method", METHODS)
def test_a_foreign_origin_is_refused_by_every_method(server: Running, method: str) -> None:
    for path in PATHS:
        for origin in (
            "http://evil.example",
            "null",
            "http://localhost:1",
            f"http://127.0.0.1:{server.port}.evil.example",
        ):
            assert server.send(method, path, origin=origin).status == 403, (path, origin)


def test_a_page_of_the_server_itself_may_ask(server: Running) -> None:
    answer = server.post("/v1/translate", {"text": "a"}, origin=server.url)
    assert answer.status == 200
    assert "access-control-allow-origin" not in answer.headers


@pytest.mark.parametrize("path", ["/health", "/nowhere", "/docs", "/metrics"])
def test_every_answer_has_the_headers_that_protect_a_browser(server: Running, path: str) -> None:
    headers = server.get(path).headers
    assert headers["content-security-policy"].startswith("default-src 'none'")
    assert "unsafe" not in headers["content-security-policy"]
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["x-frame-options"] == "DENY"
    assert headers["cache-control"] == "no-store"
    assert "server" not in headers


@pytest.mark.parametrize("name", ["../../etc/passwd", "/etc/passwd", "tiny/../plain", "TINY", "", "nobody", "tiny\x00"])
def test_a_model_is_one_of_the_list_and_never_a_path(server: Running, name: str) -> None:
    answer = server.post("/v1/translate", {"text": "a", "model": name})
    assert answer.status == 404
    assert "passwd" not in answer.body.decode()


@pytest.mark.parametrize(
    "path", ["/../../etc/passwd", "/%2e%2e/%2e%2e/etc/passwd", "/v1/../../etc/passwd", "//etc/passwd"]
)
def test_there_is_no_way_to_files(server: Running, path: str) -> None:
    assert server.get(path).status == 404


def test_an_address_that_others_reach_needs_keys(cli: Command, tiny: Path) -> None:
    assert "--keys" in cli("serve", tiny, "--host", "0.0.0.0").fails(2)


@pytest.fixture(scope="module")
def keyed(
    serve: Callable[..., Any], tiny: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[Running, str]]:
    """A server that asks for a key and logs all it may, and a key."""
    file = tmp_path_factory.mktemp("keys") / "keys"
    key = add(file, "test")
    with serve(f"tiny={tiny}", "--keys", file, "--log", "--allow-origin", "http://friend.example") as found:
        yield found, key


def test_without_a_key_nobody_is_let_in(keyed: tuple[Running, str]) -> None:
    server, key = keyed
    for wrong in ("", f"Bearer {key}x", f"Basic {key}", "Bearer", f"Bearer {key[:-1]}"):
        answer = server.post("/v1/translate", {"text": "a"}, authorization=wrong)
        assert (answer.status, answer.headers["www-authenticate"]) == (401, "Bearer")
    for path in ("/v1/models", "/metrics"):
        assert server.get(path).status == 401
        assert server.get(path, authorization=f"Bearer {key}").status == 200
    assert server.post("/v1/translate", {"text": "a"}, authorization=f"Bearer {key}").status == 200
    assert server.get("/health").status == 200


def test_a_client_of_libretranslate_sends_its_key_as_it_does(keyed: tuple[Running, str]) -> None:
    server, key = keyed
    asked = {"q": "a", "target": "und"}
    form = {"content_type": "application/x-www-form-urlencoded"}
    assert server.post("/translate", asked).status == 403
    assert server.post("/translate", asked | {"api_key": "wrong"}).status == 403
    assert server.post("/translate", asked | {"api_key": key}).status == 200
    assert server.send("POST", f"/translate?q=a&target=und&api_key={key}").status == 200
    assert server.send("POST", "/translate", f"q=a&target=und&api_key={key}".encode(), **form).status == 200
    assert server.post("/detect", {"q": "a"}).status == 403


def test_no_key_and_no_text_is_logged_or_counted(keyed: tuple[Running, str]) -> None:
    server, key = keyed
    secret = "abcdabcd"
    server.send("POST", f"/translate?q={secret}&target=und&api_key={key}")
    server.get(f"/{secret}?{secret}", authorization=f"Bearer {key}")
    server.send(secret.upper(), "/health")
    metrics = server.get("/metrics", authorization=f"Bearer {key}").body.decode()
    lines = server.heard()
    assert any(json.loads(line)["route"] == "/translate" for line in lines)
    for text in (metrics, *lines):
        assert secret not in text.lower()
        assert key not in text


def test_a_page_of_an_origin_that_is_allowed_may_ask_and_read(keyed: tuple[Running, str]) -> None:
    server, key = keyed
    answer = server.get("/v1/models", origin="http://friend.example", authorization=f"Bearer {key}")
    assert answer.headers["access-control-allow-origin"] == "http://friend.example"
    before = server.send(
        "OPTIONS",
        "/v1/translate",
        origin="http://friend.example",
        access_control_request_method="POST",
        access_control_request_headers="authorization,content-type",
    )
    assert before.status == 204
    assert "authorization" in before.headers["access-control-allow-headers"]


def test_a_key_is_kept_as_a_hash_in_a_file_of_its_owner(tmp_path: Path) -> None:
    file = tmp_path / "keys"
    first, second = add(file, "one"), add(file, "two")
    assert first not in file.read_text()
    assert file.stat().st_mode & 0o077 == 0
    keys = read(file)
    assert keys.allow(first)
    assert keys.allow(second)
    assert not keys.allow(f"{first}x")
    assert not keys.allow("")


def test_text_is_logged_where_that_is_asked_for_with_control_characters_escaped(
    serve: Callable[..., Any], tiny: Path
) -> None:
    with serve(f"tiny={tiny}", "--log-text") as server:
        server.post("/v1/translate", {"text": "ab\x1b[31m\nc"})
        lines = server.heard()
        assert "\x1b" not in "".join(lines)
        assert ["ab\x1b[31m\nc"] in [json.loads(line).get("texts") for line in lines]
