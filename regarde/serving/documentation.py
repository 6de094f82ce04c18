"""The API's own description: `/openapi.json`, and `/docs`, a page made of it that needs no script and no other host."""

from __future__ import annotations

import html
from collections.abc import Iterator
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import BaseRoute, Route

from regarde.serving.api import answer
from regarde.serving.openapi import document
from regarde.serving.service import Service

STYLE = """
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { margin: 3rem auto; max-width: 46rem; padding: 0 1rem; }
code { font: 0.9em ui-monospace, monospace; }
h2 { margin: 2.5rem 0 0; font-size: 1.1rem; }
table { border-collapse: collapse; margin: 0.75rem 0; width: 100%; }
td, th { border-bottom: 1px solid color-mix(in srgb, currentColor 20%, transparent); padding: 0.3rem 0.75rem 0.3rem 0;
  text-align: left; vertical-align: top; }
"""


def routes(service: Service) -> list[BaseRoute]:
    described = document(service.limits)
    shown = "".join(_page(described))

    async def openapi(request: Request) -> Response:
        return answer(described)

    async def docs(request: Request) -> Response:
        return HTMLResponse(shown)

    async def style(request: Request) -> Response:
        return Response(STYLE, media_type="text/css")

    return [Route("/openapi.json", openapi), Route("/docs", docs), Route("/docs.css", style)]


def _page(described: dict[str, Any]) -> Iterator[str]:
    yield '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Regarde: the API</title>'
    yield '<meta name="viewport" content="width=device-width"><link rel="stylesheet" href="docs.css"></head><body>'
    yield '<h1>Regarde: the API</h1><p>As a document for programs: <a href="openapi.json">openapi.json</a></p>'
    for path, methods in described["paths"].items():
        for method, about in methods.items():
            yield f"<h2><code>{method.upper()} {html.escape(path)}</code></h2><p>{html.escape(about['summary'])}</p>"
            yield from _fields(about)
            yield from _answers(about)
    yield "</body></html>"


def _fields(about: dict[str, Any]) -> Iterator[str]:
    if "requestBody" not in about:
        return
    media = about["requestBody"]["content"]
    schema = next(iter(media.values()))["schema"]
    yield f"<p>Body: {' or '.join(f'<code>{kind}</code>' for kind in media)}</p><table>"
    for name, field in schema["properties"].items():
        needed = "required" if name in schema["required"] else ""
        bounds = f"{field['minimum']} to {field['maximum']}" if "minimum" in field else needed
        told = f"<td>{html.escape(field['description'])}</td><td>{bounds}</td>"
        yield f"<tr><th><code>{name}</code></th>{told}</tr>"
    yield "</table>"


def _answers(about: dict[str, Any]) -> Iterator[str]:
    yield "<table>"
    for code, told in about["responses"].items():
        yield f"<tr><th>{code}</th><td>{html.escape(told['description'])}</td></tr>"
    yield "</table>"
