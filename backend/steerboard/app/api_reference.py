"""`/docs`: the API for people to read, made of its OpenAPI description. It has no scripts and asks no one else."""

from __future__ import annotations

import html
import json
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from fastapi import FastAPI
from fastapi.responses import HTMLResponse

_PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<title>{title} API</title><style>
:root {{ color-scheme: light dark; }}
body {{ font: 15px/1.5 system-ui, sans-serif; max-width: 60rem; margin: 2rem auto; padding: 0 1rem; }}
summary {{ cursor: pointer; padding: .25rem 0; overflow-wrap: anywhere; }}
details details, details > :not(summary) {{ margin-left: 1rem; }}
code, pre {{ font: 13px/1.5 ui-monospace, monospace; }}
pre {{ overflow: auto; max-height: 30rem; }}
td {{ padding: .1rem 1rem .1rem 0; vertical-align: top; overflow-wrap: anywhere; }}
nav a {{ margin-right: .75rem; }}
</style></head><body>
<h1>{title} API <small>{version}</small></h1>
<p>{description} Signed-in browsers send their cookie, programs <code>Authorization: Bearer TOKEN</code>.
The description for generators is <a href="{source}">openapi.json</a>.</p>
<nav>{links}</nav>
{operations}
<h2 id="schemas">Schemas</h2>
{schemas}
</body></html>"""


def install(app: FastAPI) -> None:
    """The page is made when it is asked for first."""
    made: list[str] = []

    @app.get("/docs", include_in_schema=False)
    def get_reference() -> HTMLResponse:
        if not made:
            made.append(_page(app.openapi(), str(app.openapi_url)))
        return HTMLResponse(made[0])


def _page(described: dict[str, Any], source: str) -> str:
    groups: dict[str, list[str]] = defaultdict(list)
    for path, methods in described["paths"].items():
        for method, operation in methods.items():
            groups[operation.get("tags", ["other"])[0]].append(_operation(method.upper(), path, operation))
    info = {name: html.escape(described["info"].get(name, "")) for name in ("title", "version", "description")}
    return _PAGE.format(
        **info,
        source=html.escape(source),
        links=" ".join(f'<a href="#{html.escape(tag)}">{html.escape(tag)}</a>' for tag in [*groups, "schemas"]),
        operations="".join(
            f'<h2 id="{html.escape(tag)}">{html.escape(tag)}</h2>{"".join(operations)}'
            for tag, operations in groups.items()
        ),
        schemas="".join(
            f'<details id="schema-{html.escape(name)}"><summary><code>{html.escape(name)}</code></summary>'
            f"<pre>{html.escape(json.dumps(schema, indent=2))}</pre></details>"
            for name, schema in described["components"]["schemas"].items()
        ),
    )


def _operation(method: str, path: str, operation: dict[str, Any]) -> str:
    about = operation.get("description", operation["summary"])
    return (
        f"<details><summary><code>{method} {html.escape(path)}</code></summary><p>{html.escape(about)}</p>"
        f"<table>{''.join(_inputs(operation))}{''.join(_answers(operation))}</table></details>"
    )


def _inputs(operation: dict[str, Any]) -> Iterator[str]:
    for parameter in operation.get("parameters", []):
        need = ", required" if parameter.get("required") else ""
        about = parameter.get("description", "")
        yield _row(parameter["name"], f"{parameter['in']}{need}", html.escape(about))
    for kind, content in operation.get("requestBody", {}).get("content", {}).items():
        yield _row("body", kind, _schema(content.get("schema", {})))


def _answers(operation: dict[str, Any]) -> Iterator[str]:
    for status, answer in operation["responses"].items():
        schemas = [_schema(content.get("schema", {})) for content in answer.get("content", {}).values()]
        yield _row(status, answer.get("description", ""), " ".join(schemas))


def _row(name: str, kind: str, about: str) -> str:
    return f"<tr><td><code>{html.escape(name)}</code></td><td>{html.escape(kind)}</td><td>{about}</td></tr>"


def _schema(schema: dict[str, Any]) -> str:
    """A link to a named schema; the JSON of one without a name."""
    name = schema.get("$ref", "").rpartition("/")[2]
    if name:
        return f'<a href="#schema-{html.escape(name)}">{html.escape(name)}</a>'
    return f"<code>{html.escape(json.dumps(schema))}</code>" if schema else ""
