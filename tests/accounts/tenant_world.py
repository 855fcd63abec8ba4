"""Requests to every route with ids of either of two projects."""

from __future__ import annotations

import hashlib
import itertools
import re
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx
from account_people import Endpoint, endpoints
from fastapi import FastAPI
from fastapi.testclient import TestClient

from support.rows.one_of_everything import SHARED, Things


@dataclass(frozen=True)
class Call:
    """A request to a route. `refs`: the value of each parameter in its path."""

    endpoint: Endpoint
    refs: dict[str, str]
    by_id: bool = True

    @property
    def path(self) -> str:
        return re.sub(r"{(\w+)(:path)?}", lambda match: self.refs[match[1]], self.endpoint.template)


def parameters(endpoint: Endpoint) -> list[str]:
    return re.findall(r"{(\w+)(?::path)?}", endpoint.template)


def own(endpoint: Endpoint, mine: Things) -> Call:
    """The call with the first name of each of my things."""
    return Call(endpoint, {name: SHARED.get(name) or mine.refs[name][0] for name in parameters(endpoint)})


def foreign(endpoint: Endpoint, mine: Things, theirs: Things) -> Iterator[tuple[Call, Call]]:
    """The ways to put things of theirs into the path, each paired with one of things that do not exist.

    In my project; the project itself is one of the things. One thing by all of its names, several by their ids.
    """
    things = [name for name in parameters(endpoint) if name not in SHARED]
    if endpoint.method == "PUT" and endpoint.template.endswith("-views/{view}"):
        things.remove("view")  # keeps a view of mine under that name
    base = own(endpoint, mine).refs
    for count in range(1, len(things) + 1):
        for chosen in itertools.combinations(things, count):
            names = [theirs.refs[name] if count == 1 else theirs.refs[name][:1] for name in chosen]
            for named in itertools.product(*names):
                there = dict(zip(chosen, named, strict=True))
                absent = {name: absent_like(ref) for name, ref in there.items()}
                by_id = all(ref == theirs.refs[name][0] for name, ref in there.items())
                yield Call(endpoint, base | there, by_id), Call(endpoint, base | absent, by_id)


def absent_like(ref: str) -> str:
    """Nothing has this name: an id for an id, the end of one for its end, a name for a name."""
    other = str(uuid.uuid5(uuid.NAMESPACE_OID, ref))
    if re.fullmatch(r"[0-9a-f]{64}", ref):
        return hashlib.sha256(ref.encode()).hexdigest()
    if re.fullmatch(r"[0-9a-f-]{36}", ref):
        return other
    return other[-12:] if re.fullmatch(r"[0-9a-f]{12}", ref) else f"absent-{ref}"


def masked(call: Call, answer: httpx.Response) -> tuple[int, str]:
    """Status and body, without the values from the path."""
    text = "a live stream" if _is_live(answer) else answer.text
    for name, ref in sorted(call.refs.items(), key=lambda pair: -len(pair[1])):
        if name not in SHARED:
            text = text.replace(ref, f"<{name}>")
    return answer.status_code, text


class Bodies:
    """The smallest request that the API's own description calls valid."""

    def __init__(self, app: FastAPI, given: dict[tuple[str, str], Any]) -> None:
        self._schema = app.openapi()
        self._given = given

    def of(self, endpoint: Endpoint) -> dict[str, Any]:
        """`params` and `json`, or `data` and `files`, of a request."""
        template = re.sub(r":path}", "}", endpoint.template)
        operation = self._schema["paths"].get(template, {}).get(endpoint.method.lower(), {})
        asked = [
            parameter
            for parameter in operation.get("parameters", [])
            if parameter["in"] == "query" and parameter.get("required")
        ]
        options: dict[str, Any] = {
            "params": {parameter["name"]: self._example(parameter["schema"]) for parameter in asked}
        }
        content = operation.get("requestBody", {}).get("content", {})
        if "application/json" in content:
            known = self._given.get((endpoint.method, template.removeprefix("/api/v1/projects/{project}")))
            options["json"] = known if known is not None else self._example(content["application/json"]["schema"])
        elif "multipart/form-data" in content:
            fields = self._resolved(content["multipart/form-data"]["schema"])
            files = {
                name: ("x.jsonl", b'{"prompt": "a", "response": "b"}\n')
                for name, schema in fields.get("properties", {}).items()
                if "contentMediaType" in str(schema) or "binary" in str(schema)
            }
            asked_for = {name: fields["properties"][name] for name in fields.get("required", []) if name not in files}
            options["data"] = {name: self._example(schema) for name, schema in asked_for.items()}
            options["files"] = files
        return options

    def _resolved(self, schema: dict[str, Any]) -> dict[str, Any]:
        while "$ref" in schema:
            schema = self._schema["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
        return schema

    def _example(self, schema: dict[str, Any]) -> Any:
        schema = self._resolved(schema)
        if "default" in schema or "const" in schema:
            return schema.get("const", schema.get("default"))
        if "enum" in schema:
            return schema["enum"][0]
        for choice in ("anyOf", "oneOf", "allOf"):
            if choice in schema:
                return self._example(schema[choice][0])
        match schema.get("type"):
            case "object":
                fields = schema.get("properties", {})
                return {name: self._example(fields[name]) for name in schema.get("required", [])}
            case "array":
                return [self._example(schema["items"]) for _ in range(schema.get("minItems", 0))]
            case "string":
                return str(uuid.uuid4()) if schema.get("format") == "uuid" else "x" * max(1, schema.get("minLength", 1))
            case "integer" | "number":
                return schema.get("minimum", schema.get("exclusiveMinimum", 0) + 1)
            case "boolean":
                return True
        return None


def project_routes(app: FastAPI) -> list[Endpoint]:
    """Reading first; what deletes last, the parts of a thing before the thing."""
    order = ["GET", "PUT", "PATCH", "POST", "DELETE"]
    routes = [endpoint for endpoint in endpoints(app) if "{project}" in endpoint.template]
    return sorted(
        routes, key=lambda endpoint: (order.index(endpoint.method), -len(parameters(endpoint)), endpoint.template)
    )


def send(client: TestClient, bodies: Bodies, call: Call, **headers: str) -> httpx.Response:
    """The answer; of a live stream only its beginning."""
    with client.stream(call.endpoint.method, call.path, headers=headers, **bodies.of(call.endpoint)) as answer:
        if not _is_live(answer):
            answer.read()
    return answer


def _is_live(answer: httpx.Response) -> bool:
    return answer.headers.get("content-type", "").startswith("text/event-stream")
