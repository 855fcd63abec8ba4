"""Whatever our OpenAPI allows, and whatever follows from it, is answered without a failure of ours."""

from __future__ import annotations

import base64
import copy
import itertools
import random
from collections import Counter
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import schemathesis
from api_world import ApiWorld
from fastapi import FastAPI
from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis.errors import Flaky
from hypothesis.stateful import run_state_machine_as_test
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import Project
from steerboard.platform.database import new_id, transaction
from steerboard.platform.storage.artifacts import ArtifactStore
from support.patience import PATIENCE
from support.rows.evaluation_rows import Evaluated
from support.rows.one_of_everything import SHARED, fill
from support.servers.served_app import served

# Streams have no end, and these would take the caller's own rights away.
_LEFT_OUT = (
    ("GET", "/api/v1/projects/{project}/events"),
    ("GET", "/api/v1/projects/{project}/playground/comparisons/{comparison}/stream"),
    ("DELETE", "/api/v1/projects/{project}/tokens/{token}"),
    ("DELETE", "/api/v1/session"),
)
# Ids of other services, which a test does not ask.
_ELSEWHERE = ("hub", "known")
# Fields of bodies that name a thing -> the parameter of paths that names such a thing.
_NAMING = {
    "campaign": "campaign",
    "data": "dataset",
    "dataset": "dataset",
    "endpoint": "endpoint",
    "judge": "judge",
    "model": "model",
    "policy_model": "model",
    "pool": "pool",
    "recipe": "name",
    "reward": "model",
    "set": "prompt_set",
}
# Not ours to prevent.
_AWAY = {"hub_unavailable", "prompts_unavailable", "endpoint_unavailable"}


def _known(raw: dict[str, Any], known: dict[str, list[str]]) -> dict[str, Any]:
    """The document with names of things that there are, so that calls get further than to a 404."""
    raw = copy.deepcopy(raw)
    for path, operations in raw["paths"].items():
        for method in [method for method in operations if (method.upper(), path) in _LEFT_OUT]:
            del operations[method]
        for operation in operations.values():
            for parameter in operation.get("parameters", []):
                if parameter["in"] == "path" and parameter["name"] in known:
                    parameter["schema"] = {"enum": known[parameter["name"]]}
    for schema in raw["components"]["schemas"].values():
        _without_elsewhere(schema)
        _naming(schema, known)
    for operations in raw["paths"].values():
        for operation in operations.values():
            for content in operation.get("requestBody", {}).get("content", {}).values():
                _without_elsewhere(content.get("schema", {}))
    return raw


def _without_elsewhere(schema: dict[str, Any]) -> None:
    for name in _ELSEWHERE:
        schema.get("properties", {}).pop(name, None)


def _naming(schema: dict[str, Any], known: dict[str, list[str]]) -> None:
    """Fields of a body that name a thing name one that there is, or one that there is not."""
    for field, thing in _NAMING.items():
        property_ = schema.get("properties", {}).get(field, {})
        for option in [property_, *property_.get("anyOf", [])]:
            if option.get("type") == "string" and not option.keys() & {"enum", "const"}:
                option.clear()
                option["enum"] = [*known[thing], "absent"]


class Calls:
    """Counts answers by status, and keeps failures of ours."""

    def __init__(self) -> None:
        self.statuses = Counter[int]()
        self.failures: list[str] = []

    def note(self, answer: Any, case: Any) -> None:
        self.statuses[answer.status_code] += 1
        if answer.status_code >= 500 and answer.json().get("code") not in _AWAY:
            self.failures.append(f"{answer.status_code} {answer.text}\n{case.as_curl_command()}")


@pytest.fixture
def schema(
    app: FastAPI,
    world: ApiWorld,
    sessions: sessionmaker[Session],
    project: Project,
    store: ArtifactStore,
    tmp_path: Path,
) -> Iterator[Any]:
    """Our OpenAPI, of a server with something of each kind."""
    rows = b"".join(b'{"prompt": "p%d", "chosen": "a", "rejected": "b"}\n' % row for row in range(20))
    file = {"file": ("rows.jsonl", rows)}
    world.client.post(world.url("datasets/import"), data={"name": "pairs"}, files=file)
    import_id = world.client.post(world.url("imports"), files=file).json()["id"]
    world.labelled("graded", [0.5, 1.0, -1.0])
    pipeline = world.start()
    run = next(iter(world.get("runs")["items"]))
    world.log(run["id"], "a line")
    world.metric(run["id"], "loss", [1.0, 0.5])
    evaluated = Evaluated(sessions, project, prompts=3)
    evaluated.entrant("one")
    evaluated.entrant("two")
    campaign = world.post(
        "evaluations/vicuna/campaigns", {"name": "asked", "instructions": "Rank them.", "overlap": 1}, status=201
    )
    world.post("collections", {"name": "kept", "kind": "instructions"}, status=201)
    with transaction(sessions) as session:
        known = fill(session, store, project, tmp_path, "mia").refs
    known |= {name: [value] for name, value in SHARED.items()}
    for name, more in {
        "dataset": ["pairs", "graded", "hh", "é\x00%00", "x" * 300],
        "source": ["graded", "pinned"],
        "model": ["tiny", "other"],
        "run": [run["id"]],
        "pipeline": [pipeline["name"]],
        "import_id": [import_id],
        "evaluation": ["vicuna"],
        "campaign": [campaign["id"]],
        "collection": ["kept"],
        "kind": ["train", "score"],
        "name": ["offline-rlhf"],
        "user": ["owner", "\x00"],
    }.items():
        known[name] = more + known[name]
    # By its id: one of the operations renames it, and nothing would be found any more.
    known["project"] = [str(project.id)]
    with served(app) as url:
        loaded = schemathesis.openapi.from_dict(_known(app.openapi(), known))
        loaded.config.update(base_url=url)
        yield loaded


def _bounded(examples: int, steps: int = 50) -> settings:
    return settings(
        max_examples=examples,
        stateful_step_count=steps,
        deadline=None,
        database=None,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )


def _read_each(schema: Any, token: str) -> Calls:
    """Every GET once, of what there is and without any options."""
    calls = Calls()
    for result in schema.get_all_operations():
        operation = result.ok()
        if operation.method == "get":
            named = {parameter.name: parameter.definition["schema"] for parameter in operation.path_parameters}
            names = {name: schema.get("enum", [str(new_id())])[0] for name, schema in named.items()}
            case = operation.Case(path_parameters=names)
            calls.note(case.call(headers={"Authorization": f"Bearer {token}"}, timeout=PATIENCE), case)
    return calls


def _values(schema: dict[str, Any]) -> list[Any]:
    """Every member of an enumeration, both ends of a range, texts of several kinds."""
    if "anyOf" in schema:
        return [value for option in schema["anyOf"] if option.get("type") != "null" for value in _values(option)]
    if "enum" in schema:
        return list(schema["enum"])
    match schema["type"]:
        case "array":
            each = [[value] for value in _values(schema["items"])]
            return [*each, [values[0] for values in each[:2]]]
        case "boolean":
            return [True, False]
        case "integer":
            last = schema.get("exclusiveMaximum", 2**63) - 1
            return [schema.get("minimum", -(2**63)), 1, schema.get("maximum", last)]
        case "number":
            return [-1e308, 0, 0.5, 1e308]
        case _:
            # The last is a cursor that no list gives.
            far = base64.urlsafe_b64encode(b"9" * 30).decode()
            return ["a", "-1", "é %'", str(new_id()), "x" * schema.get("maxLength", 300), far]


def _set_each_option(schema: Any, token: str) -> Calls:
    """Every GET with each of its options alone at each of its values, and the second page of what has pages."""
    calls = Calls()
    headers = {"Authorization": f"Bearer {token}"}
    for result in schema.get_all_operations():
        operation = result.ok()
        if operation.method != "get":
            continue
        names = {
            parameter.name: parameter.definition["schema"].get("enum", [str(new_id())])[0]
            for parameter in operation.path_parameters
        }
        options = {parameter.name: parameter.definition["schema"] for parameter in operation.query}
        for name, option in options.items():
            for value in _values(option):
                case = operation.Case(path_parameters=names, query={name: value})
                calls.note(case.call(headers=headers, timeout=PATIENCE), case)
        if {"cursor", "limit"} <= options.keys():
            first = operation.Case(path_parameters=names, query={"limit": 1}).call(headers=headers, timeout=PATIENCE)
            if cursor := first.json().get("next"):
                case = operation.Case(path_parameters=names, query={"limit": 1, "cursor": cursor})
                calls.note(case.call(headers=headers, timeout=PATIENCE), case)
    return calls


def _call_each(schema: Any, token: str, examples: int, *, drawn: int) -> Calls:
    calls = Calls()
    operations = [result.ok() for result in schema.get_all_operations()]
    # What is renamed or deleted is asked for before.
    for operation in sorted(
        operations, key=lambda operation: (operation.method == "delete", operation.method == "patch")
    ):

        @seed(drawn)
        @_bounded(examples)
        @given(case=operation.as_strategy())
        def call(case: Any) -> None:
            calls.note(case.call(headers={"Authorization": f"Bearer {token}"}, timeout=PATIENCE), case)

        call()
    return calls


def _follow(schema: Any, token: str, wanted: int, *, drawn: int) -> Calls:
    """Calls of which one takes up what the one before gave, until there were so many."""
    calls = Calls()

    class Machine(schema.as_state_machine()):  # type: ignore[misc]
        def get_call_kwargs(self, case: Any) -> dict[str, Any]:
            return {"headers": {"Authorization": f"Bearer {token}"}, "timeout": 20}

        def validate_response(self, response: Any, case: Any, **_: Any) -> None:
            calls.note(response, case)

    for number in itertools.count(drawn):
        if calls.statuses.total() >= wanted:
            break
        # A server remembers what it was sent, so an example is not the same twice.
        with suppress(Flaky):
            run_state_machine_as_test(seed(number)(Machine), settings=_bounded(5, 30))
    return calls


def _well(calls: Calls, *, least: float = 0.1) -> None:
    assert not calls.failures, "\n\n".join(calls.failures)
    # They get somewhere: at least so large a share of them.
    done = sum(count for status, count in calls.statuses.items() if 200 <= status < 300)
    assert done > least * calls.statuses.total(), calls.statuses


@pytest.fixture
def drawn() -> int:
    """A seed. The short tests always draw the same, the long ones look further each time."""
    made = random.SystemRandom().randrange(1 << 32)
    print("seed", made)
    return made


@pytest.mark.long
def test_whatever_there_is_can_be_read_with_each_value_of_every_option(schema: Any, token: str) -> None:
    _well(_read_each(schema, token), least=0.5)
    _well(_set_each_option(schema, token), least=0.3)


def test_nothing_fails_in_the_course_of_a_few_calls(schema: Any, token: str) -> None:
    _well(_follow(schema, token, 50, drawn=0))


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_no_operation_fails_whatever_it_is_given(schema: Any, token: str, drawn: int) -> None:
    _well(_call_each(schema, token, 12, drawn=drawn))


@pytest.mark.long
@pytest.mark.timeout(1800)
def test_nothing_fails_in_the_course_of_many_calls(schema: Any, token: str, drawn: int) -> None:
    _well(_follow(schema, token, 1500, drawn=drawn))
