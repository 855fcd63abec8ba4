"""Filters of the list of runs find what a reading of the same filter in Python finds."""

from __future__ import annotations

import datetime as dt
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import Project
from steerboard.platform import few_ids
from steerboard.platform.database import transaction
from steerboard.platform.filters.errors import BadFilter
from steerboard.platform.filters.expression import Comparison, Conjunction, Disjunction, Expression, Negation, Search
from steerboard.platform.filters.parser import parse
from steerboard.runs.listing.page import RunsQuery, runs_page
from support.rows.listed_runs import OWNER, START, Listed, list_run

RUNS = [
    Listed("sft", "demo-1", settings={"lr": 1e-5, "lora": {"rank": 8}, "base": "tiny-llama"}, tags=("good",), hours=1),
    Listed("dpo", "demo-1", method="dpo", metrics={"eval_loss": [1.5, 1.1, 1.3], "eval_accuracy": [0.5, 0.7, 0.6]}),
    Listed("dpo", "demo-2", state="failed", method="dpo", metrics={"eval_loss": [2.0]}, settings={"lr": 1e-4}, hours=2),
    Listed("judge-it", kind="generate", method=None, settings={"base": "big", "lr": "auto"}, notes="Looks **odd**."),
    Listed("judge-it", kind="generate", method=None, state="cancelled", archived=True, seconds=30.0, hours=50),
    Listed(
        "report", "demo-2", kind="evaluate", method=None, results={"winner": "dt", "margin": 0.25}, tags=("good", "v 2")
    ),
    Listed("alone", settings={"lr": 1e-5, "balance": True}, seconds=5400.0, device_seconds=12.5, favourite=True),
    Listed("old", settings={"lr": 0.5}, by="token:ci", device_seconds=100.0, results={"margin": -1.0}, seconds=0.0),
]

FIELDS = {
    "number": ["lr", "setting.lr", "lora.rank", "eval_loss", "eval_loss.min", "eval_loss.max", "eval_loss.best",
               "metric.eval_accuracy", "eval_accuracy.best", "margin", "result.margin", "device_seconds", "attempts"],
    "text": ["name", "pipeline", "method", "by", "base", "winner", "setting.balance", "lr"],
}  # fmt: skip
NUMBERS = ["1e-5", "0.0001", "8", "1.1", "1.3", "1.5", "0.7", "0.25", "-1", "12.5", "0", "100"]
WORDS = [
    "sft",
    "dpo",
    "demo-1",
    "demo",
    "judge",
    "tiny-llama",
    "BIG",
    "dt",
    "true",
    "auto",
    "demo-1.dpo",
    "ci",
    "o",
    '"v 2"',
]
NUMBER = st.builds(
    "{} {} {}".format, st.sampled_from(FIELDS["number"]), st.sampled_from(["=", "!=", "<", "<=", ">", ">="]),
    st.sampled_from(NUMBERS),
)  # fmt: skip
TEXT = st.builds(
    "{}{}{}".format, st.sampled_from(FIELDS["text"]), st.sampled_from(["=", "!=", "~", ":"]), st.sampled_from(WORDS)
)
OTHER = st.sampled_from(
    ["state:failed", "state:failed,cancelled", "state != succeeded", "kind:dpo", "kind:train", "kind = generate",
     "tag:good", "tag = \"v 2\"", "tag != good", "tag ~ oo", "notes ~ odd", "is:archived", "is:favourite", "is:single",
     "is != archived", "has:notes", "has:tags", "has:pipeline", "duration < 1m", "duration >= 1.5h", "duration = 0",
     "created > 2026-11-01T01:30", "created <= 2026-11-01", "ended > 2026-11-01T01:00", "lr:1e-5,0.5"]
)  # fmt: skip
SEARCH = st.sampled_from(
    ["judge", "demo", "Tiny", "odd", "good", "1", "rank", "demo-1", '"tiny llama"', "jud", "ood", '"--"']
)
FILTERS = st.recursive(
    st.one_of(NUMBER, TEXT, OTHER, SEARCH),
    lambda parts: st.one_of(
        st.builds("({} {})".format, parts, parts),
        st.builds("({} or {})".format, parts, parts),
        parts.map("not {}".format),
    ),
    max_leaves=5,
)


def found_by(sessions: sessionmaker[Session], project: Project, text: str, **asked: Any) -> list[str]:
    with transaction(sessions) as session:
        runs, following = runs_page(session, project, OWNER, RunsQuery(text, **asked), cursor=None, limit=100)
        assert following is None
        return [str(run.id) for run in runs]


@pytest.fixture
def runs(sessions: sessionmaker[Session], project: Project) -> dict[str, Listed]:
    """The runs by id."""
    made: dict[str, Any] = {}
    with transaction(sessions) as session:
        return {str(list_run(session, project, one, made)): one for one in RUNS}


@settings(max_examples=100, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(text=FILTERS, few=st.sampled_from([0, few_ids.FEW]))
def test_a_filter_finds_what_its_reading_in_python_does(
    runs: dict[str, Listed], sessions: sessionmaker[Session], project: Project, text: str, few: int
) -> None:
    expression = parse(text)
    assert expression is not None
    shows_archived = "archived" in text
    wanted = {id_ for id_, run in runs.items() if holds(expression, run) and (shows_archived or not run.archived)}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(few_ids, "FEW", few)  # above it, ids are a subquery
        assert set(found_by(sessions, project, text)) == wanted


def holds(expression: Expression, run: Listed) -> bool:
    match expression:
        case Conjunction(parts):
            return all(holds(part, run) for part in parts)
        case Disjunction(parts):
            return any(holds(part, run) for part in parts)
        case Negation(of):
            return not holds(of, run)
        case Search(word):
            return all(any(one.startswith(part) for one in words(run)) for part in split(word.text))
        case Comparison(field, sign, values):
            if sign == "!=":
                return has(field.text, run) and not compared(field.text, "=", values[0].text, run)
            return any(compared(field.text, sign, value.text, run) for value in values)


def split(text: str) -> list[str]:
    return "".join(letter if letter.isalnum() else " " for letter in text).lower().split()


def words(run: Listed) -> list[str]:
    leaves = [f"{name} {value}" for name, value in flat(run.settings).items()]
    return split(" ".join([run.name, run.pipeline or "", run.kind, run.method or "", *run.tags, run.notes, *leaves]))


def flat(tree: dict[str, Any], above: str = "") -> dict[str, Any]:
    leaves: dict[str, Any] = {}
    for name, value in tree.items():
        leaves |= flat(value, f"{above}{name}.") if isinstance(value, dict) else {f"{above}{name}": value}
    return leaves


def value_of(name: str, run: Listed) -> Any:
    """Returns None where the run has none. Every test field is unambiguous."""
    whole = f"{run.pipeline}.{run.name}" if run.pipeline else run.name
    own = {"name": whole, "pipeline": run.pipeline, "method": run.method, "by": run.by, "state": run.state}
    numbers = {"device_seconds": run.device_seconds, "attempts": 1, "duration": run.seconds}
    if name in own | numbers:
        return (own | numbers)[name]
    plain = name.removeprefix("setting.").removeprefix("metric.").removeprefix("result.")
    base, _, last = plain.rpartition(".")
    if base in run.metrics:
        curve = run.metrics[base]
        best = min(curve) if "loss" in base else max(curve)
        return {"min": min(curve), "max": max(curve), "best": best}[last]
    if plain in run.metrics:
        return run.metrics[plain][-1]
    return (run.results | flat(run.settings)).get(plain)


def has(name: str, run: Listed) -> bool:
    return name in ("tag", "is", "kind") or value_of(name, run) is not None


def number_of(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def compared(name: str, sign: str, wanted: str, run: Listed) -> bool:
    if name == "tag":
        return any(wanted.lower() in tag.lower() for tag in run.tags) if sign == "~" else wanted in run.tags
    if name == "notes":
        return wanted.lower() in run.notes.lower()
    if name == "is":
        return {"archived": run.archived, "favourite": run.favourite, "single": run.pipeline is None}[wanted]
    if name == "has":
        return bool({"notes": run.notes, "tags": run.tags, "pipeline": run.pipeline}[wanted])
    if name == "kind":
        return wanted in (run.kind, run.method)
    if name in ("created", "ended"):
        return timed(name, sign, wanted, run)
    value = value_of(name, run)
    if name == "duration":
        wanted = {"1m": "60", "1.5h": "5400"}.get(wanted, wanted)
    if value is None:
        return False
    if sign in ("<", "<=", ">", ">="):
        return ordered(value, sign, number_of(wanted))
    as_text = str(value).lower() if isinstance(value, bool) else value
    number = number_of(wanted)
    contains = sign == "~" or (sign == ":" and number is None and name not in ("state",))
    if contains:
        return isinstance(as_text, str) and wanted.lower() in as_text.lower() and part_of_name(name, wanted, run)
    if isinstance(as_text, str):
        return as_text == wanted or (name == "name" and run.name == wanted)
    return number == as_text


def part_of_name(name: str, wanted: str, run: Listed) -> bool:
    """The name of its pipeline does not count where there is no dot."""
    return name != "name" or "." in wanted or wanted.lower() in run.name.lower()


def ordered(value: Any, sign: str, wanted: float | None) -> bool:
    if isinstance(value, str | bool) or wanted is None:
        return False
    return {"<": value < wanted, "<=": value <= wanted, ">": value > wanted, ">=": value >= wanted}[sign]


def timed(name: str, sign: str, wanted: str, run: Listed) -> bool:
    moment = START + dt.timedelta(hours=run.hours)
    if name == "ended":
        if run.seconds is None:
            return False
        moment = START + dt.timedelta(seconds=run.seconds)
    return ordered(moment.timestamp(), sign, dt.datetime.fromisoformat(wanted).replace(tzinfo=dt.UTC).timestamp())


@pytest.mark.parametrize(
    ("text", "position", "length", "suggestions"),
    [
        ("eval_los < 1.2", 0, 8, ["eval_loss"]),
        ("sft and eval_loss < high", 20, 4, []),
        ("state:faild", 6, 5, ["failed"]),
        ("kind:dpoo", 5, 4, ["dpo"]),
        ("is:archivd", 3, 7, ["archived"]),
        ("winner > 3", 0, 6, []),
        ("name < x", 0, 4, []),
        ("created > yesterday", 10, 9, []),
        ("duration < soon", 11, 4, []),
        ("lora.rnk = 8", 0, 8, ["lora.rank"]),
        ("metric.lr = 8", 0, 9, None),
        ("lora.rank.best = 8", 0, 14, None),
    ],
)
def test_a_mistake_is_answered_with_its_place_and_the_nearest_names(
    runs: dict[str, Listed], sessions: sessionmaker[Session], project: Project,
    text: str, position: int, length: int, suggestions: list[str] | None,
) -> None:  # fmt: skip
    with pytest.raises(BadFilter) as caught:
        found_by(sessions, project, text)
    extra = caught.value.extra
    assert (extra["position"], extra["length"]) == (position, length)
    if suggestions is not None:
        assert extra["suggestions"][: len(suggestions)] == suggestions


def test_fields_and_favourites_of_others_are_not_seen(
    runs: dict[str, Listed], sessions: sessionmaker[Session], project: Project
) -> None:
    with transaction(sessions) as session:
        other = Project(name="other", split_salt="x", held_out_fraction=0.1)
        session.add(other)
        session.flush()
        list_run(session, other, Listed("theirs", settings={"secret": 1.0}))
    with pytest.raises(BadFilter):
        found_by(sessions, project, "secret = 1")
    with transaction(sessions) as session:
        for owner, count in ((OWNER, 1), ("user:other", 0)):
            favourites, _ = runs_page(session, project, owner, RunsQuery("is:favourite"), cursor=None, limit=10)
            assert len(favourites) == count


SORTS = [
    "created",
    "name",
    "state",
    "kind",
    "device_seconds",
    "duration",
    "lr",
    "eval_loss",
    "eval_loss.min",
    "winner",
    "margin",
]


@pytest.mark.parametrize("sort", [f"{sign}{name}" for name in SORTS for sign in ("", "-")])
@pytest.mark.parametrize("text", ["", "is:archived or kind:train"])
def test_pages_in_any_order_have_each_run_once_and_those_without_a_value_last(
    runs: dict[str, Listed], sessions: sessionmaker[Session], project: Project, sort: str, text: str
) -> None:
    ids: list[str] = []
    cursor: str | None = None
    while True:
        with transaction(sessions) as session:
            page, cursor = runs_page(session, project, OWNER, RunsQuery(text, sort), cursor=cursor, limit=3)
        ids += [str(run.id) for run in page]
        if cursor is None:
            break
    shown = [one for one in runs if (not runs[one].archived) or text]
    shown = [one for one in shown if not text or runs[one].archived or runs[one].kind == "train"]
    assert sorted(ids) == sorted(shown)
    name = sort.removeprefix("-")

    def value(id_: str) -> Any:
        run = runs[id_]
        own = {"name": run.name, "kind": run.kind, "created": id_}
        return own[name] if name in own else value_of(name, run)

    numbers = [id_ for id_ in ids if isinstance(value(id_), int | float)]
    texts = [id_ for id_ in ids if isinstance(value(id_), str)]
    lacking = [id_ for id_ in ids if value(id_) is None]
    down = sort.startswith("-")
    for part in (numbers, texts):
        assert part == sorted(part, key=lambda id_: (value(id_), id_), reverse=down)
    assert lacking == sorted(lacking, reverse=True)
    assert ids == numbers + texts + lacking


def test_a_run_that_is_listed_while_pages_are_read_moves_no_other(
    runs: dict[str, Listed], sessions: sessionmaker[Session], project: Project
) -> None:
    with transaction(sessions) as session:
        first, cursor = runs_page(session, project, OWNER, RunsQuery(sort="lr"), cursor=None, limit=2)
    with transaction(sessions) as session:
        list_run(session, project, replace(RUNS[0], name="late", pipeline=None, settings={"lr": 1e-9}))
        second, _ = runs_page(session, project, OWNER, RunsQuery(sort="lr"), cursor=cursor, limit=2)
    assert not {run.id for run in first} & {run.id for run in second}
    assert [run.config["lr"] for run in (*first, *second)] == [1e-5, 1e-5, 1e-4, 0.5]
