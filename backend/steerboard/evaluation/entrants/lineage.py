"""Which data a model has learned from, directly or through what it was made of."""

from __future__ import annotations

from sqlalchemy import select
from sqlalchemy.orm import Session

from steerboard.datasets.tables import Dataset
from steerboard.registry.tables import Model
from steerboard.runs.results.lineage import MADE_BY, lineage


def training_data(session: Session, model: Model) -> list[Dataset]:
    """All datasets upstream of a model, the nearest first; those of its reward models among them. Not those of which
    only a cleaned, converted or edited version was used: what it lacks was never learned."""
    found_upstream = lineage(session, model)
    used = {edge.source for edge in found_upstream.edges if edge.role not in MADE_BY.values()}
    ids = [node.id for node in found_upstream.nodes if node.type == "dataset" and node.id in used]
    datasets = {dataset.id: dataset for dataset in session.scalars(select(Dataset).where(Dataset.id.in_(ids)))}
    return [datasets[id_] for id_ in ids if id_ in datasets]
