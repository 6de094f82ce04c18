"""What the studio asks beyond the API, and its page: one HTML file, one style sheet, one script, all from here."""

from __future__ import annotations

from pathlib import Path

from starlette.routing import BaseRoute, Mount
from starlette.staticfiles import StaticFiles

import regarde
from regarde.serving.api import Service

STATIC = Path(regarde.__file__).parent / "studio" / "static"


def routes(service: Service) -> list[BaseRoute]:
    """The page is last: it answers at every path that nobody else has."""
    return [Mount("/", StaticFiles(directory=STATIC, html=True, check_dir=False))]
