"""Pages without scripts: `/`, which says what this server is, and `/docs`, made of the OpenAPI document."""

from __future__ import annotations

import html
import json
import shlex
from collections.abc import Iterator, Sequence
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.routing import BaseRoute, Route

import regarde
from regarde.serving.models.catalog import ForecasterInfo, ModelInfo
from regarde.serving.models.service import Service
from regarde.serving.routes import languages
from regarde.serving.routes.openapi import document
from regarde.serving.routes.responses import json_response
from regarde.tasks import TRANSLATION

STYLE = """
:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { margin: 3rem auto; max-width: 46rem; padding: 0 1rem; }
code, pre { font: 0.9em/1.5 ui-monospace, monospace; }
pre { overflow-x: auto; padding: 0.75rem 1rem; border-radius: 0.4rem;
  background: color-mix(in srgb, currentColor 8%, transparent); }
h2 { margin: 2.5rem 0 0; font-size: 1.1rem; }
table { border-collapse: collapse; margin: 0.75rem 0; width: 100%; }
td, th { border-bottom: 1px solid color-mix(in srgb, currentColor 20%, transparent); padding: 0.3rem 0.75rem 0.3rem 0;
  text-align: left; vertical-align: top; overflow-wrap: anywhere; min-width: 6ch; }
"""
LINKS = {
    "docs": "every route and field",
    "openapi.json": "the same description in OpenAPI format, for programs",
    "health/ready": "whether the models can answer",
    "metrics": "metrics for Prometheus",
}

EXAMPLES: dict[str, tuple[str, dict[str, Any]]] = {
    "translation": ("Translate, with what each word attends to:", {"text": "TEXT", "beam": 5, "attention": True}),
    "classification": ("The probability of each label:", {"text": "TEXT"}),
    "tagging": ("A tag for each token:", {"text": "TEXT"}),
    "questions": ("Answer a question about a passage:", {"text": "PASSAGE\tQUESTION", "attention": True}),
    "modeling": ("Continue a prompt:", {"text": "PROMPT", "temperature": 0.8, "length": 40, "stream": True}),
}  # by task


def routes(service: Service, forecasters: Sequence[ForecasterInfo], *, home: bool) -> list[BaseRoute]:
    """`home`: with the page `/`."""
    described = document(service.limits)
    docs_page = _page("Regarde: the API", _docs(described))

    async def home_page(client: Request) -> Response:
        keys, url = bool(service.policy.keys.hashes), str(client.base_url)
        return HTMLResponse(_page("Regarde", _home(url, service.worker.models, forecasters, keys=keys)))

    async def openapi(client: Request) -> Response:
        return json_response(described)

    async def docs(client: Request) -> Response:
        return HTMLResponse(docs_page)

    async def style(client: Request) -> Response:
        return Response(STYLE, media_type="text/css")

    pages = [Route("/openapi.json", openapi), Route("/docs", docs), Route("/docs.css", style)]
    return [Route("/", home_page), *pages] if home else [*pages]


def _page(title: str, content: Iterator[str]) -> str:
    head = '<meta charset="utf-8"><meta name="viewport" content="width=device-width">'
    style = '<link rel="stylesheet" href="docs.css"><link rel="icon" href="data:,">'
    start = f'<!doctype html><html lang="en"><head>{head}<title>{title}</title>{style}</head>'
    return f"{start}<body><main><h1>{title}</h1>{''.join(content)}</main></body></html>"


def _home(url: str, models: Sequence[ModelInfo], forecasters: Sequence[ForecasterInfo], *, keys: bool) -> Iterator[str]:
    yield f"<p>This server runs models with attention. Its version is Regarde {html.escape(regarde.__version__)}.</p>"
    yield "<h2>Models</h2>"
    if keys:  # the names of models are for clients with a key
        yield "<p>Requests need a key. With one, <code>GET /v1/models</code> lists the models.</p>"
    if models and not keys:
        stated = any(model.source_language or model.target_language for model in models)
        yield f"<table><tr><th>name</th><th>task</th><th>kind</th>{'<th>from</th><th>to</th>' * stated}</tr>"
        for model in models:
            codes = (languages.source(model), languages.target(model)) if stated else ()
            cells = (model.name, model.task, model.kind, *map(languages.name, codes))
            yield f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in cells)}</tr>"
        yield "</table><p>The first model is the default. Details: <a href='v1/models'>/v1/models</a></p>"
    if forecasters and not keys:
        yield "<table><tr><th>forecaster</th><th>series</th><th>frequency</th><th>values ahead</th></tr>"
        for each in forecasters:
            cells = (each.name, f"{each.series:,}", each.frequency, f"{each.horizon:,}")
            yield f"<tr>{''.join(f'<td>{html.escape(cell)}</td>' for cell in cells)}</tr>"
        yield "</table>"
    yield "<h2>Examples</h2>"
    header = " -H 'authorization: Bearer KEY'" if keys else ""
    for about, path, body in _examples(models, forecasters, keys=keys):
        command = (
            f"curl {url}{path}{header} -H 'content-type: application/json' \\\n  -d {shlex.quote(json.dumps(body))}"
        )
        yield f"<p>{about}</p><pre>{html.escape(command)}</pre>"
    yield "<h2>More</h2><table>"
    for path, about in LINKS.items():
        yield f'<tr><th><a href="{path}">/{path}</a></th><td>{about}</td></tr>'
    yield "</table>"


def _examples(
    models: Sequence[ModelInfo], forecasters: Sequence[ForecasterInfo], *, keys: bool
) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """What each example does, its path and its body: one for each task that is served."""
    first = {model.task: model for model in reversed(models)}
    for task, (about, body) in EXAMPLES.items():
        if task in first:
            named = {} if first[task] is models[0] else {"model": "NAME" if keys else first[task].name}
            yield about, "v1/predict", named | body
    if TRANSLATION.kind in first:
        body = {"q": "TEXT", "source": "auto", "target": languages.target(first[TRANSLATION.kind])}
        yield "Translate as LibreTranslate does:", "translate", body
    if forecasters:
        yield "Forecast the series that a model knows:", "v1/forecast", {"paths": 100, "quantiles": [0.1, 0.5, 0.9]}


def _docs(described: dict[str, Any]) -> Iterator[str]:
    yield '<p>As an OpenAPI document: <a href="openapi.json">openapi.json</a></p>'
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            heading = f"<h2><code>{method.upper()} {html.escape(path)}</code></h2>"
            yield f"{heading}<p>{html.escape(operation['summary'])}</p>"
            yield from _fields(operation)
            yield "<table>"
            for code, response in operation["responses"].items():
                yield f"<tr><th>{code}</th><td>{html.escape(response['description'])}</td></tr>"
            yield "</table>"


def _fields(operation: dict[str, Any]) -> Iterator[str]:
    if "requestBody" not in operation:
        return
    media = operation["requestBody"]["content"]
    schema = next(iter(media.values()))["schema"]
    yield f"<p>Body: {' or '.join(f'<code>{kind}</code>' for kind in media)}</p><table>"
    for name, field in schema["properties"].items():
        required = "required" if name in schema["required"] else ""
        bounds = f"{field['minimum']} to {field['maximum']}" if "minimum" in field else required
        yield f"<tr><th><code>{name}</code></th><td>{html.escape(field['description'])}</td><td>{bounds}</td></tr>"
    yield "</table>"
