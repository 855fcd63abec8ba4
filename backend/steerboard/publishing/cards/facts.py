"""The facts on the card of a model or a dataset: read from its lineage and from the kept reports of its evaluations."""

from __future__ import annotations

import datetime as dt
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, TypeVar

from pydantic import ValidationError
from sqlalchemy import select
from sqlalchemy.orm import Session

from steerboard.datasets.tables import Dataset
from steerboard.evaluation.tables import Entrant, Evaluation, EvaluationReportRow
from steerboard.registry.tables import Model
from steerboard.runs.ledger import summed
from steerboard.runs.results.academic import academic_of
from steerboard.runs.results.lineage import lineage, upstream
from steerboard.runs.tables import Run, RunAttempt
from steerboard_contracts.conditions.condition import Condition
from steerboard_contracts.files.base_sources import GGUF, base_place, source_type
from steerboard_contracts.models import ModelInfo
from steerboard_contracts.report.academic import AcademicRow
from steerboard_contracts.report.estimate import Estimate
from steerboard_contracts.report.evaluation import EvaluationReport, MethodsRow
from steerboard_contracts.watching.ledger import Ledger

Thing = TypeVar("Thing", Model, Dataset, Run)

_EVALUATIONS = 3
_GENERATIONS = 200


class Figure(NamedTuple):
    """One figure of a model at one requested condition. `by`: who gave it."""

    condition: Condition | None
    what: Literal["reward", "win rate"]
    by: str
    estimate: Estimate


@dataclass(frozen=True)
class Evaluated:
    """What one evaluation found about a model."""

    name: str
    computed_at: dt.datetime
    prompts: int
    prompts_from: str
    baseline: str | None
    finished: bool
    figures: list[Figure]
    warnings: list[str]


class HubBase(NamedTuple):
    """A model of the hub, at the commit that was imported."""

    name: str
    revision: str | None

    def __str__(self) -> str:
        return f"{self.name}@{self.revision}" if self.revision else self.name


@dataclass(frozen=True)
class Ancestry:
    """Everything upstream, the nearest first. `trained_on`: by the id of a run, the datasets that it learned from."""

    models: list[Model] = field(default_factory=list)
    datasets: list[Dataset] = field(default_factory=list)
    runs: list[Run] = field(default_factory=list)
    trained_on: dict[uuid.UUID, list[Dataset]] = field(default_factory=dict)
    truncated: bool = False


@dataclass(frozen=True)
class ModelFacts:
    """`seen`: the lowest and highest score of the rows that were learned, and those of the middle 60%."""

    model: Model
    info: ModelInfo
    ancestry: Ancestry
    base: Model | None
    hub_base: HubBase | None
    seen: tuple[float, float, float, float] | None
    evaluations: list[Evaluated]
    academic: list[AcademicRow]
    costs: Ledger
    devices: list[str]


def model_facts(session: Session, model: Model) -> ModelFacts:
    info = ModelInfo.model_validate(model.info)
    ancestry = ancestry_of(session, model)
    base = _base_of(session, model)
    return ModelFacts(
        model=model,
        info=info,
        ancestry=ancestry,
        base=base,
        hub_base=hub_source(base) if base is not None else None,
        seen=_seen(info, ancestry.trained_on.get(model.run_id, []) if model.run_id else []),
        evaluations=_evaluations(session, model),
        academic=academic_of(session, model),
        costs=summed(session, ancestry.runs),
        devices=devices_of(session, ancestry.runs),
    )


def ancestry_of(session: Session, thing: Model | Dataset) -> Ancestry:
    """A model's as its page shows it; a dataset's by the same steps."""
    if isinstance(thing, Model):
        graph = lineage(session, thing)
        ids = {kind: [node.id for node in graph.nodes if node.type == kind] for kind in ("model", "dataset", "run")}
        made = Ancestry(
            models=_in_order(session, Model, ids["model"]),
            datasets=_in_order(session, Dataset, ids["dataset"]),
            runs=_in_order(session, Run, ids["run"]),
            truncated=graph.truncated,
        )
        known = {dataset.id: dataset for dataset in made.datasets}
        for edge in graph.edges:
            if edge.role.partition(".")[0] == "data" and edge.source in known:
                made.trained_on.setdefault(edge.target, []).append(known[edge.source])
        return made
    made = Ancestry()
    waiting: list[Model | Dataset | Run] = [thing]
    seen = {thing.id}
    for _ in range(_GENERATIONS):
        if not waiting:
            break
        next_ = waiting.pop(0)
        kept: list[Model] | list[Dataset] | list[Run] = (
            made.models if isinstance(next_, Model) else made.datasets if isinstance(next_, Dataset) else made.runs
        )
        kept.append(next_)  # type: ignore[arg-type]
        new = [source for source, _ in upstream(session, next_) if source.id not in seen]
        seen |= {source.id for source in new}
        waiting += {source.id: source for source in new}.values()
    return made


def hub_source(model: Model) -> HubBase | None:
    """The place that a model was imported from, if that is a repository's safetensors."""
    lineage = (model.info or {}).get("lineage") or {}
    source = lineage.get("source")
    if not isinstance(source, str) or source_type(source) != "hub" or str(lineage.get("file", "")).endswith(GGUF):
        return None
    return HubBase(base_place(source).place.partition("@")[0], lineage.get("revision"))


def devices_of(session: Session, runs: Iterable[Run]) -> list[str]:
    """The kinds of devices on which they ran."""
    ids = [run.reused_from_id or run.id for run in runs]
    kinds = select(RunAttempt.device).where(RunAttempt.run_id.in_(ids), RunAttempt.device.is_not(None)).distinct()
    return sorted(kind for kind in session.scalars(kinds) if kind)


def _in_order(session: Session, table: type[Thing], ids: list[uuid.UUID]) -> list[Thing]:
    rows = {row.id: row for row in session.scalars(select(table).where(table.id.in_(ids)))}
    return [rows[id_] for id_ in ids if id_ in rows]


def _base_of(session: Session, model: Model) -> Model | None:
    """The model at the end of the line of parents, which is itself for one that was not trained here."""
    seen: set[uuid.UUID] = set()
    while model.parent_id is not None and model.id not in seen:
        seen.add(model.id)
        parent = session.get(Model, model.parent_id)
        if parent is None:
            return None
        model = parent
    return model


def _seen(info: ModelInfo, trained_on: list[Dataset]) -> tuple[float, float, float, float] | None:
    if info.score_scale is None or info.condition is None:
        return None
    rewards = next((dataset.origin["rewards"] for dataset in trained_on if dataset.origin.get("rewards")), None)
    if rewards is None:
        return None
    score = info.condition.attributes[0]
    scores = [info.score_scale.score(float(rewards[name])) for name in ("low", "high", "p20", "p80")]
    low, high, p20, p80 = (min(score.high, max(score.low, value)) for value in scores)
    return low, high, p20, p80


def _evaluations(session: Session, model: Model) -> list[Evaluated]:
    """The newest whose report was computed."""
    entrants = select(Entrant.evaluation_id).where(Entrant.model_id == model.id)
    rows = session.execute(
        select(Evaluation.id, Evaluation.name, EvaluationReportRow.document)
        .join(EvaluationReportRow, EvaluationReportRow.evaluation_id == Evaluation.id)
        .where(Evaluation.id.in_(entrants))
        .order_by(Evaluation.id.desc())
        .limit(_EVALUATIONS)
    ).all()
    evaluations = []
    for row in rows:
        names = select(Entrant.name).where(Entrant.evaluation_id == row.id, Entrant.model_id == model.id)
        try:
            report = EvaluationReport.model_validate(row.document)
        except ValidationError:  # of an older Steerboard
            continue
        evaluations.append(_evaluated(report, set(session.scalars(names))))
    return [evaluated for evaluated in evaluations if evaluated.figures]


def _evaluated(report: EvaluationReport, names: set[str]) -> Evaluated:
    return Evaluated(
        name=report.evaluation,
        computed_at=report.computed_at,
        prompts=report.prompts,
        prompts_from=report.prompts_from,
        baseline=report.baseline,
        finished=report.finished,
        figures=[figure for row in report.methods if row.entrant in names for figure in _figures(row)],
        warnings=report.warnings,
    )


def _figures(row: MethodsRow) -> Iterable[Figure]:
    for by, estimate in row.reward.items():
        yield Figure(row.score, "reward", by, estimate)
    for kind, rates in (
        ("people of", row.human_win_rate),
        ("judge", row.judge_win_rate),
        ("jury", row.jury_win_rate),
        ("reward model", row.reward_win_rate),
    ):
        for by, estimate in rates.items():
            if estimate.value is not None:
                yield Figure(row.score, "win rate", f"{kind} {by}", estimate)
