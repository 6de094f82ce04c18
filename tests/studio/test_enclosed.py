"""The studio's page with a trace inside it."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from pathlib import Path

import pytest

import regarde
from regarde.studio.enclosed import page

HOSTILE = '</script><img src=x onerror="alert(1)">\u202e<!--'


@pytest.fixture(scope="module")
def written(tiny: Path) -> str:
    trace = regarde.load(tiny).trace(HOSTILE, beam=2, n_best=2)
    return page({"name": "<tiny>", "settings": {"kind": "bahdanau"}}, trace)


def test_the_policy_names_script_and_style_by_their_hash(written: str) -> None:
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', written)
    assert policy is not None
    assert "unsafe" not in policy[1]
    for tag in ("style", "script"):
        (inside,) = re.findall(rf"<{tag}>(.*?)</{tag}>", written, re.DOTALL)
        assert base64.b64encode(hashlib.sha256(inside.encode()).digest()).decode() in policy[1]


def test_the_trace_comes_back_as_it_was(written: str) -> None:
    (data,) = re.findall(r'<script type="application/json" id="enclosed">(.*?)</script>', written, re.DOTALL)
    assert json.loads(data)["trace"]["source"] == HOSTILE
    assert json.loads(data)["model"]["name"] == "<tiny>"


def test_a_sentence_cannot_become_an_element(written: str) -> None:
    assert written.count("<script") == 2
    assert "<img" not in written
    assert "\u202e" not in written


def test_the_page_asks_nobody_for_anything(written: str) -> None:
    assert re.findall(r'\b(?:src|href)="([^"]*)"', written.split("<script", 1)[0]) == ["data:,"]
