"""Pictures on disk."""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from regarde.errors import DiskError, UsageError
from regarde.visualize import Heatmap, save

OPENINGS = {".svg": b"<svg", ".html": b"<!doctype html>", ".png": b"\x89PNG", ".pdf": b"%PDF"}


@pytest.mark.parametrize("suffix", OPENINGS)
def test_the_suffix_chooses_the_kind(words: Heatmap, tmp_path: Path, suffix: str) -> None:
    save(words, tmp_path / f"map{suffix}")
    assert (tmp_path / f"map{suffix}").read_bytes().startswith(OPENINGS[suffix])


def test_another_suffix_is_refused_with_the_four(words: Heatmap, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"\.svg, \.html, \.png or \.pdf"):
        save(words, tmp_path / "map.gif")


def test_a_missing_folder_is_a_disk_error(words: Heatmap, tmp_path: Path) -> None:
    for suffix in OPENINGS:
        with pytest.raises(DiskError):
            save(words, tmp_path / "nowhere" / f"map{suffix}")


@pytest.mark.parametrize("suffix", [".png", ".pdf"])
def test_matplotlib_draws_anything_in_silence(
    any_map: Heatmap, tmp_path: Path, capfd: pytest.CaptureFixture[str], suffix: str
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        save(any_map, tmp_path / f"map{suffix}")
    assert capfd.readouterr().err == ""


def test_a_picture_drawn_twice_is_the_same_file(words: Heatmap, tmp_path: Path) -> None:
    for suffix in OPENINGS:
        one, two = tmp_path / f"one{suffix}", tmp_path / f"two{suffix}"
        save(words, one)
        save(words, two)
        assert one.read_bytes() == two.read_bytes()


def test_neither_torch_nor_matplotlib_is_needed_to_show() -> None:
    program = (
        "import sys; sys.modules['torch'] = sys.modules['matplotlib'] = None\n"
        "import regarde.alignment.links\n"
        "from regarde.visualize import Heatmap, html, svg, terminal\n"
        "import numpy as np\n"
        "heat = Heatmap(('a',), ('b',), np.ones((1, 1)))\n"
        "html.page([heat], 't'), svg.heatmap(heat), terminal.heatmap(heat, width=80, color=True)\n"
        "from regarde.errors import RegardeError\n"
        "from regarde.visualize import save\n"
        "try: save(heat, 'x.png')\n"
        "except RegardeError as error: print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "pip install 'regarde[plot]'" in done.stdout
