"""A working directory with a file for every module name that Python knows: no command runs any of them.

The directory stands for a model folder from a stranger. Each planted file writes its name into a marker file.
"""

from __future__ import annotations

import ast
import importlib.metadata
import json
import shutil
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

import regarde
from regarde.cli.main import COMMANDS
from regarde.folder.manifest import add_file
from regarde.native import library
from regarde.process import SAFE_PATH, environment
from tests.tasks import CLASSIFIER, LANGUAGE_MODELS, TRANSFORMER, saved

ROOT = Path(regarde.__file__).parents[1]
MARK = "marked.txt"
# what pip writes as the command `regarde`; here it runs several commands, one after the other
SCRIPT = """
import sys
if __name__ == "__main__":
    from regarde.cli.main import run
    import json
    for arguments, code in json.loads(sys.argv[1]):
        sys.argv = ["regarde", *arguments]
        try:
            run()
        except SystemExit as ended:
            assert ended.code == code, (arguments, ended.code)
"""
TEXT = "abc\n" + "abc. " * 300 + "\n"  # on standard input
SMALL = [
    *("training.steps=2", "training.valid_every=2", "training.save_every=1", "training.metric=cer"),
    *("model.hidden=6", "model.embedding=5", "model.maxout=4", "model.attention.score.size=3"),
]
SET = [word for setting in SMALL for word in ("--set", setting)]
QUICK = [
    ["translate", "run", "--long", "split"],
    ["predict", "run", "--long", "split"],
    ["generate", "lm", "--length", "5"],
    ["score", "run", "--input", "pairs.tsv"],
    ["show", "run", "abc", "--png", "map.png"],
    ["models"],
    ["config", "training"],
    ["export", "transformer", "--to", "huggingface", "--out", "hub"],
    ["import", "hub", "--out", "imported"],
]
OTHERS = [
    ["train", "pairs.tsv", "--out", "new", *SET[2:], "--set", "training.steps=4"],
    ["align", "run", "--data", "pairs.tsv"],
    ["doctor"],
    ["evaluate", "run", "--data", "pairs.tsv"],
    ["compare", "run", "run", "--data", "pairs.tsv"],
    ["inspect", "run", "--data", "pairs.tsv"],
    ["aer", "links", "links"],
    ["data", "copy", "--out", "copy"],
    ["average", "new/checkpoints/step-3", "new/checkpoints/step-4", "--out", "mean"],
    ["quantize", "run", "--out", "bytes"],
    ["shortlist", "run", "--data", "pairs.tsv"],
    ["calibrate", "labels", "--data", "labels.tsv"],
    ["train", "series.csv", "--out", "forecaster", "--steps", "2", "--hidden", "4", "--set", "task.horizon=5"],
    ["forecast", "forecaster", "--picture", "fan.svg"],
    ["translate", "run", "--engine", "torch", "--long", "split"],
    ["search-params", "pairs.tsv", "--space", "space.toml", "--trials", "1", "--out", "found", *SET],
]
LAB = [
    *("lab", "pairs.tsv", "--out", "lab", "--tokens", "200", "--beam", "2", "--models", "rnnsearch-small"),
    *(word for setting in SMALL[2:] for word in ("--set", setting)),
]
DEMO = ["demo", "--out", "dates"]
SERVERS = ["serve", "studio"]


@dataclass(frozen=True)
class Planted:
    """A directory with planted modules."""

    folder: Path
    script: Path

    def run(self, *commands: list[str], code: int = 0) -> None:
        """Commands in the directory, as the program `regarde` runs them; each ends with this exit code."""
        given = json.dumps([[command, code] for command in commands])
        self.ended([sys.executable, str(self.script), given])

    def ended(self, command: list[str], code: int = 0) -> str:
        streams = {"input": TEXT, "capture_output": True, "text": True}
        done = subprocess.run(command, cwd=self.folder, env=variables(), timeout=300, check=False, **streams)
        assert self.marks == []
        assert done.returncode == code, done.stderr
        return done.stderr

    @contextmanager
    def served(self, *arguments: str) -> Iterator[str]:
        """The address of a server that was started in the directory."""
        given = json.dumps([[[*arguments, "--port", "0"], 143]])
        command = [sys.executable, str(self.script), given]
        with subprocess.Popen(command, cwd=self.folder, env=variables(), stderr=subprocess.PIPE, text=True) as process:
            assert process.stderr is not None
            try:
                line = process.stderr.readline()
                assert self.marks == []
                assert " at http" in line
                yield line.split()[-1]
            finally:
                process.send_signal(signal.SIGTERM)
                process.wait(timeout=60)
        assert self.marks == []

    @property
    def marks(self) -> list[str]:
        """The planted modules that were run."""
        path = self.folder / MARK
        return path.read_text().split() if path.exists() else []


def variables() -> dict[str, str]:
    """As a user has them: no safe path is asked for."""
    return {name: value for name, value in environment().items() if name != SAFE_PATH} | {"OMP_NUM_THREADS": "1"}


def plant(folder: Path) -> None:
    """A file for each module of Python and of each installed package, except our own."""
    packages = {name for name in importlib.metadata.packages_distributions() if name.isidentifier()}
    customs = {"sitecustomize", "usercustomize", "tensorboard", "dotenv", "plotly"}
    for name in (packages | sys.stdlib_module_names | customs) - {"regarde"}:
        code = f"open({str(folder / MARK)!r}, 'a').write({name + ' '!r})\n"
        (folder / f"{name}.py").write_text(code)
    (folder / "matplotlibrc").write_text("text.usetex: True\nsavefig.dpi: 1\nfigure.dpi: 1\n")


@pytest.fixture(scope="module")
def planted(tiny: Path, tmp_path_factory: pytest.TempPathFactory) -> Planted:
    """With a model and pairs beside the planted modules."""
    folder = tmp_path_factory.mktemp("planted")
    plant(folder)
    shutil.copytree(tiny, folder / "run")
    saved(folder / "lm", LANGUAGE_MODELS["attentive"])
    saved(folder / "labels", CLASSIFIER)
    saved(folder / "transformer", TRANSFORMER)
    (folder / "labels.tsv").write_text("".join(f"{text}\t{label}\n" for text, label in CLASSIFIER.pairs))
    (folder / "pairs.tsv").write_text("".join(f"{a}{b}{a}\t{a}{b}{a}\n" for a in "abcdefgh" for b in "abcdefgh"))
    (folder / "links").write_text("0-0\n")
    rows = (f"s{n},{','.join(str(n + t % 4 + t * t % 7) for t in range(60))}\n" for n in range(9))
    (folder / "series.csv").write_text("".join(rows))
    (folder / "space.toml").write_text('[space."training.optimizer.rate"]\nlow = 0.001\nhigh = 0.01\n')
    script = tmp_path_factory.mktemp("bin") / "regarde.py"
    script.write_text(SCRIPT)
    return Planted(folder, script.rename(script.with_suffix("")))


def test_commands_run_no_module_of_the_working_directory(planted: Planted) -> None:
    planted.run(*QUICK)


@pytest.mark.slow
def test_no_other_command_runs_a_module_of_the_working_directory(planted: Planted) -> None:
    planted.run(*OTHERS, LAB)


def test_the_demo_runs_no_module_of_the_working_directory(planted: Planted) -> None:
    script = planted.script.with_name("demo")
    small = f"from regarde.cli import demo; demo.SETTINGS += {[*SMALL, 'training.valid_pairs=2']!r}"
    script.write_text(SCRIPT.replace("import json", f"import json; {small}"))
    Planted(planted.folder, script).run(DEMO)


def test_every_command_is_run_among_planted_modules() -> None:
    assert {*SERVERS, *(command[0] for command in [*QUICK, *OTHERS, LAB, DEMO])} == set(COMMANDS)


def test_a_process_of_ours_runs_no_module_of_the_working_directory(planted: Planted) -> None:
    program = "from regarde import process; raise SystemExit(process.start('regarde', 'models').wait())"
    planted.ended([sys.executable, "-P", "-c", program])


@pytest.mark.parametrize("name", SERVERS)
def test_a_server_runs_no_module_of_the_working_directory(planted: Planted, name: str) -> None:
    if not library.available():
        pytest.skip("the server needs the native library")
    options = ["--no-open"] if name == "studio" else []
    with planted.served(name, "run", *options) as address:
        question = json.dumps({"text": "abc", "trace": True}).encode()
        headers = {"content-type": "application/json"}
        with urllib.request.urlopen(urllib.request.Request(f"{address}/v1/translate", question, headers)) as reply:
            assert reply.status == 200


@pytest.mark.parametrize("listed", [False, True])
def test_a_model_folder_with_modules_in_it_is_refused_and_none_is_run(
    tiny: Path, planted: Planted, listed: bool
) -> None:
    folder = planted.folder / "stranger"
    shutil.copytree(tiny, folder)
    plant(folder)
    if listed:
        for path in [*folder.glob("*.py"), folder / "matplotlibrc"]:
            path.rename(folder / f".{path.name}")
        add_file(folder, "selectors.py", (folder / ".selectors.py").read_bytes())
    there = Planted(folder, planted.script)
    servers = [["serve", "."], ["studio", ".", "--no-open"]] if library.available() else []
    there.run(["translate", "."], *servers, code=4)
    shutil.rmtree(folder)


@pytest.mark.parametrize("command", [["models"], ["translate", "run", "--long", "split"]])
def test_python_m_regarde_runs_no_module_of_the_working_directory(planted: Planted, command: list[str]) -> None:
    planted.ended([sys.executable, "-m", "regarde", *command])


def test_a_picture_takes_no_settings_from_the_working_directory(planted: Planted) -> None:
    program = """
import sys
from regarde.visualize.picture import Canvas
from regarde.visualize.style import LIGHT
Canvas.empty(LIGHT, 1, 1)
sys.exit(sys.modules["matplotlib"].rcParams["text.usetex"])
"""
    planted.ended([sys.executable, "-P", "-c", program])


STARTING = {"subprocess", "multiprocessing", "concurrent.futures.process", "pty", "torch.multiprocessing"}
CALLS = ("fork", "forkpty", "system", "popen", "posix_spawn", "posix_spawnp", "startfile", "exec", "spawn")


def test_only_one_module_starts_processes() -> None:
    for path in sorted(Path(regarde.__file__).parent.rglob("*.py")):
        if path.name == "process.py" and path.parent.name == "regarde":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            names = {alias.name for alias in node.names} if isinstance(node, ast.Import | ast.ImportFrom) else set()
            if isinstance(node, ast.ImportFrom):
                names |= {f"{node.module}.{name}" for name in names} | {str(node.module)}
            assert not {name for name in names if name.partition(".")[0] in STARTING or name in STARTING}, path
            assert "ProcessPoolExecutor" not in names, path
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "os":
                assert not node.attr.startswith(CALLS), f"{path}:{node.lineno}"


def test_no_benchmark_starts_a_module_from_the_working_directory() -> None:
    for path in sorted((ROOT / "benchmarks").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.List | ast.Tuple) and any("executable" in ast.unparse(e) for e in node.elts[:1]):
                words = {element.value for element in node.elts if isinstance(element, ast.Constant)}
                assert not words & {"-m", "-c"} or "-P" in words, f"{path}:{node.lineno}"
