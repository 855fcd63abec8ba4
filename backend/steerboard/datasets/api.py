"""Datasets over HTTP, below `/api/v1/projects/{project}`."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Query, Request
from sqlalchemy import select

from steerboard.accounts.access import Access, AccessTo, Db, audit
from steerboard.accounts.http.routes import Router
from steerboard.datasets import service
from steerboard.datasets.cleaning import api as cleaning_api
from steerboard.datasets.collections import api as collections_api
from steerboard.datasets.conversions import api as conversions_api
from steerboard.datasets.differences import api as differences_api
from steerboard.datasets.edits import api as edits_api
from steerboard.datasets.imports import api as imports_api
from steerboard.datasets.imports.execution.requests import import_in_process
from steerboard.datasets.imports.uploads import (
    Form,
    ImportForm,
    RewardsForm,
    Write,
    checked,
    form_body,
    uploaded,
)
from steerboard.datasets.lookup import owner_of
from steerboard.datasets.queries import dataset_out, datasets_out, reward_sources
from steerboard.datasets.review import api as review_api
from steerboard.datasets.rewards.histograms import histogram, source_of
from steerboard.datasets.samples import api as samples_api
from steerboard.datasets.samples import views as sample_views
from steerboard.datasets.schemas import (
    DatasetOut,
    ExportFormat,
    ExportSplit,
    ImportReport,
    LabelledIn,
    RewardHistogram,
    RewardOut,
    RewardSourceOut,
    WeightedSourceIn,
)
from steerboard.datasets.tables import Dataset, Reward
from steerboard.marks.listing import MarksFilter
from steerboard.platform.concurrency import in_pool
from steerboard.platform.http import downloads
from steerboard.platform.http.downloads import Download
from steerboard.platform.http.errors import InvalidRequest, problems
from steerboard.platform.http.paging import Page, named, paginate
from steerboard_contracts.samples import SampleKind

router = Router(prefix="/datasets", tags=["datasets"])
router.include_router(samples_api.router)
router.include_router(cleaning_api.router)
router.include_router(conversions_api.router)
router.include_router(differences_api.router)
router.include_router(edits_api.router)
router.include_router(review_api.router)
project_router = Router()
project_router.include_router(collections_api.router)
project_router.include_router(imports_api.router)
project_router.include_router(sample_views.router)

Read = Annotated[Access, Depends(AccessTo("read"))]
Limit = Annotated[int, Query(ge=1, le=1000)]

_MEDIA = {"jsonl": "application/x-ndjson", "jsonl.gz": "application/gzip", "parquet": "application/vnd.apache.parquet"}


@router.post(
    "/import",
    status_code=201,
    responses=problems(409, 413),
    openapi_extra=form_body(ImportForm, file_needed=False),
)
@in_pool("processes")
def import_dataset(request: Request, access: Write, form: Form) -> ImportReport:
    """Import one file of a format that `imports/formats` lists, or a hub dataset. All of it or nothing is stored."""
    given, source = checked(ImportForm, form), uploaded(form)
    if (source is None) == (given.hub is None):
        raise InvalidRequest("give either a file or a hub name", hint="Send `file`, or `hub` = org/name.")
    return ImportReport.model_validate(import_in_process(request, access, "dataset", given, source))


@router.get("")
def list_datasets(
    session: Db,
    access: Read,
    marks: Annotated[MarksFilter, Depends()],
    kind: Annotated[list[SampleKind], Query()] = [],  # noqa: B006
    name: Annotated[str | None, Query(description="A part of the name.")] = None,
    cursor: str | None = None,
    limit: Limit = 50,
) -> Page[DatasetOut]:
    """Newest first."""
    query = select(Dataset).where(Dataset.project_id == access.project.id)
    if kind:
        query = query.where(Dataset.kind.in_(kind))
    query = marks.of(named(query, Dataset, name), access, Dataset, "dataset")
    return paginate(
        session,
        query,
        Dataset.id,
        lambda dataset: dataset_out(session, dataset),
        cursor=cursor,
        limit=limit,
        convert_all=lambda page: datasets_out(session, list(page)),
        searched=bool(marks.search or name),
    )


@router.get("/{dataset}", responses=problems(404))
def get_dataset(session: Db, access: Read, dataset: str) -> DatasetOut:
    """A dataset by id, name or `<pipeline>.<stage>`."""
    return dataset_out(session, service.get_dataset(session, access.project, dataset))


@router.delete("/{dataset}", status_code=204, responses=problems(404, 409))
def delete_dataset(session: Db, access: Write, dataset: str) -> None:
    """Delete a dataset that no run and no other dataset refers to."""
    stored = service.get_dataset(session, access.project, dataset)
    service.delete_dataset(session, stored)
    audit(session, access, "dataset.delete", stored.name, {"rows": stored.rows})


@router.get("/{dataset}/rewards", responses=problems(404))
def list_reward_sources(session: Db, access: Read, dataset: str) -> list[RewardSourceOut]:
    """Every reward source that graded this dataset's rows, with its figures."""
    return reward_sources(session, service.get_dataset(session, access.project, dataset))


@router.get("/{dataset}/rewards/{source}", responses=problems(404))
def list_rewards(
    session: Db, access: Read, dataset: str, source: str, cursor: str | None = None, limit: Limit = 100
) -> Page[RewardOut]:
    """The raw rewards of one source, in the order of their rows. `pinned`: those that a labelled dataset pins."""
    stored = service.get_dataset(session, access.project, dataset)
    by = source_of(session, access.project, stored, source)
    query = select(Reward).where(Reward.dataset_id == owner_of(stored), Reward.reward_source_id == by.id)
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
    stored = service.get_dataset(session, access.project, dataset)
    return histogram(session, stored, source_of(session, access.project, stored, source), bins)


@router.post(
    "/{dataset}/rewards",
    status_code=201,
    responses=problems(404, 409, 413),
    openapi_extra=form_body(RewardsForm, file_needed=True),
)
@in_pool("processes")
def import_rewards(request: Request, access: Write, form: Form, dataset: str) -> RewardSourceOut:
    """Import grades for every row: a file with the columns `row` (from 0) and `value` or `reward`."""
    given = checked(RewardsForm, form)
    file = uploaded(form)
    if file is None:
        raise InvalidRequest("the form has no file", hint="Send the rewards as `file`.")
    return RewardSourceOut.model_validate(import_in_process(request, access, "rewards", given, file, into=dataset))


@router.post("/{dataset}/rewards/weighted", status_code=201, responses=problems(404, 409))
def add_weighted_source(session: Db, access: Write, dataset: str, body: WeightedSourceIn) -> RewardSourceOut:
    """A new source: the weighted sum of others that graded every row, each as z-scores over the rows unless `raw`."""
    stored = service.get_dataset(session, access.project, dataset)
    source = service.add_weighted(session, access.project, stored, body.name, body.weights, body.scale)
    audit(session, access, "rewards.weighted", stored.name, body.model_dump())
    return next(out for out in reward_sources(session, stored) if out.id == source.id)


@router.post("/{dataset}/labelled", status_code=201, responses=problems(404, 409))
def pin_labelled(session: Db, access: Write, dataset: str, body: LabelledIn) -> DatasetOut:
    """Pin one source's rewards as a labelled dataset, normalised over all its rows."""
    stored = service.get_dataset(session, access.project, dataset)
    source = service.get_source(session, access.project, body.source)
    labelled = service.pin_labelled(session, access.project, name=body.name, dataset=stored, source=source, run_id=None)
    audit(session, access, "dataset.label", labelled.name, {"of": stored.name, "source": source.name})
    return dataset_out(session, labelled)


@router.get("/{dataset}/export", response_class=Download, responses=problems(404))
def export_dataset(
    session: Db, access: Read, dataset: str, format: ExportFormat = "jsonl", split: ExportSplit = "all"
) -> Download:
    """Download a file that import reads back; with all rows, to the same content hash."""
    stored = service.get_dataset(session, access.project, dataset)
    name = stored.name if split == "all" else f"{stored.name}-{split}"
    return downloads.made(
        lambda file: service.write_export(session, stored, format, file, split), f"{name}.{format}", _MEDIA[format]
    )
