"""The built page in the package is that of the sources, and asks nothing of anybody else."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path

import pytest

from regarde.studio import STATIC

SOURCES = Path(__file__).parents[2] / "studio"


def fingerprint() -> str:
    """As studio/build.mjs has it: the SHA-256 over the name and content of every source."""
    inside = [path for path in (SOURCES / "src").rglob("*") if path.is_file()]
    others = [SOURCES / name for name in ("index.html", "package.json", "package-lock.json", "build.mjs")]
    hashed = hashlib.sha256()
    for name, path in sorted((path.relative_to(SOURCES).as_posix(), path) for path in [*inside, *others]):
        hashed.update(name.encode() + b"\0" + path.read_bytes() + b"\0")
    return hashed.hexdigest()


def test_the_bundle_is_as_new_as_its_sources() -> None:
    built = json.loads((STATIC / "built.json").read_text(encoding="utf-8"))
    assert built["sources"] == fingerprint(), "The page is older than its sources. Run: make studio"


def test_the_page_is_one_html_one_style_sheet_and_one_script() -> None:
    page = (STATIC / "index.html").read_text(encoding="utf-8")
    assert re.findall(r'(?:src|href)="([^"]*)"', page) == ["data:,", "studio.css", "studio.js"]
    assert "style=" not in page
    assert not re.findall(r"<script[^>]*>[^<]", page)


@pytest.mark.parametrize("name", ["studio.js", "studio.css"])
def test_the_bundle_asks_nobody_else(name: str) -> None:
    text = (STATIC / name).read_text(encoding="utf-8")
    assert set(re.findall(r"https?://[\w./-]+", text)) <= {
        "http://www.w3.org/2000/svg",
        "http://www.w3.org/1999/xhtml",
        "http://www.w3.org/1998/Math/MathML",
        "http://www.w3.org/1999/xlink",
        "http://www.w3.org/XML/1998/namespace",
    }
    assert "@import" not in text


def test_the_bundle_is_small() -> None:
    assert sum((STATIC / name).stat().st_size for name in ("studio.js", "studio.css")) < 250_000


def test_the_licenses_of_what_is_in_the_bundle_come_with_it() -> None:
    licenses = (STATIC / "licenses.txt").read_text(encoding="utf-8")
    for name in json.loads((SOURCES / "package.json").read_text(encoding="utf-8"))["dependencies"]:
        assert f"{name} " in licenses
    assert licenses.count("Permission is hereby granted") == 3


def test_the_lock_file_names_no_place_to_download_from() -> None:
    assert "resolved" not in (SOURCES / "package-lock.json").read_text(encoding="utf-8")
