"""A real browser before a real studio. Where there is none, the tests say so at the end, loudly."""

from __future__ import annotations

import importlib.util
import json
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path
from typing import Any

import pytest

from regarde.native import library
from tests.conftest import environment

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
NEEDED = ("playwright", "axe_playwright_python", "starlette")
LIBRARIES = [name for name in NEEDED if not importlib.util.find_spec(name)]
MISSING = [*([] if CHROMIUM else ["chromium"]), *LIBRARIES, *([] if library.available() else ["the native library"])]
STARTED = re.compile(r"studio at (http://127\.0\.0\.1:\d+)")
HERE = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.browser)
            if MISSING:
                item.add_marker(pytest.mark.skip(reason=f"no {', no '.join(MISSING)}"))


def pytest_terminal_summary(terminalreporter: Any) -> None:
    if MISSING:
        left = [r for r in terminalreporter.stats.get("skipped", []) if "tests/browser" in r.nodeid]
        told = f"{len(left)} BROWSER TESTS DID NOT RUN: no {', no '.join(MISSING)}. Run: make browser"
        terminalreporter.write_sep("!", told, red=True, bold=True)


@pytest.fixture(scope="module")  # while it lives, no other test of the same process can run an event loop
def browser() -> Iterator[Any]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox", "--disable-gpu"])
        yield found
        found.close()


@pytest.fixture(scope="session")
def heads(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a tiny Transformer that has learned nothing yet; nobody may change it."""
    from regarde.training.start import train

    folder = tmp_path_factory.mktemp("heads")
    (folder / "pairs.tsv").write_text("".join(f"{n:03}\t{n:03}\n" for n in range(60)))
    sizes = ["training.steps=2", "model.size=16", "model.heads=2", "model.feed_forward=16"]
    sizes += ["search.kind=beam", "search.penalty=power", "search.alpha=0.8"]
    return train(folder / "pairs.tsv", preset="transformer-small", settings=sizes, out=folder / "run").folder


@pytest.fixture(scope="session")
def letters(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of a lab on two models, as much of it as the studio reads."""
    folder = tmp_path_factory.mktemp("lab") / "letters"
    folder.mkdir()
    groups = [("1 to 5", 0.9), ("6 to 10", 0.7), ("11 to 15", 0.4)]
    quality = {name: [(group, v - lost) for group, v in groups] for name, lost in (("tiny", 0.0), ("plain", 0.2))}
    entries = [
        {
            "name": name,
            "by_length": [
                {"group": group, "pairs": 50, "quality": {"value": v, "low": v - 0.1, "high": v + 0.05}}
                for group, v in points
            ],
        }
        for name, points in quality.items()
    ]
    metric = {"label": "exact match", "percent": True, "digits": 1, "higher_is_better": True}
    stated = {"test": "copy test", "budget": "1 minute", "lengths": "source length in characters"}
    content = {"format": 1, "metrics": [metric], "entries": entries, **stated}
    (folder / "report.json").write_text(json.dumps(content))
    return folder


@pytest.fixture(scope="session")
def studio(tiny: Path, plain: Path, heads: Path, letters: Path) -> Iterator[str]:
    """The address of a studio with three models, tiny, plain and heads, and a report."""
    with started(f"tiny={tiny}", f"plain={plain}", f"heads={heads}", "--report", str(letters)) as address:
        yield address


@contextmanager
def started(*arguments: str) -> Iterator[str]:
    """The address of a studio, which is gone afterwards."""
    command = [sys.executable, "-m", "regarde", "studio", *arguments, "--no-open", "--port", "0", "--threads", "1"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment()) as process:
        assert process.stderr is not None
        found = None
        while not found:  # a warning may come first
            line = process.stderr.readline()
            assert line
            found = STARTED.search(line)
        yield f"{found[1]}/"
        process.terminate()
        assert process.wait(timeout=20) in (0, 143, -15)


@dataclass
class Watched:
    """A page, and everything that went wrong on it."""

    page: Any
    base: str
    problems: list[str] = field(default_factory=list)

    def open(self, hash_: str) -> Any:
        self.page.goto("about:blank")  # a new hash alone would not load the page anew
        self.page.goto(self.base + hash_)
        return self.page

    def violations(self) -> list[str]:
        """What axe finds wrong with the page for who cannot see it or has no mouse."""
        source = (resources.files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8")
        self.page.evaluate(source)
        found = self.page.evaluate("axe.run(document, {resultTypes: ['violations']})")
        return [f"{v['id']}: {v['help']}: {n['html'][:160]}" for v in found["violations"] for n in v["nodes"]]


Look = Callable[..., Watched]


@pytest.fixture
def look(browser: Any, studio: str) -> Iterator[Look]:
    """Open a page of the studio; at the end nothing may have gone wrong on any."""
    opened: list[tuple[Any, Watched]] = []

    def call(
        hash_: str = "", *, base: str = studio, width: int = 1280, scheme: str = "light", motion: bool = False
    ) -> Watched:
        context = browser.new_context(
            viewport={"width": width, "height": 900},
            color_scheme=scheme,
            reduced_motion="no-preference" if motion else "reduce",  # nobody waits for what fades
        )
        page = context.new_page()
        page.set_default_timeout(20_000)
        watched = Watched(page, base)
        page.on("console", lambda said: watched.problems.append(f"console {said.type}: {said.text}"))
        page.on("pageerror", lambda error: watched.problems.append(f"error: {error}"))
        page.on("request", lambda asked: _off(asked.url, base) and watched.problems.append(f"asked {asked.url}"))
        opened.append((context, watched))
        watched.open(hash_)
        return watched

    yield call
    for context, watched in opened:
        context.close()
        assert watched.problems == []


def _off(url: str, base: str) -> bool:
    return not url.startswith((base, "data:", "blob:", "about:"))
