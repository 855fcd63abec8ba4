"""Methods for a dataset, and conversions, over HTTP, below `/api/v1/projects/{project}/datasets`."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends

from steerboard.accounts.access import Access, AccessTo, Db, audit
from steerboard.accounts.http.routes import Router
from steerboard.datasets.conversions import service
from steerboard.datasets.conversions.picker import methods_for
from steerboard.datasets.conversions.schemas import ConversionCreate, DatasetMethods
from steerboard.datasets.lookup import get_dataset
from steerboard.datasets.queries import dataset_out
from steerboard.datasets.schemas import DatasetOut
from steerboard.platform.http.errors import problems

router = Router()

Read = Annotated[Access, Depends(AccessTo("read"))]
Write = Annotated[Access, Depends(AccessTo("write"))]


@router.get("/{dataset}/methods", responses=problems(404))
def list_dataset_methods(session: Db, access: Read, dataset: str) -> DatasetMethods:
    """Which training methods fit the rows, as they are or after a conversion, with the rows each would learn from,
    and the rows that a conversion loses and gains. Nothing is changed."""
    stored = get_dataset(session, access.project, dataset)
    return methods_for(session, access.project, stored)


@router.post("/{dataset}/conversions", status_code=201, responses=problems(404, 409))
def convert_dataset(session: Db, access: Write, dataset: str, body: ConversionCreate) -> DatasetOut:
    """Create a dataset of another kind from this one's rows; `GET .../methods` counts what it would have. Each row
    names its source row."""
    stored = get_dataset(session, access.project, dataset)
    made = service.convert(session, access.project, stored, body, access.actor)
    audit(session, access, "dataset.convert", stored.name, {"dataset": made.name, "conversion": body.conversion})
    return dataset_out(session, made)
