"""A figure drawn by matplotlib, saved as .svg, .pdf or .png; the same figure always gives the same bytes.

matplotlib's global state is not changed: no pyplot, no style, no backend. Letters are outlines, so a picture does not
depend on installed fonts; fonts that matplotlib 3.11 embeds in PDF lose or misplace letters of some scripts.
"""

from __future__ import annotations

import contextlib
import io
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from regarde.errors import DiskError, RegardeError, UsageError
from regarde.visualize import fonts
from regarde.visualize.style import Palette

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.text import Text
    from matplotlib.transforms import Transform

DPI = 200
KINDS = (".svg", ".pdf", ".png")
_SETTINGS: dict[Any, Any] = {"svg.hashsalt": "regarde", "svg.fonttype": "path"}
_UNDATED = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {}}


@dataclass(frozen=True, eq=False)
class Picture:
    """A drawn figure, and a warning for each script without a font."""

    figure: Figure
    missing: tuple[str, ...] = ()

    def save(self, path: str | Path, dpi: int = DPI) -> None:
        """Write the format of the suffix; `dpi` is for .png."""
        path = Path(path)
        content = self._content(kind(path), dpi)  # complete before the file is opened
        try:
            path.write_bytes(content)
        except OSError as error:
            reason = error.strerror or error
            raise DiskError(f"{path}: not written ({reason}). Choose a folder that can be written.") from None

    def svg(self) -> str:
        """The picture as an SVG element for a page."""
        text = self._content("svg", DPI).decode("utf-8")
        return text[text.index("<svg") :]

    def png(self, dpi: int = DPI) -> bytes:
        return self._content("png", dpi)

    def _content(self, form: str, dpi: int) -> bytes:
        from matplotlib import rc_context

        content = io.BytesIO()
        with rc_context(_SETTINGS), self._outlines() if form == "pdf" else contextlib.nullcontext():
            self.figure.savefig(
                content,
                format=form,
                dpi=dpi,
                facecolor=self.figure.get_facecolor(),
                bbox_inches="tight",
                pad_inches=0.08,
                metadata=_UNDATED[form],
            )
        return content.getvalue()

    @contextlib.contextmanager
    def _outlines(self) -> Iterator[None]:
        """Draw texts as outlines: matplotlib does so for a text with an effect, even an invisible one."""
        from matplotlib.patheffects import Normal
        from matplotlib.text import Text

        self.figure.draw_without_rendering()  # creates the tick labels
        texts = [artist for artist in self.figure.findobj(Text) if isinstance(artist, Text)]
        for text in texts:
            text.set_path_effects([Normal()])
        try:
            yield
        finally:
            for text in texts:
                text.set_path_effects([])


def kind(path: Path) -> str:
    """svg, pdf or png, by the suffix."""
    if path.suffix.lower() not in KINDS:
        raise UsageError(f"{path}: unknown picture format. Use a name that ends in .svg, .pdf or .png.")
    return path.suffix.lower().removeprefix(".")


@dataclass(frozen=True, eq=False)
class Canvas:
    """An empty figure; `write` gives each text the fonts it needs."""

    style: Palette
    figure: Figure
    texts: list[str] = field(default_factory=list)  # all texts written

    @classmethod
    def empty(cls, style: Palette, width: float, height: float) -> Canvas:
        """A figure of this size in inches; it grows when something is drawn outside."""
        try:
            with _apart_from_the_working_directory():
                from matplotlib.figure import Figure
                from matplotlib.font_manager import FontPath  # noqa: F401  # since 3.11, which shapes and orders letters
        except ImportError:
            raise RegardeError("A picture needs matplotlib 3.11 or later. pip install 'regarde[plot]'.") from None
        ground = "none" if style.transparent else style.paper
        return cls(style, Figure(figsize=(width, height), facecolor=ground, edgecolor=ground))

    @property
    def inches(self) -> Transform:
        """Coordinates in inches from the lower left corner of the figure."""
        from matplotlib.transforms import Affine2D

        width, height = self.figure.get_size_inches()
        return Affine2D().scale(1 / width, 1 / height) + self.figure.transFigure

    def write(
        self,
        text: str,
        x: float,
        y: float,
        *,
        size: float,
        color: str | None = None,
        ha: Literal["left", "center", "right"] = "left",
        va: Literal["top", "center", "baseline", "bottom"] = "baseline",
        rotation: float = 0.0,
    ) -> Text:
        """Write a text at (x, y), in inches from the lower left corner; `$` has no special meaning."""
        self.texts.append(text)
        lettering = fonts.letter(text)
        return self.figure.text(
            *(x, y, lettering.text),
            fontfamily=list(lettering.families),
            fontsize=size,
            color=color or self.style.ink,
            transform=self.inches,
            ha=ha,
            va=va,
            rotation=rotation,
            rotation_mode="anchor",
            parse_math=False,
        )

    def width(self, text: str, size: float) -> float:
        """The width of a text in inches; nothing is written."""
        found = self.write(text, 0.0, 0.0, size=size)
        box = found.get_window_extent()
        found.remove()
        self.texts.pop()
        return float(box.width / self.figure.dpi)

    def picture(self) -> Picture:
        return Picture(self.figure, fonts.missing(self.texts))


@contextlib.contextmanager
def _apart_from_the_working_directory() -> Iterator[None]:
    """Import matplotlib without reading a `matplotlibrc` of the working directory.

    That directory may be an untrusted model folder, and settings can start other programs, such as TeX.
    """
    if "matplotlib" in sys.modules or not Path("matplotlibrc").exists():
        yield
        return
    with contextlib.chdir(Path(__file__).parent):
        yield
