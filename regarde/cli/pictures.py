"""Options of the commands that draw for print and slides, and the drawing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from regarde.errors import UsageError
from regarde.streaming.streams import warn

if TYPE_CHECKING:
    from regarde.visualize.panels import Panel

File = Annotated[Path | None, typer.Option("--picture", metavar="FILE", help="Draw for print: .svg, .pdf or .png.")]
Values = Annotated[bool, typer.Option("--values", metavar="", help="Write the weights into the picture's cells.")]
Heads = Annotated[bool, typer.Option("--heads", metavar="", help="Draw each layer and head by itself.")]
Dark = Annotated[bool, typer.Option("--dark", metavar="", help="Draw the picture for dark slides.")]
Transparent = Annotated[bool, typer.Option("--transparent", metavar="", help="Draw the picture without a ground.")]
Dpi = Annotated[int, typer.Option(min=30, max=1200, metavar="N", help="Dots per inch of a .png picture.")]
DPI = 200


@dataclass(frozen=True)
class Drawing:
    """Where and how a picture is to be drawn, if at all."""

    file: Path | None
    values: bool = False
    heads: bool = False
    dark: bool = False
    transparent: bool = False
    dpi: int = DPI

    def __post_init__(self) -> None:
        given = [
            *(f"--{name}" for name in ("values", "heads", "dark", "transparent") if getattr(self, name)),
            *([f"--dpi {self.dpi}"] if self.dpi != DPI else []),
        ]
        if self.file is None and given:
            raise UsageError(f"{given[0]}: says how a picture is drawn, but none is. Add --picture FILE.")
        if self.file is not None:
            from regarde.visualize.picture import kind

            kind(self.file)

    def save(self, panels: Sequence[Panel], title: str, columns: int = 0) -> None:
        """Draw the panels, say which letters had no font, and that the file is written."""
        from regarde.visualize.panels import draw
        from regarde.visualize.style import DARK, LIGHT

        assert self.file is not None, "drawn without a file"
        style = replace(DARK if self.dark else LIGHT, transparent=self.transparent)
        picture = draw(panels, title=title, columns=columns, values=self.values, style=style)
        picture.save(self.file, self.dpi)
        for told in picture.missing:
            warn(f"warning: {told}")
        warn(f"wrote {self.file}")
