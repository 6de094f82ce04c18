"""The studio has the colors of regarde/visualize/style.py, and no others.

`python -m tests.studio.test_palette` writes them.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from regarde.visualize.style import DARK, DASHES, LIGHT, Palette

SOURCES = Path(__file__).parents[2] / "studio" / "src"
SHADES = 17
HEX = re.compile(r"#[0-9a-fA-F]{6}\b|#[0-9a-fA-F]{3}\b(?!;)|\brgba?\(")
WASH = 0.12  # of the color of links, behind what is selected


def script() -> str:
    """The colors that a script draws with: text, the scale of weights and the numbers on it, links, errors; dashes."""
    colors = {
        name: {
            "paper": palette.paper,
            "ink": palette.ink,
            "weights": palette.shades(SHADES),
            "numbers": [palette.ink_on(i / (SHADES - 1)) for i in range(SHADES)],
            "link": palette.link,
            "error": palette.error,
        }
        for name, palette in (("light", LIGHT), ("dark", DARK))
    }
    return json.dumps(colors | {"dashes": DASHES}, indent=1) + "\n"


def sheet() -> str:
    """The same colors and those of curves, for style sheets."""
    pairs = {
        **{name: (getattr(LIGHT, name), getattr(DARK, name)) for name in ("paper", "ink", "faint", "rule")},
        "edge": (LIGHT.lines[7], DARK.lines[7]),  # gray, for the outlines of controls and for bars
        "wash": (wash(LIGHT), wash(DARK)),
        "link": (LIGHT.link, DARK.link),
        "error": (LIGHT.error, DARK.error),
        "weight": (LIGHT.weight(0.4), DARK.weight(0.45)),  # the middle of the scale: a token that is attended to
        **{f"line-{i}": pair for i, pair in enumerate(zip(LIGHT.lines, DARK.lines, strict=True))},
    }
    lines = [f"  --{name}: light-dark({light}, {dark});" for name, (light, dark) in pairs.items()]
    return "\n".join(["/* Written by tests/studio/test_palette.py */", ":root {", *lines, "}", ""])


def wash(palette: Palette) -> str:
    """The paper with some of the color of links."""
    channels = ((int(color[i : i + 2], 16) for color in (palette.paper, palette.link)) for i in (1, 3, 5))
    return "#" + "".join(f"{round(paper + WASH * (link - paper)):02x}" for paper, link in channels)


FILES = {"palette.json": script, "style/palette.css": sheet}


@pytest.mark.parametrize("name", FILES)
def test_the_studio_has_the_colors_of_all_other_pictures(name: str) -> None:
    assert (SOURCES / name).read_text(encoding="utf-8") == FILES[name](), "Run: python -m tests.studio.test_palette"


SOURCE_FILES = [path for path in SOURCES.rglob("*") if path.suffix in {".css", ".ts", ".tsx"}]
PICTURES = [*(SOURCES.parents[1] / "regarde" / "visualize").glob("*.py")]


@pytest.mark.parametrize("path", [*SOURCE_FILES, *PICTURES], ids=lambda path: path.name)
def test_no_other_file_defines_a_color(path: Path) -> None:
    if path.name in {"palette.css", "style.py"}:
        return
    assert HEX.findall(path.read_text(encoding="utf-8").replace("#000 ", "")) == []  # #000: opaque, in a mask


if __name__ == "__main__":
    for name, content in FILES.items():
        (SOURCES / name).write_text(content(), encoding="utf-8")
