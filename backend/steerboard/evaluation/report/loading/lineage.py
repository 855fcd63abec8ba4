"""What a model was made from, however far back: a few queries a generation, not one a thing."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass

from sqlalchemy import select
from sqlalchemy.orm import Session

from steerboard.datasets.tables import Dataset, RewardSource
from steerboard.registry.tables import Model
from steerboard.runs.tables import Run, RunInput, RunOutput
from steerboard_contracts.online.rewarded import teaching_judges, watching_inputs

REWARD_ROLES = ("reward", "preference")
# Deeper than any pipeline; a guard against a loop in the data.
_MOST_GENERATIONS = 100

Edges = dict[uuid.UUID, set[uuid.UUID]]


@dataclass(frozen=True)
class Lineage:
    """`edges`: what went directly into each thing. `models` among all of them, by id; `judges` that rewarded the
    answers of a run, by its id."""

    edges: Edges
    models: dict[uuid.UUID, Model]
    judges: dict[uuid.UUID, set[str]]

    def above(self, start: Iterable[uuid.UUID]) -> set[uuid.UUID]:
        """Ids of these things and of everything that went into them."""
        waiting = list(start)
        seen = set(waiting)
        while waiting:
            new = self.edges.get(waiting.pop(), set()) - seen
            waiting += new
            seen |= new
        return seen


def upstream(session: Session, start: Iterable[uuid.UUID]) -> Lineage:
    """The lineage upstream of models, datasets and runs."""
    models: dict[uuid.UUID, Model] = {}
    judges: dict[uuid.UUID, set[str]] = {}
    above: Edges = defaultdict(set)
    new = set(start)
    seen = set(new)
    for _ in range(_MOST_GENERATIONS):
        if not new:
            break
        parents = _parents(session, new, models, judges)
        for thing, sources in parents.items():
            above[thing] |= sources
        new = set().union(*parents.values()) - seen if parents else set()
        seen |= new
    return Lineage(above, models, judges)


def teachers_upstream(session: Session, models: Iterable[Model]) -> dict[uuid.UUID, frozenset[str]]:
    """All reward models and judges upstream, by model id: content hashes, as the recorded lineage and the models' own
    `steerboard.json` name them, and what `judge_identity` gives."""
    start = {model.id for model in models}
    lineage = upstream(session, start)
    known, judges = lineage.models, lineage.judges
    taught: dict[uuid.UUID, frozenset[str]] = {}
    for id_ in start:
        above = lineage.above([id_])
        hashes = {hash_ for model in above & known.keys() for hash_ in _named(known[model])}
        taught[id_] = frozenset(hashes.union(*(judges[run] for run in above & judges.keys())))
    return taught


def _parents(
    session: Session, things: set[uuid.UUID], known: dict[uuid.UUID, Model], judges: dict[uuid.UUID, set[str]]
) -> Edges:
    """What went directly into models, datasets and runs, whichever of them the ids are of. Fills `known` and
    `judges`."""
    parents: Edges = defaultdict(set)
    for model in session.scalars(select(Model).where(Model.id.in_(things))):
        known[model.id] = model
        parents[model.id] |= {source for source in (model.parent_id, model.run_id) if source}
    datasets = (
        select(Dataset.id, Dataset.run_id, Dataset.base_dataset_id, Dataset.parent_id, RewardSource.model_id)
        .outerjoin(RewardSource, RewardSource.id == Dataset.reward_source_id)
        .where(Dataset.id.in_(things))
    )
    for id_, *sources in session.execute(datasets):
        parents[id_] |= {source for source in sources if source}
    inputs = (
        select(
            RunInput.run_id,
            RunInput.name,
            Run.config,
            RunInput.dataset_id,
            RunInput.model_id,
            RunOutput.dataset_id,
            RunOutput.model_id,
        )
        .join(Run, Run.id == RunInput.run_id)
        .outerjoin(
            RunOutput,
            (RunOutput.run_id == RunInput.upstream_run_id)
            & (RunInput.upstream_output.is_(None) | (RunOutput.name == RunInput.upstream_output)),
        )
        .where(RunInput.run_id.in_(things))
    )
    for id_, name, config, *sources in session.execute(inputs):
        judges[id_] = teaching_judges(config)
        if name not in watching_inputs(config):
            parents[id_] |= {source for source in sources if source}
    return parents


def _named(model: Model) -> set[str]:
    """Reward models that one model is, or claims to have been trained on. `info` came from a file, so look twice."""
    if model.role in REWARD_ROLES:
        return {model.artifact_hash}
    normaliser, lineage = model.info.get("normaliser") or {}, model.info.get("lineage") or {}
    parts = [part for part in normaliser.get("parts") or [] if isinstance(part, dict)]
    named = (
        *(lineage_part.get("reward_model_hash") for lineage_part in (normaliser, *parts)),
        lineage.get("reward_model"),
    )
    return {hash_ for hash_ in named if isinstance(hash_, str)}
