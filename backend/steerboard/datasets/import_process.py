"""The process that reads one import's file: `python -m steerboard.datasets.import_process IMPORT LEASE`.

Apart from the API, whose requests would wait for Python's lock while rows are parsed. It is told nothing but ids; it
starts from the beginning each time, and whatever it writes names its lease. Ends with 0 when the import's state says
how it went, also when the lease was lost; anything else is worth another attempt.
"""

from __future__ import annotations

import logging
import os
import sys
import time
import uuid
from typing import Any

from sqlalchemy.exc import InterfaceError, OperationalError
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import Project
from steerboard.datasets import imports_claims as claims
from steerboard.datasets.importing import ImportOptions, OpenedImport, Outcome, open_import, write_rows
from steerboard.datasets.imports_bad_rows import BadRowFile
from steerboard.datasets.imports_claims import Lease
from steerboard.datasets.imports_detection import problem_of, reading_on, storable
from steerboard.datasets.imports_files import ImportFiles, Meter
from steerboard.datasets.imports_schemas import ImportOptionsOut
from steerboard.datasets.imports_sources import import_sources_of
from steerboard.datasets.imports_tables import Import
from steerboard.datasets.schemas import BadRowReport
from steerboard.datasets.service import import_sources
from steerboard.platform.access import Access, audit
from steerboard.platform.database import make_engine, make_sessions, transaction
from steerboard.platform.settings import get_settings
from steerboard.runs.errors import LeaseLost
from steerboard_contracts.errors import SteerboardError
from steerboard_contracts.prompts import Normaliser
from steerboard_contracts.samples import Sample

log = logging.getLogger("steerboard.imports")

_PROGRESS_SECONDS = 0.5
_SHOWN_BAD = 100
# People wait for the API, not for a large file; a small one is over at once, and somebody watches it.
_NICENESS = 10
_LARGE_BYTES = 4 * 1024 * 1024


class Watch:
    """Tells how far the work is, in transactions of its own, and keeps what the report needs."""

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

    def counted(self, opened: OpenedImport, outcome: Outcome) -> None:
        self.bad_file = self._bad.store(self._files, self._lease.import_id)
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
        """For the row, at the end."""
        return {"report": self.report, "bad_file": self.bad_file, "progress": self.progress}


class _Nowhere:
    """Keeps no rows."""

    def add(self, sample: Sample, fields: dict[str, Any], canonical: bytes, extra: str | None) -> None:
        pass


def work(sessions: sessionmaker[Session], files: ImportFiles, lease: Lease) -> None:
    """Validate or import. Raises `LeaseLost`, and the database's errors when it went away."""
    with transaction(sessions) as session:
        row = claims.fenced(session, lease)
    if row.size > _LARGE_BYTES:
        os.nice(_NICENESS)
    options = ImportOptionsOut.model_validate(row.options).options
    watch = Watch(sessions, files, lease, row.size)
    try:
        if row.state == "validating":
            _validate(sessions, files, lease, row, options, watch)
        else:
            _import(sessions, files, lease, row, options, watch)
    except (LeaseLost, OperationalError, InterfaceError):
        raise
    except SteerboardError as error:
        _fail(sessions, lease, watch, error)
    except Exception:
        log.exception("import %s failed", lease.import_id)
        _fail(sessions, lease, watch, SteerboardError("The import met an unexpected error; its log has the traceback."))


def _validate(
    sessions: sessionmaker[Session],
    files: ImportFiles,
    lease: Lease,
    row: Import,
    options: ImportOptions,
    watch: Watch,
) -> None:
    judged = reading_on(options)
    opened = open_import(import_sources_of(files, row, watch.meter), judged)
    outcome = write_rows(opened, judged, _Nowhere(), watch)
    if opened.mapping.kind == "labelled":
        Normaliser.fit(outcome.rewards, row.name, None)  # raises what the import would
    with transaction(sessions) as session:
        claims.end(session, claims.fenced(session, lease), "validated", problem=None, **watch.results)


def _import(
    sessions: sessionmaker[Session],
    files: ImportFiles,
    lease: Lease,
    row: Import,
    options: ImportOptions,
    watch: Watch,
) -> None:
    origin: dict[str, Any] = {"import": str(row.id)}
    if row.hub:
        origin |= {"type": "hub", "hub": row.hub, "files": [file["label"] for file in row.files]}
    with transaction(sessions) as session:

        def fence() -> None:
            claims.fenced(session, lease)

        project = session.get_one(Project, row.project_id)
        report = import_sources(
            session,
            project,
            sources=import_sources_of(files, row, watch.meter),
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


def main() -> int:
    settings = get_settings()
    logging.basicConfig(level=settings.log_level, format="%(asctime)s %(levelname)s %(message)s")
    lease = Lease(uuid.UUID(sys.argv[1]), uuid.UUID(sys.argv[2]))
    sessions = make_sessions(make_engine(settings.database_url, pool_size=2))
    try:
        work(sessions, ImportFiles(settings.artifact_url), lease)
    except LeaseLost as lost:
        log.info("%s", lost)
    return 0


if __name__ == "__main__":
    sys.exit(main())
