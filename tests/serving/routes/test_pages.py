"""The pages: what this server is, and what it can do, without scripts and without another host."""

from __future__ import annotations

import html
import json
import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from regarde import config
from regarde.folder.manifest import CONFIG, add_file
from regarde.serving.http.keys import add
from tests.serving.conftest import Running


def test_the_start_page_lists_the_models_and_links_to_pages_that_exist(server: Running) -> None:
    reply = server.get("/")
    page = reply.body.decode()
    assert reply.headers["content-type"].startswith("text/html")
    assert "unsafe" not in reply.headers["content-security-policy"]
    assert "<td>tiny</td>" in page
    assert "<td>plain</td>" in page
    assert "<script" not in page
    links = re.findall(r"""href=["']([^"']+)""", page)
    assert {"docs", "openapi.json", "health/ready", "v1/models"} <= set(links)
    assert all(server.get(f"/{link}").status == 200 for link in links if link != "data:,")


def test_the_examples_of_the_start_page_work(server: Running) -> None:
    page = html.unescape(server.get("/").body.decode())
    examples = re.findall(r"curl http://127\.0\.0\.1:\d+(/\S+) .*?-d '([^']+)'", page, re.DOTALL)
    assert [path for path, _ in examples] == ["/v1/predict", "/translate"]
    for path, body in examples:
        assert server.send("POST", path, body.encode(), content_type="application/json").status == 200


def test_the_start_page_has_an_example_of_each_task_that_works(tasks: Running) -> None:
    page = html.unescape(tasks.get("/").body.decode())
    examples = re.findall(r"curl http://127\.0\.0\.1:\d+(/\S+) .*?-d '([^']+)'", page, re.DOTALL)
    models = [json.loads(body).get("model") for _, body in examples]
    assert models == [None, "label", "tag", "ask", "attentive", None]
    assert "<th>kind</th></tr>" in page  # none of these models states a language
    assert tasks.get("/").body.decode().count("PROMPT") == 1
    for path, body in examples:
        assert tasks.send("POST", path, body.encode(), content_type="application/json").status == 200


def test_what_a_model_states_is_escaped(serve: Callable[..., Any], tiny: Path, tmp_path: Path) -> None:
    folder = Path(shutil.copytree(tiny, tmp_path / "run"))
    stated = config.read(folder / CONFIG) | {"target_language": "<b>'x&"}
    add_file(folder, CONFIG, config.as_text(stated).encode())
    with serve(folder) as server:
        page = server.get("/").body.decode()
    assert "<b>" not in page
    assert "&lt;b&gt;" in page


def test_without_a_key_the_start_page_names_no_model(serve: Callable[..., Any], tiny: Path, tmp_path: Path) -> None:
    add(tmp_path / "keys", "one")
    with serve(f"secret={tiny}", "--keys", tmp_path / "keys") as server:
        reply = server.get("/")
        assert reply.status == 200
        assert "secret" not in reply.body.decode()
        assert "authorization: Bearer KEY" in html.unescape(reply.body.decode())


@pytest.mark.parametrize(
    ("path", "given", "error"),
    [
        ("/v1/translate", {"text": "a", "beams": 2}, "beams: unknown field, expected one of: text, model, beam, "),
        ("/v1/translate", {"text": "a", "<b>": 2}, "A field: unknown field, expected one of: text, model, beam, "),
        ("/v1/translate", {"beam": 2}, "text: missing. Expected: A sentence to translate, or a list of sentences."),
        ("/v1/translate", {"text": "a", "beam": 0}, "beam = 0: expected an integer from 1 to 16."),
        ("/v1/translate", {"text": 7}, "text = 7: expected a string, or a list of strings."),
        ("/v1/translate", {"text": "a", "stream": 1}, "stream = 1: expected true or false."),
        ("/v1/translate", {"text": "a" * 300}, "text: a sentence of 300 tokens: expected at most 250."),
        ("/v1/translate", {"text": "a", "stream": True, "trace": True}, "trace, stream: expected at most one of them"),
        ("/translate", {"q": "a\n" * 200, "target": "und"}, "q: 201 lines, expected at most 128."),
        ("/translate", {"q": "a"}, "target: missing. Expected: Language code of the translation."),
    ],
)
def test_a_422_names_the_field_and_what_was_expected(server: Running, path: str, given: object, error: str) -> None:
    reply = server.post(path, given)
    assert reply.status == 422
    assert reply.json["error"].startswith(error)
