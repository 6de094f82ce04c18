"""The viridis scale: dark violet for nothing, yellow for all; even in lightness, legible without colour vision."""

from __future__ import annotations

Colour = tuple[int, int, int]

# The colours of matplotlib's viridis (public domain, CC0) at 0.0, 0.1, …, 1.0; between them a straight line will do.
_VIRIDIS: tuple[Colour, ...] = (
    (68, 1, 84),
    (72, 36, 117),
    (65, 68, 135),
    (53, 95, 141),
    (42, 120, 142),
    (33, 145, 140),
    (34, 168, 132),
    (68, 191, 112),
    (122, 209, 81),
    (189, 223, 38),
    (253, 231, 37),
)


def viridis(share: float) -> Colour:
    """Red, green and blue, 0 to 255, for a share from 0 to 1; what lies outside takes the nearer end."""
    place = min(max(share, 0.0), 1.0) * (len(_VIRIDIS) - 1)
    below = min(int(place), len(_VIRIDIS) - 2)
    part = place - below
    red, green, blue = (round(a + (b - a) * part) for a, b in zip(_VIRIDIS[below], _VIRIDIS[below + 1], strict=True))
    return red, green, blue


def hexadecimal(colour: Colour) -> str:
    """A colour as the web writes it: #440154."""
    return "#{:02x}{:02x}{:02x}".format(*colour)
