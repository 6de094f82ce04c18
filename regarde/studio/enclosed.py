"""The studio's Step and Align views as one HTML file with the page, its script and a trace, for slides and notebooks.

The file makes no requests. Its security policy allows its own script and style only, by their hash. The trace is data,
never code: every `<` in it is escaped.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

from regarde.errors import DiskError
from regarde.search.trace import Trace
from regarde.studio import STATIC
from regarde.visualize.html import hashed
from regarde.visualize.labels import visible


def page(model: Mapping[str, Any], trace: Trace) -> str:
    """The page; `model` is the model's entry of GET /v1/models, with at least `name` and `settings`."""
    style = (STATIC / "studio.css").read_text(encoding="utf-8")
    script = (STATIC / "studio.js").read_text(encoding="utf-8")
    assert "</style" not in style
    assert "</script" not in script
    policy = (
        f"default-src 'none'; script-src {hashed(script)}; style-src {hashed(style)}; img-src data: blob:; "
        "base-uri 'none'; form-action 'none'"
    )
    title = escape("".join(map(visible, trace.source)).replace("␣", " "))
    content = {"model": model, "trace": trace.as_json()}
    data = json.dumps(content, allow_nan=False, separators=(",", ":")).replace("<", "\\u003c")  # no tag inside
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<title>{title}</title>\n<link rel="icon" href="data:,">\n<style>{style}</style>\n</head>\n<body>\n'
        f'<div id="page"><noscript><p dir="auto">{title}</p></noscript></div>\n'
        f'<script type="application/json" id="enclosed">{data}</script>\n'
        f"<script>{script}</script>\n</body>\n</html>\n"
    )


def save(path: Path, model: Mapping[str, Any], trace: Trace) -> None:
    """Write the page."""
    try:
        path.write_text(page(model, trace), encoding="utf-8", newline="\n")
    except OSError as error:
        raise DiskError(
            f"{path}: not written ({error.strerror or error}). Choose a folder that can be written."
        ) from None
