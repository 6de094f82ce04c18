"""Pictures of attention: in the terminal, as SVG, as one offline HTML page, as PNG or PDF."""

from __future__ import annotations

from pathlib import Path

from regarde.errors import DiskError, UsageError
from regarde.visualize.heatmap import Heatmap

__all__ = ["Heatmap", "save"]


def save(chart: Heatmap, path: str | Path) -> tuple[str, ...]:
    """Write `chart` in the format of the suffix: .svg, .html, .png or .pdf.

    Returns one warning for each script that no installed font has (.png and .pdf).
    """
    path = Path(path)
    suffix = path.suffix.lower()
    try:
        if suffix == ".svg":
            from regarde.visualize import svg

            path.write_text(svg.heatmap(chart), encoding="utf-8", newline="\n")
        elif suffix == ".html":
            from regarde.visualize import html

            path.write_text(html.page([chart], chart.title), encoding="utf-8", newline="\n")
        elif suffix in (".png", ".pdf"):
            from regarde.visualize import panels

            picture = panels.draw([panels.Panel(chart)], title=chart.title, values=panels.roomy(chart))
            picture.save(path)
            return picture.missing
        else:
            raise UsageError(f"{path}: unknown picture format. Use a name that ends in .svg, .html, .png or .pdf.")
    except OSError as error:
        raise DiskError(
            f"{path}: not written ({error.strerror or error}). Choose a folder that can be written."
        ) from None
    return ()
