"""The studio has the colors of regarde/visualize/style.py; `python -m tests.studio.test_palette` writes them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from regarde.visualize.style import DARK, LIGHT

SOURCES = Path(__file__).parents[2] / "studio" / "src"
SHADES = 17


def script() -> str:
    """The colors that are drawn by script: the scale of weights, the numbers on it, links and errors."""
    colors = {
        name: {
            "weights": palette.shades(SHADES),
            "numbers": [palette.ink_on(i / (SHADES - 1)) for i in range(SHADES)],
            "link": palette.link,
            "error": palette.error,
        }
        for name, palette in (("light", LIGHT), ("dark", DARK))
    }
    return json.dumps(colors, indent=1) + "\n"


def sheet() -> str:
    """The same colors and those of curves, for style sheets."""
    pairs = {
        "link": (LIGHT.link, DARK.link),
        "error": (LIGHT.error, DARK.error),
        "weight": (LIGHT.weight(0.4), DARK.weight(0.45)),  # the middle of the scale: a token that is attended to
        **{f"line-{i}": pair for i, pair in enumerate(zip(LIGHT.lines, DARK.lines, strict=True))},
    }
    lines = [f"  --{name}: light-dark({light}, {dark});" for name, (light, dark) in pairs.items()]
    return "\n".join(["/* Written by tests/studio/test_palette.py */", ":root {", *lines, "}", ""])


FILES = {"palette.json": script, "style/palette.css": sheet}


@pytest.mark.parametrize("name", FILES)
def test_the_studio_has_the_colors_of_all_other_pictures(name: str) -> None:
    assert (SOURCES / name).read_text(encoding="utf-8") == FILES[name](), "Run: python -m tests.studio.test_palette"


if __name__ == "__main__":
    for name, content in FILES.items():
        (SOURCES / name).write_text(content(), encoding="utf-8")
