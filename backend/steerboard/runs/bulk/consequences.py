"""What would happen if several runs were cancelled or deleted together: nothing is lost that was not shown before."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Iterable, Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session, aliased

from steerboard.datasets.tables import Dataset
from steerboard.registry.tables import Model
from steerboard.runs import hooks
from steerboard.runs.bulk.schemas import Consequence, NamedThing
from steerboard.runs.inputs import AFTER_ANY_END
from steerboard.runs.state.states import ENDED
from steerboard.runs.tables import Pipeline, Run, RunInput, RunOutput

_NAMED = 3


def of_cancelling(session: Session, runs: Sequence[Run]) -> list[Consequence]:
    """Each with the waiting runs that would be cancelled without its output."""
    names = names_of(session, runs)
    consequences = []
    for run in runs:
        consequence = Consequence(run=names[run.id])
        if run.state in ENDED:
            consequence.why = f"it has ended: {run.state}"
        else:
            consequence.ends = list(names_of(session, _downstream(session, run)).values())
        consequences.append(consequence)
    return consequences


def _downstream(session: Session, run: Run) -> list[Run]:
    downstream: dict[uuid.UUID, Run] = {}
    waiting = [run.id]
    while waiting:
        behind = session.scalars(
            select(Run)
            .join(RunInput, RunInput.run_id == Run.id)
            .where(
                RunInput.upstream_run_id.in_(waiting),
                ~RunInput.name.startswith(AFTER_ANY_END),
                Run.state.not_in(ENDED),
                Run.parent_id.is_(None),
            )
            .order_by(Run.id)
        ).all()
        waiting = [run_.id for run_ in behind if run_.id not in downstream]
        downstream |= {run_.id: run_ for run_ in behind}
    return list(downstream.values())


def of_deleting(session: Session, runs: Sequence[Run]) -> list[Consequence]:
    """Runs that others need, or that an evaluation holds, are refused; so are stages whose pipeline would lose only
    some."""
    chosen = {run.id for run in runs}
    parts = parts_of(session, chosen)
    names = names_of(session, runs)
    users = _users_of(session, chosen, parts)
    evaluations = defaultdict(set)
    for run_id, name in hooks.evaluations_with(session, [*chosen, *parts]):
        evaluations[parts.get(run_id, run_id)].add(name)
    outputs = _outputs(session, chosen)
    siblings = _siblings(session, runs)
    consequences = []
    for run in runs:
        consequence = Consequence(run=names[run.id])
        used = [user for user in users[run.id] if user.id not in chosen]
        left = [stage for stage in siblings.get(run.pipeline_id, ()) if stage.id not in chosen]
        if run.parent_id is not None:
            consequence.why = "it is a part of another run, and is deleted with that"
        elif run.state not in ENDED:
            consequence.why = f"it is {run.state}; cancel it first"
        elif evaluations[run.id]:
            consequence.why = f"it belongs to {_listed('evaluation', evaluations[run.id])}; delete that first"
        elif used or left:
            consequence.needs = list(names_of(session, [*used, *left]).values())
            consequence.why = _why_with_others(consequence.needs, bool(used))
        reports = (thing for thing in outputs[run.id] if thing.type == "report")
        consequence.loses = [thing.model_copy(update={"name": names[run.id].name}) for thing in reports]
        consequence.keeps = [thing for thing in outputs[run.id] if thing.type != "report"]
        consequences.append(consequence)
    _refuse_with_refused(consequences, runs, users)
    pipelines = {run.pipeline_id for run in runs if run.pipeline_id is not None}
    of_pipeline = {row.id: row for row in session.scalars(select(Pipeline).where(Pipeline.id.in_(pipelines)))}
    for run, consequence in zip(runs, consequences, strict=True):
        pipeline = of_pipeline.get(run.pipeline_id) if run.pipeline_id else None
        if pipeline is not None and consequence.why is None:
            consequence.loses.append(NamedThing(type="pipeline", id=pipeline.id, name=pipeline.name))
    return consequences


def _refuse_with_refused(rows: Sequence[Consequence], runs: Sequence[Run], users: dict[uuid.UUID, list[Run]]) -> None:
    """A stage goes with all stages of its pipeline or not at all, and no run before one that needs it."""
    pipeline_of = {run.id: run.pipeline_id for run in runs}
    waiting = [row for row in rows if row.why is None]
    while True:
        refused = {row.run.id: row.run.name for row in rows if row.why is not None}
        broken = {pipeline_of[id_]: name for id_, name in refused.items() if pipeline_of[id_] is not None}
        for row in waiting:
            user = next((refused[user.id] for user in users[row.run.id] if user.id in refused), None)
            sibling = broken.get(pipeline_of[row.run.id])
            if user is not None:
                row.why = f"{user} used what it made, and cannot be deleted"
            elif sibling is not None:
                row.why = f"its pipeline keeps {sibling}, which cannot be deleted"
        still = [row for row in waiting if row.why is None]
        if len(still) == len(waiting):
            return
        waiting = still


def parts_of(session: Session, ids: Iterable[uuid.UUID]) -> dict[uuid.UUID, uuid.UUID]:
    """Shards and parts of runs, down to the last, each with the run that was asked for."""
    top = {id_: id_ for id_ in ids}
    parts: dict[uuid.UUID, uuid.UUID] = {}
    while top:
        rows = session.execute(select(Run.id, Run.parent_id).where(Run.parent_id.in_(list(top)))).all()
        top = {row.id: top[row.parent_id] for row in rows if row.id not in parts}
        parts |= top
    return parts


def _users_of(
    session: Session, chosen: set[uuid.UUID], parts: dict[uuid.UUID, uuid.UUID]
) -> dict[uuid.UUID, list[Run]]:
    """Runs that read, or reused, what a chosen one made. A shard stands for its run."""
    makers = [*chosen, *parts]
    user, whole = aliased(Run), aliased(Run)
    with_whole = select(RunInput.upstream_run_id, user, whole).join(user, user.id == RunInput.run_id)
    read = with_whole.outerjoin(whole, whole.id == user.parent_id).where(RunInput.upstream_run_id.in_(makers))
    reused = select(user.reused_from_id, user, whole).outerjoin(whole, whole.id == user.parent_id)
    by_maker: dict[uuid.UUID, dict[uuid.UUID, Run]] = defaultdict(dict)
    rows = [*session.execute(read), *session.execute(reused.where(user.reused_from_id.in_(makers)))]
    for run_id, run, parent in rows:
        if run_id is not None:
            maker, shown = parts.get(run_id, run_id), parent or run
            if shown.id != maker and parts.get(shown.id) != maker:
                by_maker[maker][shown.id] = shown
    return defaultdict(list, {run_id: list(runs.values()) for run_id, runs in by_maker.items()})


def _siblings(session: Session, runs: Sequence[Run]) -> dict[uuid.UUID | None, list[Run]]:
    pipelines = {run.pipeline_id for run in runs if run.pipeline_id is not None}
    stages = session.scalars(
        select(Run).where(Run.pipeline_id.in_(pipelines), Run.parent_id.is_(None)).order_by(Run.id)
    )
    siblings: dict[uuid.UUID | None, list[Run]] = defaultdict(list)
    for stage in stages:
        siblings[stage.pipeline_id].append(stage)
    return siblings


def _outputs(session: Session, ids: set[uuid.UUID]) -> dict[uuid.UUID, list[NamedThing]]:
    rows = session.execute(
        select(RunOutput, Dataset.name, Model.name)
        .where(RunOutput.run_id.in_(ids))
        .outerjoin(Dataset, Dataset.id == RunOutput.dataset_id)
        .outerjoin(Model, Model.id == RunOutput.model_id)
        .order_by(RunOutput.name)
    )
    outputs: dict[uuid.UUID, list[NamedThing]] = defaultdict(list)
    for output, dataset, model in rows:
        if model is not None:
            thing = NamedThing(type="model", id=output.model_id, name=model)
        elif dataset is not None:
            thing = NamedThing(type="dataset", id=output.dataset_id, name=dataset)
        elif output.document is not None:
            thing = NamedThing(type="report", id=output.run_id, name=output.name)
        else:
            continue
        outputs[output.run_id].append(thing)
    return outputs


def names_of(session: Session, runs: Sequence[Run]) -> dict[uuid.UUID, NamedThing]:
    ids = {run.pipeline_id for run in runs if run.pipeline_id is not None}
    rows = session.execute(select(Pipeline.id, Pipeline.name).where(Pipeline.id.in_(ids)))
    named = {row.id: row.name for row in rows}
    return {
        run.id: NamedThing(
            type="run", id=run.id, name=f"{named[run.pipeline_id]}.{run.name}" if run.pipeline_id else run.name
        )
        for run in runs
    }


def _why_with_others(others: Sequence[NamedThing], used: bool) -> str:
    names = _listed("", [other.name for other in others])
    return f"{names} used what it made" if used else f"it is a stage of a pipeline with {names}"


def _listed(what: str, names: Iterable[str]) -> str:
    shown = sorted(names)
    more = f" and {len(shown) - _NAMED} more" if len(shown) > _NAMED else ""
    return f"{what} {', '.join(shown[:_NAMED])}{more}".strip()
