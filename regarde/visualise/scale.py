"""Weights -> colours: viridis, which rises evenly in lightness and is read by the colour-blind and in print."""

from __future__ import annotations

# van der Walt and Smith's viridis (CC0) at tenths of its length; straight lines between are indistinguishable by eye
_ANCHORS = (
    (68, 1, 84), (72, 37, 118), (65, 68, 135), (53, 95, 141), (42, 120, 142), (33, 145, 140),
    (34, 168, 132), (68, 191, 112), (122, 209, 81), (189, 223, 38), (253, 231, 37),
)  # fmt: skip

# the nearest of the 256 colours every terminal has, from 0 to 1
TERMINAL = (53, 54, 60, 24, 30, 36, 71, 77, 148, 220)
GLYPHS = "·░▒▓█"


def share(weight: float, top: float) -> float:
    """Where on the scale a weight stands, in 0…1."""
    return min(max(weight / top, 0.0), 1.0)


def step(position: float, steps: int) -> int:
    """Which of `steps` shades a position in 0…1 gets; the two ends are half as wide as the others."""
    return round(position * (steps - 1))


def color(position: float) -> str:
    """The colour at a position in 0…1, as #rrggbb."""
    below = min(int(position * (len(_ANCHORS) - 1)), len(_ANCHORS) - 2)
    part = position * (len(_ANCHORS) - 1) - below
    mixed = (round(a + (b - a) * part) for a, b in zip(_ANCHORS[below], _ANCHORS[below + 1], strict=True))
    return "#" + "".join(f"{channel:02x}" for channel in mixed)


def ink(position: float) -> str:
    """The colour of a number that is read on `color(position)`."""
    return "#ffffff" if position < 0.6 else "#10131a"
