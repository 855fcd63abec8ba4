"""The lineage of a model: a walk upstream over parents, runs and their inputs, to people's rankings and verdicts."""

from __future__ import annotations

import uuid
from collections import deque
from collections.abc import Iterator

from sqlalchemy import select
from sqlalchemy.orm import Session

from steerboard.datasets.tables import Dataset, RewardSource
from steerboard.registry.schemas import Lineage, LineageEdge, LineageNode
from steerboard.registry.tables import Model
from steerboard.runs import inputs
from steerboard.runs.tables import Pipeline, Run, RunInput

MOST_NODES = 500
# The role of a dataset in one that was made of it without a run, by the type of that one's origin. What is used of its
# rows is what the new one has.
MADE_BY = {"cleaning": "cleaned", "conversion": "converted", "edit": "edited"}

Thing = Model | Dataset | Run


def lineage(session: Session, model: Model) -> Lineage:
    """Breadth first, so nearest first; at most `MOST_NODES` nodes."""
    nodes: dict[uuid.UUID, LineageNode] = {model.id: node_of(session, model)}
    edges: dict[tuple[uuid.UUID, uuid.UUID, str], LineageEdge] = {}
    waiting: deque[Thing] = deque([model])
    truncated = False
    while waiting:
        thing = waiting.popleft()
        for source, role in upstream(session, thing):
            if source.id not in nodes:
                if len(nodes) >= MOST_NODES:
                    truncated = True
                    continue
                nodes[source.id] = node_of(session, source)
                waiting.append(source)
            edges[source.id, thing.id, role] = LineageEdge(source=source.id, target=thing.id, role=role)
        if isinstance(thing, Dataset) and len(nodes) < MOST_NODES:
            for node, edge in _opinions(thing):
                nodes.setdefault(node.id, node)
                edges[edge.source, edge.target, edge.role] = edge
    children = session.scalars(select(Model).where(Model.parent_id == model.id).order_by(Model.id).limit(MOST_NODES))
    return Lineage(
        model=model.id,
        nodes=list(nodes.values()),
        edges=list(edges.values()),
        children=[node_of(session, child) for child in children],
        truncated=truncated,
    )


def node_of(session: Session, thing: Thing) -> LineageNode:
    """A stage is named `PIPELINE.STAGE`."""
    if isinstance(thing, Model):
        detail = thing.method or thing.role
        return LineageNode(type="model", id=thing.id, name=thing.name, detail=detail, content_hash=thing.artifact_hash)
    if isinstance(thing, Dataset):
        return LineageNode(
            type="dataset", id=thing.id, name=thing.name, detail=thing.kind, content_hash=thing.content_hash
        )
    pipeline = session.get(Pipeline, thing.pipeline_id) if thing.pipeline_id else None
    name = f"{pipeline.name}.{thing.name}" if pipeline else thing.name
    return LineageNode(type="run", id=thing.id, name=name, detail=thing.method or thing.kind)


def upstream(session: Session, thing: Thing) -> list[tuple[Thing, str]]:
    """What went into one thing directly, each with the role it played."""
    sources: list[tuple[Thing | None, str]] = []
    if isinstance(thing, Run):
        return _inputs(session, thing)
    if thing.run_id:
        sources.append((session.get(Run, thing.run_id), "output"))
    if isinstance(thing, Model):
        if thing.parent_id:
            sources.append((session.get(Model, thing.parent_id), "parent"))
    else:
        if thing.base_dataset_id:
            sources.append((session.get(Dataset, thing.base_dataset_id), "rows"))
        if thing.parent_id:
            sources.append((session.get(Dataset, thing.parent_id), MADE_BY[thing.origin["type"]]))
        source = session.get(RewardSource, thing.reward_source_id) if thing.reward_source_id else None
        if source and source.model_id:
            sources.append((session.get(Model, source.model_id), "rewards"))
        elif source and source.weights and not thing.run_id:  # a run names what it added up
            added = select(RewardSource.model_id).where(RewardSource.id.in_(map(uuid.UUID, source.weights)))
            sources += ((session.get(Model, model), "rewards") for model in session.scalars(added) if model)
    return [(source, role) for source, role in sources if source is not None]


def _opinions(dataset: Dataset) -> Iterator[tuple[LineageNode, LineageEdge]]:
    """The campaigns and judges that a dataset of pairs was made from, and their evaluation, or the arena, each with the
    edge from it. As they were called then: a dataset outlives them."""
    origin = dataset.origin
    if origin.get("type") == "arena":
        arena = uuid.UUID(origin["arena"]["id"])
        yield (
            LineageNode(type="arena", id=arena, name=origin["arena"]["name"], detail="votes by people"),
            LineageEdge(source=arena, target=dataset.id, role="votes"),
        )
    if origin.get("type") != "evaluation":
        return
    evaluation = uuid.UUID(origin["evaluation"]["id"])
    node = LineageNode(type="evaluation", id=evaluation, name=origin["evaluation"]["name"], detail="answers")
    made = "corrections" if dataset.kind == "instructions" else "rankings"
    for source in origin["sources"]:
        id_, kind = uuid.UUID(source["id"]), source["kind"]
        yield node, LineageEdge(source=evaluation, target=id_, role="answers")
        detail = source.get("model") or (f"{made} by people" if kind == "campaign" else "verdicts")
        by = LineageNode(type=kind, id=id_, name=source["name"], detail=detail, evaluation=evaluation)
        role = made if kind == "campaign" else "verdicts"
        yield by, LineageEdge(source=id_, target=dataset.id, role=role)


def _inputs(session: Session, run: Run) -> list[tuple[Thing, str]]:
    things: list[tuple[Thing, str]] = []
    for given in session.scalars(select(RunInput).where(RunInput.run_id == run.id).order_by(RunInput.name)):
        thing: Thing | None = None
        if given.dataset_id:
            thing = session.get(Dataset, given.dataset_id)
        elif given.model_id:
            thing = session.get(Model, given.model_id)
        elif given.upstream_run_id:
            thing = _output(session, given.upstream_run_id, given.upstream_output)
        if thing is not None:
            things.append((thing, given.name))
    return things


def _output(session: Session, run_id: uuid.UUID, name: str | None) -> Thing | None:
    """The dataset or model that a run made; the run itself while it has made none."""
    return inputs.output_of(session, run_id, name) or session.get(Run, run_id)
