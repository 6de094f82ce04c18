"""The option --picture and those that say how it is drawn; the same in every command that draws."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from regarde.cli.options import flag, option
from regarde.errors import UsageError, warn

if TYPE_CHECKING:
    from regarde.visualize.panels import Panel

File = Annotated[
    Path | None, option("FILE", "Draw the attention: .svg, .pdf or .png for print, .html for a browser.", "--picture")
]
Values = Annotated[bool, flag("--values", "Write each weight into its cell of the picture.")]
Heads = Annotated[bool, flag("--heads", "Draw each layer and head separately.")]
Dark = Annotated[bool, flag("--dark", "Draw the picture on a black background.")]
Transparent = Annotated[bool, flag("--transparent", "Draw the picture without a background.")]
Dpi = Annotated[int, option("N", "Resolution of a .png picture, dots per inch.", least=30, most=1200)]
DPI = 200


@dataclass(frozen=True)
class Drawing:
    """The file of a picture, if one is drawn, and how."""

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
            raise UsageError(f"{given[0]}: for a picture, and none is drawn. Add --picture FILE.")
        if self.is_page and given:
            raise UsageError(f"{given[0]}: for a picture to print, and {self.file} is a page. Use .svg, .pdf or .png.")
        if self.file is not None and not self.is_page:
            from regarde.visualize.picture import KINDS

            if self.file.suffix.lower() not in KINDS:
                raise UsageError(f"{self.file}: unknown picture format. Use .svg, .pdf, .png or .html.")

    @property
    def is_page(self) -> bool:
        return self.file is not None and self.file.suffix.lower() == ".html"

    def save(self, panels: Sequence[Panel], title: str, columns: int = 0) -> None:
        """Draw the panels and report the file, and letters for which there is no font."""
        assert self.file is not None, "drawn without a file"
        if self.is_page:
            from regarde.visualize import save

            (panel,) = panels
            save(panel.heat, self.file)
            warn(f"wrote {self.file}")
            return

        from regarde.visualize.panels import draw
        from regarde.visualize.style import DARK, LIGHT

        style = replace(DARK if self.dark else LIGHT, transparent=self.transparent)
        picture = draw(panels, title=title, columns=columns, values=self.values, style=style)
        picture.save(self.file, self.dpi)
        for warning in picture.missing:
            warn(f"warning: {warning}")
        warn(f"wrote {self.file}")
