"""Which reward models a model was trained on, however far back: a few queries a generation, not one a thing."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterable

from sqlalchemy import select
from sqlalchemy.orm import Session

from steerboard.datasets.tables import Dataset, RewardSource
from steerboard.registry.tables import Model
from steerboard.runs.tables import RunInput, RunOutput

REWARD_ROLES = ("reward", "preference")
# Deeper than any pipeline; a guard against a loop in the data.
_MOST_GENERATIONS = 100

Edges = dict[uuid.UUID, set[uuid.UUID]]


def reward_models_upstream(session: Session, models: Iterable[Model]) -> dict[uuid.UUID, frozenset[str]]:
    """By model id: the content hashes of all reward models upstream, as the recorded lineage and the models' own
    `steerboard.json` name them."""
    start = {model.id: model for model in models}
    known: dict[uuid.UUID, Model] = dict(start)
    above: Edges = defaultdict(set)
    new = set(start)
    seen = set(new)
    for _ in range(_MOST_GENERATIONS):
        if not new:
            break
        parents = _parents(session, new, known)
        for thing, sources in parents.items():
            above[thing] |= sources
        new = set().union(*parents.values()) - seen if parents else set()
        seen |= new
    return {id_: frozenset(_rewards(id_, above, known)) for id_ in start}


def _parents(session: Session, things: set[uuid.UUID], known: dict[uuid.UUID, Model]) -> Edges:
    """What went directly into models, datasets and runs, whichever of them the ids are of. Fills `known`."""
    found: Edges = defaultdict(set)
    for model in session.scalars(select(Model).where(Model.id.in_(things))):
        known[model.id] = model
        found[model.id] |= {source for source in (model.parent_id, model.run_id) if source}
    datasets = (
        select(Dataset.id, Dataset.run_id, Dataset.base_dataset_id, Dataset.parent_id, RewardSource.model_id)
        .outerjoin(RewardSource, RewardSource.id == Dataset.reward_source_id)
        .where(Dataset.id.in_(things))
    )
    for id_, *sources in session.execute(datasets):
        found[id_] |= {source for source in sources if source}
    inputs = (
        select(RunInput.run_id, RunInput.dataset_id, RunInput.model_id, RunOutput.dataset_id, RunOutput.model_id)
        .outerjoin(
            RunOutput,
            (RunOutput.run_id == RunInput.upstream_run_id)
            & (RunInput.upstream_output.is_(None) | (RunOutput.name == RunInput.upstream_output)),
        )
        .where(RunInput.run_id.in_(things))
    )
    for id_, *sources in session.execute(inputs):
        found[id_] |= {source for source in sources if source}
    return found


def _rewards(model: uuid.UUID, above: Edges, known: dict[uuid.UUID, Model]) -> set[str]:
    hashes: set[str] = set()
    waiting, seen = [model], {model}
    while waiting:
        thing = waiting.pop()
        if (found := known.get(thing)) is not None:
            hashes |= _named(found)
        waiting += above.get(thing, set()) - seen
        seen |= above.get(thing, set())
    return hashes


def _named(model: Model) -> set[str]:
    """Reward models that one model is, or claims to have been trained on. `info` came from a file, so look twice."""
    if model.role in REWARD_ROLES:
        return {model.artifact_hash}
    normaliser, lineage = model.info.get("normaliser") or {}, model.info.get("lineage") or {}
    parts = [part for part in normaliser.get("parts") or [] if isinstance(part, dict)]
    named = (*(one.get("reward_model_hash") for one in (normaliser, *parts)), lineage.get("reward_model"))
    return {hash_ for hash_ in named if isinstance(hash_, str)}
