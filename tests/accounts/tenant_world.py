"""Two projects with one of everything in each, and requests to every route with ids of either."""

from __future__ import annotations

import hashlib
import itertools
import re
import uuid
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
from account_people import Endpoint, endpoints
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import func
from sqlalchemy.orm import Session

from ended_run import ended_run
from model_folders import write_model
from steerboard.accounts import members, service
from steerboard.accounts.tables import Project
from steerboard.datasets import tables as datasets
from steerboard.datasets.collections.tables import Collection, CollectionRow
from steerboard.datasets.imports.tables import Import
from steerboard.evaluation import tables as evaluation
from steerboard.evaluation.ranking import tables as ranking
from steerboard.platform.storage.artifacts import ArtifactStore
from steerboard.playground import tables as playground
from steerboard.registry.service import register_model
from steerboard.registry.tables import Endpoint as ModelEndpoint
from steerboard.registry.tables import ModelUpload
from steerboard.runs import tables as runs
from steerboard.webhooks import tables as webhooks

# Parameters of paths that name nothing of a project.
SHARED = {
    "kind": "mix",
    "name": "demo",
    "path": "config.json",
    "place": "0",
    "position": "0",
    "step": "1",
    "pool": "default",
    "code": "x",
}
CHAT = [{"role": "user", "content": "What is tea?"}]


@dataclass
class Things:
    """`refs`: parameter of paths -> how this project's thing may be named there."""

    project: Project
    refs: dict[str, list[str]] = field(default_factory=dict)

    def add(self, session: Session, param: str, row: Any, *, name: bool = False) -> Any:
        session.add(row)
        session.flush()
        self.refs[param] = [str(row.id), str(row.id)[-12:], *([row.name] if name else [])]
        return row


def fill(session: Session, store: ArtifactStore, project: Project, folder: Path, who: str) -> Things:
    """One of everything, ended where it can end. Names begin with `who`, who owns the project."""
    made = Things(project, {"project": [str(project.id), project.name]})
    _, user, _ = members.add(session, project, who, "owner")
    made.refs["user"] = [who]
    common: dict[str, Any] = {"project_id": project.id, "created_by": who}
    token, _ = service.create_token(session, name=f"{who}-token", scopes=["read"], project_id=project.id)
    made.refs["token"] = [str(token.id), token.name]

    rows = {"rows": 1, "held_out_rows": 0, "content_hash": "0" * 64, "origin": {}}
    data = datasets.Dataset(project_id=project.id, name=f"{who}-data", kind="labelled", **rows)
    made.add(session, "dataset", data, name=True)
    sample = {"prompt": CHAT, "response": "A drink.", "source": "x"}
    session.add(datasets.SampleRow(dataset_id=data.id, row=0, prompt_hash=1, held_out=False, sample=sample))
    source = datasets.RewardSource(project_id=project.id, name=f"{who}-grades", kind="imported")
    made.add(session, "source", source, name=True)
    session.add(datasets.Reward(dataset_id=data.id, reward_source_id=source.id, row=0, value=1.0))
    collection = Collection(name=f"{who}-kept", kind="instructions", **common)
    made.add(session, "collection", collection, name=True)
    kept = {"prompt": CHAT, "response": "A drink."}
    made.add(session, "row", CollectionRow(collection_id=collection.id, place=1, sample=kept, actor=who))
    imported = Import(
        name=f"{who}-import",
        file_name="x.jsonl",
        files=[{"label": "x.jsonl", "size": 1}],
        files_gone=True,
        size=0,
        format="jsonl",
        state="cancelled",
        columns=[],
        options={},
        attempt=0,
        **common,
    )
    made.add(session, "import_id", imported)

    model = register_model(
        session,
        store,
        project,
        name=f"{who}-model",
        folder=write_model(folder / who),
        role="sft",
        method="sft",
        parent_id=None,
        run_id=None,
    )
    made.refs["model"] = [str(model.id), model.name]
    file = {"path": SHARED["path"], "sha256": hashlib.sha256(b"{}").hexdigest(), "size": 2}
    upload = ModelUpload(
        name="coming", hash=hashlib.sha256(who.encode()).hexdigest(), files=[file], received=[], **common
    )
    session.add(upload)
    made.refs["hash"] = [upload.hash]
    served = ModelEndpoint(project_id=project.id, name=f"{who}-served", base_url="http://127.0.0.1:1/v1", model="m")
    made.add(session, "endpoint", served, name=True)
    pipeline = runs.Pipeline(name=f"{who}-pipeline", recipe={}, recipe_text="", settings={}, **common)
    made.add(session, "pipeline", pipeline, name=True)
    failed = {"state": "failed", "reason": "for a test", "created_by": who}
    run = ended_run(
        project.id, pipeline_id=pipeline.id, name="report", kind="evaluate", config={"run": "evaluate"}, **failed
    )
    made.add(session, "run", run)
    made.refs["run"].append(f"{pipeline.name}.report")

    now = func.clock_timestamp()
    comparison = playground.Comparison(prompt=CHAT, seed=1, attempt=1, ended_at=now, **common)
    made.add(session, "comparison", comparison)
    curve = playground.Curve(
        model_id=model.id,
        model_name=model.name,
        reward_model_id=model.id,
        reward_model_name=model.name,
        dataset_id=data.id,
        dataset_name=data.name,
        split="held_out",
        scores=[0.0],
        prompt_limit=1,
        prompts=[],
        decoding={},
        seed=1,
        state="succeeded",
        done=1,
        total=1,
        points=[],
        attempt=1,
        ended_at=now,
        **common,
    )
    made.add(session, "curve", curve)

    told = {"url": "http://127.0.0.1:1/", "events": ["run.failed"], "secret_sealed": "x", "active": True}
    hook = webhooks.Webhook(project_id=project.id, name=f"{who}-hook", **told)
    made.add(session, "webhook", hook, name=True)
    sent = {"event": "run.failed", "payload": {}, "state": "failed", "attempts": 10, "tries_left": 0}
    made.add(session, "delivery", webhooks.WebhookDelivery(webhook_id=hook.id, **sent))

    prompts = [{"question_id": "q", "category": None, "messages": CHAT, "follow_ups": [], "reference": None}]
    prompt_set = evaluation.PromptSet(name=f"{who}-prompts", format="own", prompts=prompts, **common)
    made.add(session, "prompt_set", prompt_set, name=True)
    told_from = {"kind": "prompt_set", "name": prompt_set.name}
    compared = evaluation.Evaluation(
        name=f"{who}-evaluation",
        description="",
        prompts_from=told_from,
        checked_against=[],
        seed=0,
        version=1,
        **common,
    )
    made.add(session, "evaluation", compared, name=True)
    session.add(
        evaluation.EvaluationPrompt(
            evaluation_id=compared.id, position=0, question_id="q", messages=CHAT, follow_ups=[]
        )
    )
    entrants = []
    for place in range(2):
        entrant = evaluation.Entrant(
            evaluation_id=compared.id, position=place, name=f"e{place}", source="import", decoding={}, samples=1
        )
        session.add(entrant)
        session.flush()
        session.add(evaluation.Response(entrant_id=entrant.id, position=0, sample=0, turns=[f"answer {place}"]))
        entrants.append(entrant)
    judge = evaluation.Judge(
        evaluation_id=compared.id,
        name=f"{who}-judge",
        style="single",
        model="m",
        settings={},
        imported={"file": "x", "format": "x", "rows": 0},
        created_by=who,
    )
    made.add(session, "judge", judge, name=True)
    campaign = ranking.Campaign(
        evaluation_id=compared.id,
        name=f"{who}-campaign",
        instructions="",
        criteria=[],
        entrants=[str(entrant.id) for entrant in entrants],
        overlap=1,
        lock_seconds=600,
        gold_every=0,
        state="open",
        salt="x",
        **common,
    )
    made.add(session, "campaign", campaign, name=True)
    item = ranking.RankingItem(campaign_id=campaign.id, position=0, place=0)
    session.add(item)
    session.flush()
    task = ranking.RankingTask(
        campaign_id=campaign.id,
        item_id=item.id,
        user_id=user.id,
        shown=[str(entrant.id) for entrant in entrants],
        state="locked",
        locked_until=now + func.make_interval(0, 0, 0, 1),
    )
    made.add(session, "task", task)
    return made


@dataclass(frozen=True)
class Call:
    """A request to a route. `refs`: the value of each parameter in its path."""

    endpoint: Endpoint
    refs: dict[str, str]
    by_id: bool = True

    @property
    def path(self) -> str:
        return re.sub(r"{(\w+)(:path)?}", lambda found: self.refs[found[1]], self.endpoint.template)


def parameters(endpoint: Endpoint) -> list[str]:
    return re.findall(r"{(\w+)(?::path)?}", endpoint.template)


def own(endpoint: Endpoint, mine: Things) -> Call:
    """With the first name of each."""
    return Call(endpoint, {name: SHARED.get(name) or mine.refs[name][0] for name in parameters(endpoint)})


def foreign(endpoint: Endpoint, mine: Things, theirs: Things) -> Iterator[tuple[Call, Call]]:
    """The ways to put things of theirs into the path, each paired with one of things that do not exist.

    In my project; the project itself is one of the things. One thing by all of its names, several by their ids.
    """
    things = [name for name in parameters(endpoint) if name not in SHARED]
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
        asked = [one for one in operation.get("parameters", []) if one["in"] == "query" and one.get("required")]
        options: dict[str, Any] = {"params": {one["name"]: self._example(one["schema"]) for one in asked}}
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
    found = [endpoint for endpoint in endpoints(app) if "{project}" in endpoint.template]
    return sorted(found, key=lambda one: (order.index(one.method), -len(parameters(one)), one.template))


def send(client: TestClient, bodies: Bodies, call: Call, **headers: str) -> httpx.Response:
    """The answer; of a live stream only its beginning."""
    with client.stream(call.endpoint.method, call.path, headers=headers, **bodies.of(call.endpoint)) as answer:
        if not _is_live(answer):
            answer.read()
    return answer


def _is_live(answer: httpx.Response) -> bool:
    return answer.headers.get("content-type", "").startswith("text/event-stream")
