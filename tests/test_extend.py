"""docs/extend.md is true: its code is put into a copy of the package where the page says, and its commands are run."""

from __future__ import annotations

import ast
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import textwrap
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.request import Request, urlopen

import pytest

from regarde.native import library

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "extend.md"
BLOCK = re.compile(r"^( *)```(\w+)\n(.*?)^\1```$", re.MULTILINE | re.DOTALL)
WHERE = re.compile(
    r"Write `(?P<new>[^`]+)`:\s*$"
    r"|In `(?P<path>[^`]+)`,\s+(?:above\s+`(?P<above>\w+)`|`(?P<becomes>\w+)`\s+becomes"
    r"|with\s+the\s+(?P<imports>imports)"
    r"|as\s+the\s+last\s+entry\s+of\s+`(?P<last>\w+)`):\s*$"
)
FEW = ["training.steps=2", "training.valid_every=2", "training.valid_pairs=4", "model.hidden=16", "model.embedding=8"]
DRIVER = """
import json, sys
from regarde.cli.main import run
for arguments, stdin in json.load(open(sys.argv[1])):
    sys.argv, sys.stdin = ["regarde", *arguments], open(stdin)
    try:
        run()
    except SystemExit as end:
        assert not end.code, (arguments, end.code)
"""


@dataclass(frozen=True)
class Block:
    """Code of the page, and the words before it."""

    language: str
    code: str
    before: str

    def put(self, tree: Path) -> None:
        """Into a copy of the project, at the place that the page names."""
        where = WHERE.search(self.before)
        assert where, f"The page does not say where this goes: {self.code}"
        if where["new"]:
            (tree / where["new"]).write_text(self.code)
            return
        path = tree / where["path"]
        lines = path.read_text().splitlines(keepends=True)
        body = ast.parse("".join(lines)).body
        if where["imports"]:
            first = last = max(n.end_lineno or 0 for n in body if isinstance(n, ast.Import | ast.ImportFrom))
        else:
            node = _named(body, where["above"] or where["becomes"] or where["last"])
            assert node.end_lineno is not None
            first = last = node.end_lineno - 1 if where["last"] else node.lineno - 1
            if where["becomes"]:
                last = node.end_lineno
        spaced = f"{self.code}\n\n" if where["above"] else self.code
        path.write_text("".join([*lines[:first], spaced, *lines[last:]]))


def _named(body: list[ast.stmt], name: str) -> ast.stmt:
    for node in body:
        targets = node.targets if isinstance(node, ast.Assign) else [getattr(node, "target", None)]
        if any(isinstance(target, ast.Name) and target.id == name for target in targets):
            return node
    raise AssertionError(f"There is no {name}, which the page speaks of")


def blocks() -> list[Block]:
    page, found, end = PAGE.read_text(encoding="utf-8"), [], 0
    for match in BLOCK.finditer(page):
        found.append(Block(match[2], textwrap.dedent(match[3]), page[end : match.start()]))
        end = match.end()
    return found


def commands(program: str) -> list[tuple[list[str], str]]:
    """The page's calls of a program: arguments, and what is piped into it."""
    found = []
    for line in (line for block in blocks() if block.language == "console" for line in block.code.splitlines()):
        if line.startswith("$ "):
            *piped, call = line[2:].split(" | ")
            words = [word for word in shlex.split(call) if not word.startswith("UPDATE_DOCS=")]
            if words[0] == program:
                found.append((words[1:], shlex.split(piped[0])[1] if piped else ""))
    return found


@dataclass(frozen=True)
class Copy:
    """The project as somebody has it who has followed the page."""

    tree: Path

    def run(self, *arguments: object) -> subprocess.CompletedProcess[str]:
        done = subprocess.run(
            [sys.executable, *map(str, arguments)],
            capture_output=True, text=True, check=False, cwd=self.tree, env=self.environment, timeout=300,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
        return done

    @property
    def environment(self) -> dict[str, str]:
        return os.environ | {"PYTHONPATH": str(self.tree), "OMP_NUM_THREADS": "1"}


@pytest.fixture(scope="module")
def followed(tmp_path_factory: pytest.TempPathFactory) -> Copy:
    tree = tmp_path_factory.mktemp("extend")
    for name in ("regarde", "tests", "docs"):
        shutil.copytree(ROOT / name, tree / name, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(ROOT / "pyproject.toml", tree)
    for block in blocks():
        if block.language != "console":
            block.put(tree)
    return Copy(tree)


@pytest.fixture(scope="module")
def said(followed: Copy) -> str:
    """Standard error of all that the page does on the command line, in one process: each start takes seconds."""
    for split, file in (("train", "words.txt"), ("test", "test.txt")):
        words = followed.run("-m", "regarde", "data", "copy", "--split", split).stdout.splitlines()[:60]
        (followed.tree / file).write_text("".join(f"{line.split(chr(9))[0]}\n" for line in words))
    calls = []
    for number, (arguments, piped) in enumerate(commands("regarde")):
        (followed.tree / f"stdin-{number}").write_text(f"{piped}\n")
        fewer = [word for setting in FEW for word in ("--set", setting)] if arguments[0] == "train" else []
        calls.append(([*arguments, *fewer], f"stdin-{number}"))
    assert [arguments[0] for arguments, _ in calls] == [
        *("train", "translate", "show", "train", "train"),
        *("train", "predict", "evaluate", "show"),
    ]
    more = [["translate", "runs/sort-bag"], ["quantize", "runs/cosine"], ["quantize", "runs/sort-bag"]]
    more += [["translate", "runs/cosine-int8"], ["translate", "runs/sort-bag", "runs/sort-bag-int8"]]
    calls += [(arguments, "stdin-0") for arguments in more]
    (followed.tree / "calls").write_text(json.dumps(calls))
    return followed.run("-c", DRIVER, "calls").stderr


def test_every_command_of_the_page_works_and_says_in_one_line_that_torch_does_it(followed: Copy, said: str) -> None:
    lines = [line for line in said.splitlines() if "The native engine does not support" in line]
    shown = {kind: re.compile(rf" '?{kind}'?: torch is used instead, which is slower\. ") for kind in ("cosine", "bag")}
    named = {kind: sum(bool(line.search(each)) for each in lines) for kind, line in shown.items()}
    assert (min(named.values()) > 0) == library.available()
    assert sum(named.values()) == len(lines)
    assert all(line.startswith("regarde: ") for line in lines)
    assert "Traceback" not in said
    assert r'"score":"e_{t,j} = g \\cos(q_t, W h_j)"' in (followed.tree / "cosine.html").read_text()


def test_the_contract_holds_for_what_the_page_adds(followed: Copy) -> None:
    assert [arguments for arguments, _ in commands("pytest")] == [
        ["tests/contract", "-k", "cosine"],
        ["tests/contract/test_table.py", "tests/faults/test_bounds.py", "-k", "table or known_without_torch"],
        ["tests/contract", "-k", "bag"],
        ["tests/contract/test_rows.py", "-k", "vowel"],
    ]
    some = "stepping or padding or saving or both_engines_show_the_states or scores_as_torch or begins_with_its_prefix"
    chosen = f"((cosine and after or bag) and ({some})) or (cosine and formula)"
    chosen += " or table_in_the_docs or known_without_torch or vowel or every_task"
    places = [
        f"tests/contract/test_{name}.py" for name in ("promises", "native", "prefixes", "traces", "table", "rows")
    ]
    places += ["tests/papers/test_scores.py", "tests/faults/test_bounds.py"]
    followed_environment = followed.environment | {"UPDATE_DOCS": "1"}
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-rN", "-p", "no:cacheprovider", *places, "-k", chosen],
        capture_output=True, text=True, check=False, cwd=followed.tree, env=followed_environment, timeout=300,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout[-3000:]
    assert "| cosine |" in (followed.tree / "docs" / "combinations.md").read_text()


def test_what_the_page_adds_is_served_traced_and_shown_by_its_own_formulas(followed: Copy, said: str) -> None:
    pytest.importorskip("starlette")
    with serving(followed, "runs/cosine", "runs/sort-bag", "runs/vowel") as url:
        cosine, bag, _ = json.load(urlopen(f"{url}/v1/models", timeout=60))["models"]
        body = json.dumps({"text": "regarde", "model": "vowel"}).encode()
        request = Request(f"{url}/v1/predict", body, {"Content-Type": "application/json"})
        assert json.load(urlopen(request, timeout=60))["predictions"][0]["text"] in ("a", "e", "i", "o", "u", "none")
        assert cosine["formulas"]["score"] == r"e_{t,j} = g \cos(q_t, W h_j)"
        assert bag["formulas"]["output"] == "p(y_t) = softmax(W_o [s_t ; c_t])"
        assert (bag["layers"], bag["heads"]) == (1, 1)
        for name in ("cosine", "sort-bag"):
            question = {"text": ["3 mars 1999", "cba"], "model": name, "attention": True, "trace": True, "beam": 2}
            body = json.dumps(question).encode()
            request = Request(f"{url}/v1/translate", body, {"Content-Type": "application/json"})
            first, second = json.load(urlopen(request, timeout=60))["translations"]
            assert first["trace"]["steps"]
            assert len(second["attention"][0]) == len("cba") + 1


@contextmanager
def serving(copy: Copy, *runs: str) -> Iterator[str]:
    command = [sys.executable, "-m", "regarde", "serve", *runs, "--port", "0"]
    with subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, cwd=copy.tree, env=copy.environment
    ) as process:  # fmt: skip
        assert process.stderr is not None
        try:
            lines = []
            for line in process.stderr:
                lines.append(line)
                if started := re.search(r"at (http://\S+)$", line.strip()):
                    threading.Thread(target=process.stderr.read, daemon=True).start()
                    yield started[1]
                    return
            raise AssertionError("".join(lines))
        finally:
            process.terminate()


def test_the_code_of_the_page_passes_the_linter(followed: Copy) -> None:
    pytest.importorskip("ruff")
    followed.run("-m", "ruff", "check", "--no-cache", "regarde/attention/scores.py", "regarde/models/bag.py")
    followed.run("-m", "ruff", "check", "--no-cache", "regarde/tasks/vowel.py")
    followed.run(
        "-m", "ruff", "format", "--check", "--no-cache", "regarde/attention/scores.py", "regarde/models/bag.py"
    )
