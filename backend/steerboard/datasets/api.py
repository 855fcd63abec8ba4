"""Datasets over HTTP, below `/api/v1/projects/{project}`."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Annotated, Any, BinaryIO, cast

from fastapi import APIRouter, Depends, Query, Request
from fastapi.responses import FileResponse
from sqlalchemy import select
from starlette.background import BackgroundTask

from steerboard.datasets import collections_api, imports_api, samples_api, service
from steerboard.datasets.files.hub import hub_sources
from steerboard.datasets.histograms import histogram, source_of
from steerboard.datasets.queries import dataset_out, datasets_out, reward_sources
from steerboard.datasets.rewards import owner_of
from steerboard.datasets.schemas import (
    DatasetOut,
    ExportFormat,
    ImportReport,
    LabelledIn,
    RewardHistogram,
    RewardOut,
    RewardSourceOut,
    WeightedSourceIn,
)
from steerboard.datasets.tables import Dataset, Reward
from steerboard.datasets.uploads import Form, ImportForm, RewardsForm, Write, checked, form_body, uploaded
from steerboard.platform.access import Access, AccessTo, Db, audit
from steerboard.platform.errors import InvalidRequest, problems
from steerboard.platform.paging import Page, paginate
from steerboard_contracts.samples import SampleKind

router = APIRouter(prefix="/datasets", tags=["datasets"])
router.include_router(samples_api.router)
project_router = APIRouter()
project_router.include_router(collections_api.router)
project_router.include_router(imports_api.router)

Read = Annotated[Access, Depends(AccessTo("read"))]
Limit = Annotated[int, Query(ge=1, le=1000)]

_MEDIA = {"jsonl": "application/x-ndjson", "jsonl.gz": "application/gzip", "parquet": "application/vnd.apache.parquet"}


@router.post(
    "/import",
    status_code=201,
    responses=problems(409, 413),
    openapi_extra=form_body(ImportForm, file_needed=False),
)
def import_dataset(request: Request, session: Db, access: Write, form: Form) -> ImportReport:
    """Import one file (jsonl, jsonl.gz, csv, parquet) or a hub dataset. All of it or nothing is stored."""
    given = checked(ImportForm, form)
    source = uploaded(form)
    if (source is None) == (given.hub is None):
        raise InvalidRequest("give either a file or a hub name", hint="Send `file`, or `hub` = org/name.")
    sources = [source] if source else []
    origin: dict[str, Any] = {}
    if given.hub:
        sources = hub_sources(given.hub, request.app.state.settings.max_upload_mb << 20)
        origin = {"type": "hub", "hub": given.hub, "files": [part.label for part in sources]}
    report = service.import_sources(
        session,
        access.project,
        sources=sources,
        name=given.name,
        options=given.options,
        actor=access.actor,
        origin=origin,
    )
    audit(session, access, "dataset.import", given.name, {"rows": report.rows, "kind": report.dataset.kind})
    return report


@router.get("")
def list_datasets(
    session: Db,
    access: Read,
    kind: SampleKind | None = None,
    name: Annotated[str | None, Query(description="A part of the name.")] = None,
    cursor: str | None = None,
    limit: Limit = 50,
) -> Page[DatasetOut]:
    """Newest first."""
    query = select(Dataset).where(Dataset.project_id == access.project.id)
    if kind:
        query = query.where(Dataset.kind == kind)
    if name:
        query = query.where(Dataset.name.icontains(name, autoescape=True))
    return paginate(
        session,
        query,
        Dataset.id,
        lambda dataset: dataset_out(session, dataset),
        cursor=cursor,
        limit=limit,
        convert_all=lambda page: datasets_out(session, list(page)),
    )


@router.get("/{dataset}", responses=problems(404))
def get_dataset(session: Db, access: Read, dataset: str) -> DatasetOut:
    """By id, name or `<pipeline>.<stage>`."""
    return dataset_out(session, service.get_dataset(session, access.project, dataset))


@router.delete("/{dataset}", status_code=204, responses=problems(404, 409))
def delete_dataset(session: Db, access: Write, dataset: str) -> None:
    """Only when no run and no other dataset refers to it."""
    found = service.get_dataset(session, access.project, dataset)
    service.delete_dataset(session, found)
    audit(session, access, "dataset.delete", found.name, {"rows": found.rows})


@router.get("/{dataset}/rewards", responses=problems(404))
def list_reward_sources(session: Db, access: Read, dataset: str) -> list[RewardSourceOut]:
    """Every reward source that graded this dataset's rows, with its figures."""
    return reward_sources(session, service.get_dataset(session, access.project, dataset))


@router.get("/{dataset}/rewards/{source}", responses=problems(404))
def list_rewards(
    session: Db, access: Read, dataset: str, source: str, cursor: str | None = None, limit: Limit = 100
) -> Page[RewardOut]:
    """The raw rewards of one source, in the order of their rows. `pinned`: those that a labelled dataset pins."""
    found = service.get_dataset(session, access.project, dataset)
    by = source_of(session, access.project, found, source)
    query = select(Reward).where(Reward.dataset_id == owner_of(found), Reward.reward_source_id == by.id)
    return paginate(
        session,
        query,
        Reward.row,
        lambda reward: RewardOut(row=reward.row, value=reward.value),
        cursor=cursor,
        limit=limit,
        newest_first=False,
    )


@router.get("/{dataset}/rewards/{source}/histogram", responses=problems(404))
def get_reward_histogram(
    session: Db, access: Read, dataset: str, source: str, bins: Annotated[int, Query(ge=1, le=500)] = 40
) -> RewardHistogram:
    """How the raw rewards of one source are spread over all rows. `pinned`: those that a labelled dataset pins."""
    found = service.get_dataset(session, access.project, dataset)
    return histogram(session, found, source_of(session, access.project, found, source), bins)


@router.post(
    "/{dataset}/rewards",
    status_code=201,
    responses=problems(404, 409, 413),
    openapi_extra=form_body(RewardsForm, file_needed=True),
)
def import_rewards(session: Db, access: Write, form: Form, dataset: str) -> RewardSourceOut:
    """Import grades for every row: a file with the columns `row` (from 0) and `value` or `reward`."""
    given = checked(RewardsForm, form)
    file = uploaded(form)
    if file is None:
        raise InvalidRequest("the form has no file", hint="Send the rewards as `file`.")
    found = service.get_dataset(session, access.project, dataset)
    source = service.import_rewards(session, access.project, found, file, given.source)
    audit(session, access, "rewards.import", found.name, {"source": source.name})
    return next(out for out in reward_sources(session, found) if out.id == source.id)


@router.post("/{dataset}/rewards/weighted", status_code=201, responses=problems(404, 409))
def add_weighted_source(session: Db, access: Write, dataset: str, body: WeightedSourceIn) -> RewardSourceOut:
    """A new source: the weighted sum of others that graded every row."""
    found = service.get_dataset(session, access.project, dataset)
    source = service.add_weighted(session, access.project, found, body.name, body.weights)
    audit(session, access, "rewards.weighted", found.name, body.model_dump())
    return next(out for out in reward_sources(session, found) if out.id == source.id)


@router.post("/{dataset}/labelled", status_code=201, responses=problems(404, 409))
def pin_labelled(session: Db, access: Write, dataset: str, body: LabelledIn) -> DatasetOut:
    """Pin one source's rewards as a labelled dataset, normalised over all its rows."""
    found = service.get_dataset(session, access.project, dataset)
    source = service.get_source(session, access.project, body.source)
    labelled = service.pin_labelled(session, access.project, name=body.name, dataset=found, source=source, run_id=None)
    audit(session, access, "dataset.label", labelled.name, {"of": found.name, "source": source.name})
    return dataset_out(session, labelled)


@router.get("/{dataset}/export", response_class=FileResponse, responses=problems(404))
def export_dataset(session: Db, access: Read, dataset: str, format: ExportFormat = "jsonl") -> FileResponse:
    """The whole dataset as one file that import reads back to the same content hash."""
    found = service.get_dataset(session, access.project, dataset)
    # Written whole before the answer starts: a failure is still an error document, and no database
    # connection waits for a slow reader.
    with tempfile.NamedTemporaryFile(prefix="steerboard-export-", delete=False) as file:
        path = Path(file.name)
        try:
            service.write_export(session, found, format, cast(BinaryIO, file))
        except BaseException:
            path.unlink()
            raise
    return FileResponse(
        path, media_type=_MEDIA[format], filename=f"{found.name}.{format}", background=BackgroundTask(path.unlink)
    )
