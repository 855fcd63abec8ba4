"""Removes files that no one needs any more: of imports that made their dataset, of long abandoned ones, of uploads in
parts that no one finished, and those that a crash left without an import. Safe to run many times over, and in several
processes at once."""

from __future__ import annotations

import datetime as dt
import uuid

from sqlalchemy import and_, delete, func, not_, or_, select
from sqlalchemy.orm import Session, sessionmaker

from steerboard.datasets.imports.files import ImportFiles
from steerboard.datasets.imports.tables import WORKING, Import, ImportUpload
from steerboard.platform.database import transaction

_ABANDONED = dt.timedelta(days=30)
_STRAY = dt.timedelta(days=1)  # far longer than an upload takes to get its row
_BATCH = 100


def sweep(sessions: sessionmaker[Session], files: ImportFiles) -> None:
    """All that is due now."""
    while _sweep_some(sessions, files):
        pass
    _sweep_strays(sessions, files)


def _sweep_some(sessions: sessionmaker[Session], files: ImportFiles) -> int:
    """The list of bad rows of an import that has ended outlives its upload, for as long as an abandoned one."""
    old = Import.updated_at < func.clock_timestamp() - _ABANDONED
    upload_due = and_(Import.state == "succeeded", not_(Import.files_gone))
    all_due = and_(old, or_(not_(Import.files_gone), Import.bad_file.is_not(None)))
    with transaction(sessions) as session:
        rows = session.scalars(
            select(Import)
            .where(Import.state.not_in(WORKING), or_(upload_due, all_due))
            .limit(_BATCH)
            .with_for_update(skip_locked=True)
        ).all()
        for row in rows:
            # Before the commit: cut off between the two, it is done again.
            if row.bad_file is None or row.updated_at < dt.datetime.now(dt.UTC) - _ABANDONED:
                files.remove(row.id)
                row.bad_file = None
            else:
                for place in range(len(row.files)):
                    files.remove(row.id, str(place))
            row.files_gone = True
        return len(rows)


def _sweep_strays(sessions: sessionmaker[Session], files: ImportFiles) -> None:
    with transaction(sessions) as session:
        # Before their parts: announced again, an upload starts from its first part.
        session.execute(delete(ImportUpload).where(ImportUpload.created_at < func.clock_timestamp() - _STRAY))
    stray = [id_ for id_ in files.import_ids() if _made_at(id_) < dt.datetime.now(dt.UTC) - _STRAY]
    if stray:
        with transaction(sessions) as session:
            known = set(session.scalars(select(Import.id).where(Import.id.in_(stray))))
        for id_ in set(stray) - known:
            files.remove(id_)


def _made_at(id_: uuid.UUID) -> dt.datetime:
    """UUIDv7 begins with its time in milliseconds."""
    return dt.datetime.fromtimestamp((id_.int >> 80) / 1000, dt.UTC)
