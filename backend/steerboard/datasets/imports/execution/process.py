"""The process that reads one import's file: `app.import_process import ID ATTEMPT OWNER`.

Apart from the API, whose requests would wait for Python's lock while rows are parsed. It gets nothing but ids; it
starts from the beginning each time, and whatever it writes names its lease. Exits with 0 when the state records
how it went, also when the lease was lost; anything else is worth another attempt.
"""

from __future__ import annotations

import logging
import os
import time
import uuid
from typing import Any

from sqlalchemy.exc import InterfaceError, OperationalError
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.access import Access, audit
from steerboard.accounts.hub_tokens import hub_token_of
from steerboard.accounts.tables import Project
from steerboard.datasets.imports.bad_rows import BadRowFile
from steerboard.datasets.imports.detection import problem_of, reading_on
from steerboard.datasets.imports.execution import claims
from steerboard.datasets.imports.execution.faults import FAULTS
from steerboard.datasets.imports.execution.jobs import LARGE_BYTES, NICENESS
from steerboard.datasets.imports.execution.limits import bound_memory
from steerboard.datasets.imports.files import ImportFiles, Meter
from steerboard.datasets.imports.importer import ImportCounts, ImportOptions, OpenedImport, open_import, write_rows
from steerboard.datasets.imports.loading import import_sources
from steerboard.datasets.imports.schemas import ImportOptionsOut
from steerboard.datasets.imports.sources import import_sources_of
from steerboard.datasets.imports.tables import Import
from steerboard.datasets.rewards.service import those_given
from steerboard.datasets.rows.row_writer import give_back_space
from steerboard.datasets.schemas import BadRowReport
from steerboard.platform.database import make_engine, make_sessions, transaction
from steerboard.platform.leases import Lease, LeaseLost
from steerboard.platform.security.secrets import Secrets
from steerboard.platform.settings import get_settings
from steerboard.platform.storage.disk import database_is_full, no_space_for_rows
from steerboard_contracts.errors import NoSpaceLeft, SteerboardError
from steerboard_contracts.prompts import Normaliser
from steerboard_contracts.samples import Sample
from steerboard_files.records import Source
from steerboard_files.texts import storable

log = logging.getLogger("steerboard.imports")

_PROGRESS_SECONDS = 0.5
_SHOWN_BAD = 100


class Watch:
    """Reports progress in separate transactions, and keeps what the report needs."""

    def __init__(self, sessions: sessionmaker[Session], files: ImportFiles, lease: Lease, size: int) -> None:
        self.meter = Meter()
        self.report: dict[str, Any] | None = None
        self.bad_file: str | None = None
        self.progress = {"read": 0, "bytes": 0, "total_bytes": size, "rows": 0}
        self._sessions, self._files, self._lease, self._size = sessions, files, lease, size
        self._bad = BadRowFile()
        self._said = 0.0

    def at(self, read: int, rows: int) -> None:
        now = time.monotonic()
        if now - self._said >= _PROGRESS_SECONDS:
            self._said = now
            self.progress = {
                "read": read,
                "bytes": min(self.meter.bytes, self._size),
                "total_bytes": self._size,
                "rows": rows,
            }
            with transaction(self._sessions) as session:
                claims.note_progress(session, self._lease, self.progress)

    def bad_row(self, bad: BadRowReport) -> None:
        self._bad.add(bad)

    def counted(self, opened: OpenedImport, outcome: ImportCounts) -> None:
        self.bad_file = self._bad.store(self._files, self._lease.id)
        self.progress = {
            "read": outcome.read,
            "bytes": self._size,
            "total_bytes": self._size,
            "rows": outcome.rows,
        }
        self.report = storable(
            {
                "read": outcome.read,
                "rows": outcome.rows,
                "cleaned": outcome.cleaned,
                "bad_rows": outcome.bad.total,
                "bad_counts": dict(outcome.bad.codes.most_common()),
                "bad_reasons": dict(outcome.bad.counts.most_common()),
                "bad": [bad.model_dump() for bad in outcome.bad.kept[:_SHOWN_BAD]],
                "columns": opened.mapping.columns,
                "kind": opened.mapping.kind,
                "form": opened.mapping.form,
                "unit": opened.reader.unit,
            }
        )

    @property
    def results(self) -> dict[str, Any]:
        """What the row gets at the end."""
        return {"report": self.report, "bad_file": self.bad_file, "progress": self.progress}


class _Nowhere:
    """Keeps no rows."""

    def add(self, sample: Sample, fields: dict[str, Any], canonical: bytes, extra: str | None) -> None:
        pass


def work(sessions: sessionmaker[Session], files: ImportFiles, lease: Lease) -> None:
    """Validate or import. Raises `LeaseLost`, and the database's errors when it went away."""
    with transaction(sessions) as session:
        row = claims.fenced(session, lease)
    if row.size > LARGE_BYTES:
        os.nice(NICENESS)
    options = ImportOptionsOut.model_validate(row.options).options
    watch = Watch(sessions, files, lease, row.size)
    try:
        if row.state == "validating":
            _validate(sessions, files, lease, row, options, watch)
        else:
            _import(sessions, files, lease, row, options, watch)
    except LeaseLost:
        raise
    except NoSpaceLeft as error:
        _fail(sessions, lease, watch, error)
        give_back_space(sessions.kw["bind"])
    except (OperationalError, InterfaceError) as error:
        if not database_is_full(error):
            raise
        _fail(sessions, lease, watch, no_space_for_rows())
    except SteerboardError as error:
        _fail(sessions, lease, watch, error)
    except MemoryError:
        _fail(sessions, lease, watch, FAULTS["import"].out_of_memory(get_settings().import_memory_mb))
    except Exception:
        log.exception("import %s failed", lease.id)
        _fail(sessions, lease, watch, SteerboardError("The import hit an unexpected error; its log has the traceback."))


def _validate(
    sessions: sessionmaker[Session],
    files: ImportFiles,
    lease: Lease,
    row: Import,
    options: ImportOptions,
    watch: Watch,
) -> None:
    judged = reading_on(options)
    opened = open_import(_sources(sessions, files, row, watch), judged)
    outcome = write_rows(opened, judged, _Nowhere(), watch)
    if given := those_given(outcome.rewards):
        Normaliser.fit(given, row.name, None)  # raises what the import would
    with transaction(sessions) as session:
        claims.end(session, claims.fenced(session, lease), "validated", problem=None, **watch.results)


def _sources(sessions: sessionmaker[Session], files: ImportFiles, row: Import, watch: Watch) -> list[Source]:
    token = None
    if row.hub:
        with transaction(sessions) as session:
            token = hub_token_of(session, Secrets(get_settings()), row.project_id)
    return import_sources_of(files, row, watch.meter, token)


def _import(
    sessions: sessionmaker[Session],
    files: ImportFiles,
    lease: Lease,
    row: Import,
    options: ImportOptions,
    watch: Watch,
) -> None:
    origin: dict[str, Any] = {"import": str(row.id)}
    sources = _sources(sessions, files, row, watch)
    if row.hub:
        origin |= {"type": "hub", "hub": row.hub, "files": [file["label"] for file in row.files]}
    with transaction(sessions) as session:

        def fence() -> None:
            claims.fenced(session, lease)

        project = session.get_one(Project, row.project_id)
        report = import_sources(
            session,
            project,
            sources=sources,
            name=row.name,
            options=options,
            actor=row.started_by,
            origin=origin,
            watch=watch,
            fence=fence,
        )
        by = Access(project, row.started_by or row.created_by, frozenset())
        audit(session, by, "dataset.import", row.name, {"rows": report.rows, "kind": report.dataset.kind})
        held = claims.fenced(session, lease)
        claims.end(session, held, "succeeded", problem=None, dataset_id=report.dataset.id, **watch.results)


def _fail(sessions: sessionmaker[Session], lease: Lease, watch: Watch, error: SteerboardError) -> None:
    with transaction(sessions) as session:
        claims.end(session, claims.fenced(session, lease), "failed", problem=problem_of(error), **watch.results)


def main(arguments: list[str]) -> int:
    """`arguments`: the id of the import, the attempt and the owner of its lease."""
    settings = get_settings()
    logging.basicConfig(level=settings.log_level, format="%(asctime)s %(levelname)s %(message)s")
    lease = Lease(uuid.UUID(arguments[0]), int(arguments[1]), uuid.UUID(arguments[2]))
    sessions = make_sessions(make_engine(settings.database_url, pool_size=2))
    bound_memory(settings.import_memory_mb)
    try:
        work(sessions, ImportFiles(settings.artifact_url), lease)
    except LeaseLost as lost:
        log.info("%s", lost)
    return 0
