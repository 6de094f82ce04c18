"""The map and its lines as SVG."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET

import numpy as np

from regarde.visualize import Heatmap
from regarde.visualize.lines import lines
from regarde.visualize.style import DARK, LIGHT
from regarde.visualize.svg import STYLE, heatmap

SVG = "{http://www.w3.org/2000/svg}"


def test_every_map_is_well_formed_xml(any_map: Heatmap) -> None:
    for text in (heatmap(any_map), lines(any_map)):
        assert ET.fromstring(text.encode("utf-8")).tag == f"{SVG}svg"  # strict: refuses what XML 1.0 forbids


def test_each_cell_tells_its_weight(words: Heatmap) -> None:
    cells = ET.fromstring(heatmap(words)).findall(f".//{SVG}rect[@data-s]")
    assert len(cells) == words.weights.size
    tooltips = [cell.findtext(f"{SVG}title") for cell in cells]
    assert tooltips[0] == f"the → la: {words.weights[0, 0]:.3f}"


def test_the_picture_needs_nothing_from_elsewhere(any_map: Heatmap) -> None:
    text = heatmap(any_map) + lines(any_map)
    assert set(re.findall(r"https?://[^\"'\s]+", text)) == {"http://www.w3.org/2000/svg"}
    assert not re.search(r"url\(|@import|<script|href", text)


def test_tokens_cannot_become_elements(hostile: Heatmap) -> None:
    tags = {element.tag.removeprefix(SVG) for element in ET.fromstring(heatmap(hostile).encode()).iter()}
    assert tags <= {"svg", "style", "rect", "g", "text", "title"}


def test_everything_stands_inside_the_picture(any_map: Heatmap) -> None:
    root = ET.fromstring(heatmap(any_map).encode())
    width, height = float(root.attrib["width"]), float(root.attrib["height"])
    for rect in root.findall(f".//{SVG}rect[@x]"):
        assert float(rect.attrib["x"]) + float(rect.attrib["width"]) <= width
        assert float(rect.attrib["y"]) + float(rect.attrib["height"]) <= height


def test_a_very_large_map_leaves_empty_cells_to_the_ground() -> None:
    n = 150
    weights = np.eye(n) * 0.98
    weights[0, 1:3] = 0.006, 0.004  # the first would be shown as 0.01, the second as 0.00
    cells = ET.fromstring(heatmap(Heatmap(("a",) * n, ("b",) * n, weights))).findall(f".//{SVG}rect[@data-s]")
    assert [(cell.attrib["data-t"], cell.attrib["data-s"]) for cell in cells[:2]] == [("0", "0"), ("0", "1")]
    assert len(cells) == n + 1


def test_lines_are_thicker_for_heavier_weights_and_missing_for_next_to_none() -> None:
    heat = Heatmap(("a", "b", "c"), ("x",), np.array([[0.69, 0.3, 0.01]]))
    paths = ET.fromstring(lines(heat)).findall(f".//{SVG}path")
    thick = {path.attrib["data-s"]: float(path.attrib["stroke-width"]) for path in paths}
    assert thick.keys() == {"0", "1"}
    assert thick["0"] > thick["1"]


def test_cells_and_lines_follow_the_light_or_dark_mode_of_the_reader() -> None:
    heat = Heatmap(("a", "b"), ("x",), np.array([[1.0, 0.0]]))
    full, none = ET.fromstring(heatmap(heat)).findall(f".//{SVG}rect[@data-s]")
    assert (full.attrib["class"], none.attrib["class"]) == ("w32", "w0")
    assert full.attrib["fill"] == LIGHT.weight(1.0)
    light, dark = STYLE.split("@media (prefers-color-scheme: dark)")
    for rules, palette in ((light, LIGHT), (dark, DARK)):
        assert f".w32{{fill:{palette.weight(1.0)}}}" in rules
        assert f".line{{stroke:{palette.link}}}" in rules


def test_axes_and_scale_have_titles(words: Heatmap) -> None:
    named = [text.text for text in ET.fromstring(heatmap(words)).iter(f"{SVG}text")]
    assert {"source", "target", "weight 0", "1"} <= set(named)
    assert {"source", "target"} <= {text.text for text in ET.fromstring(lines(words)).iter(f"{SVG}text")}
