"""The library on its own (driver.cpp): the same numbers on another processor, and nothing that a sanitizer minds.

ARM is tried under qemu: the kernels that run anywhere, which the compiler makes NEON of.
    apt-get install g++-aarch64-linux-gnu qemu-user
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pytest

import regarde
from regarde import config as configs
from regarde.attention.mechanisms import GlobalConfig
from regarde.attention.scores import ConcatConfig
from regarde.folder.precision import in_bytes
from regarde.models import (
    AttentiveLanguageConfig,
    BahdanauConfig,
    ClassifierConfig,
    LuongConfig,
    ModelConfig,
    TaggerConfig,
    TransformerConfig,
    TransformerLanguageConfig,
)
from regarde.native.settings import flattened

SOURCE = Path(regarde.__file__).parent / "native" / "source"
DRIVER = Path(__file__).parent / "driver.cpp"
SIZES = {"source": 9, "target": 11}
MODELS: dict[str, ModelConfig] = {
    "bahdanau": BahdanauConfig(embedding=5, hidden=6, maxout=4),
    "luong": LuongConfig(embedding=5, hidden=6, layers=2, attention=GlobalConfig(score=ConcatConfig(size=7))),
    "transformer": TransformerConfig(
        size=8, layers=2, heads=2, feed_forward=10, tying="two-way", positions="learned", longest=30
    ),
    "classifier": ClassifierConfig(embedding=5, hidden=3, size=7, queries=2),
    "tagger": TaggerConfig(embedding=5, spelling=0, hidden=3),
    "attentive language model": AttentiveLanguageConfig(embedding=5, hidden=6, window=2),
    "Transformer language model": TransformerLanguageConfig(size=8, layers=2, heads=2, feed_forward=10, longest=30),
}
Compile = Callable[..., Path]
pytestmark = pytest.mark.slow


def cases() -> str:
    """Each model in floats and in bytes, greedy and by beam, as driver.cpp reads them."""
    lines = []
    draw = np.random.default_rng(1)
    for config in MODELS.values():
        settings = flattened({"model": configs.as_table(config), "vocabulary": SIZES})
        shapes = {name: tensor.shape for name, tensor in config.build(*SIZES.values()).state_dict().items()}
        exact = {name: draw.normal(0, 0.4, shape).astype(np.float32) for name, shape in shapes.items()}
        for tensors in (exact, in_bytes(exact)):
            for search in ("0 1", "1 3"):
                lines += [f"setting {path} {value}" for path, value in settings.items()]
                for name, tensor in tensors.items():
                    kind = "b" if tensor.dtype == np.int8 else "f"
                    numbers = " ".join(float(number).hex() for number in tensor.ravel())
                    lines.append(f"tensor {name} {kind} {tensor.ndim} {' '.join(map(str, tensor.shape))} {numbers}")
                lines += ["source 5 6 7 4", "source 8", "source 4 4 5 6 7 8 5 6 7", f"decode {search}"]
    return "\n".join(lines)


def printed(command: Sequence[str | Path], **variables: str) -> list[tuple[str, np.ndarray]]:
    done = subprocess.run(
        [str(word) for word in command],
        input=cases(),
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | variables,
    )
    assert done.returncode == 0, done.stderr[-5000:]
    assert not done.stderr
    lines = [line.split() for line in done.stdout.splitlines()]
    return [(line[0], np.array(line[1:], dtype=np.float64)) for line in lines]


def assert_same(found: list[tuple[str, np.ndarray]], expected: list[tuple[str, np.ndarray]]) -> None:
    assert len(found) > 4 * len(MODELS)
    for (what, one), (name, other) in zip(found, expected, strict=True):
        assert what == name
        np.testing.assert_allclose(one, other, atol=0 if what == "numbers" else 1e-3, err_msg=what)


@pytest.fixture(scope="module")
def here(compiled: Compile, watched: Path) -> Path:
    """The driver for this processor, watched over by the compiler."""
    flags = ["-fsanitize=address,undefined", f"-Wl,-rpath,{watched.parent}"]
    return compiled("g++", watched.parent / "driver", [DRIVER, watched], *flags)


def test_all_instruction_sets_give_the_same_numbers_and_leak_nothing(here: Path) -> None:
    strict = {"ASAN_OPTIONS": "detect_leaks=1:strict_string_checks=1", "UBSAN_OPTIONS": "print_stacktrace=1"}
    assert_same(printed([here, "best"], **strict), printed([here, "portable"], **strict))


def test_arm_gives_the_same_numbers(compiled: Compile, here: Path, tmp_path: Path) -> None:
    if shutil.which("qemu-aarch64") is None:
        pytest.skip("NOT PROVEN HERE: qemu-aarch64 is not installed")
    files = [DRIVER, *sorted(SOURCE.glob("*.cpp"))]
    arm = compiled("aarch64-linux-gnu-g++", tmp_path / "driver", files, "-O2", "-static")
    assert_same(printed(["qemu-aarch64", arm, "portable"]), printed([here, "portable"]))
