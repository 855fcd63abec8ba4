"""Histories over HTTP."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends
from pydantic import BaseModel, ConfigDict, Field

from steerboard.accounts.access import Access, AccessTo, Db, audit
from steerboard.accounts.http.routes import Router
from steerboard.datasets.imports.uploads import Form, checked, form_body, uploaded
from steerboard.platform.http.errors import InvalidRequest, problems
from steerboard.runs import queries
from steerboard.runs.schemas.runs import RunDetail
from steerboard.trackers.histories import service
from steerboard_contracts.errors import ErrorLocation

router = Router(tags=["runs"])


class HistoryForm(BaseModel):
    """The form field besides the file. `name`: of the run; by default the next history-N."""

    model_config = ConfigDict(extra="forbid")

    name: Annotated[str | None, Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$")] = None


class HistoryImported(BaseModel):
    """`not_finite`: values that were no finite numbers and are left out."""

    run: RunDetail
    not_finite: int


@router.post(
    "/runs/histories",
    status_code=201,
    responses=problems(404, 413),
    openapi_extra=form_body(HistoryForm, file_needed=True),
)
def import_history(session: Db, access: Annotated[Access, Depends(AccessTo("run"))], form: Form) -> HistoryImported:
    """Import the metrics of a run that another trainer made, as a run to compare with: the `trainer_state.json` of
    transformers and TRL, or a CSV, JSONL, JSON or Parquet table with a row for each step, as W&B and Trackio export it.
    Error codes of a 422: `bad_history`, and those of a dataset's file."""
    given, source = checked(HistoryForm, form), uploaded(form)
    if source is None:
        raise InvalidRequest(
            "the form has no file", errors=[ErrorLocation(location="file", message="is missing")], hint="Send `file`."
        )
    run, not_finite = service.import_history(session, access.project, source, given.name, access.actor)
    audit(session, access, "run.import_history", f"run {run.name} {run.id}", {"file": run.config["file"]})
    return HistoryImported(run=queries.detail(session, run, access.owner), not_finite=not_finite)
