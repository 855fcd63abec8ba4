"""How many bytes a project keeps, and for which things. Exports are made when they are asked for, and kept nowhere."""

from __future__ import annotations

from dataclasses import astuple, dataclass

from sqlalchemy import text
from sqlalchemy.orm import Session

from steerboard.accounts.tables import Project

# Datasets are immutable, so each is measured once. As the database stores them, long values compressed.
_MEASURE = text("""
    UPDATE datasets SET bytes = (
        SELECT coalesce(sum(48 + pg_column_size(sample) + coalesce(pg_column_size(extra), 0)), 0)
        FROM samples WHERE dataset_id = datasets.id
    )
    WHERE id IN (SELECT id FROM datasets WHERE project_id = :project AND bytes IS NULL ORDER BY id FOR NO KEY UPDATE)
""")
# A file that several models have is stored once. Another project's use of it makes it no cheaper.
_STORED = text("""
    WITH kept AS (
        SELECT artifact_hash FROM models WHERE project_id = :project
        UNION SELECT artifact_hash FROM model_uploads WHERE project_id = :project
        UNION SELECT artifact_hash FROM openai_files WHERE project_id = :project
        UNION SELECT o.artifact_hash FROM run_outputs o JOIN runs r ON r.id = o.run_id WHERE r.project_id = :project
    )
    SELECT
        (SELECT sum(bytes) FROM datasets WHERE project_id = :project),
        (SELECT sum(size) FROM (
            SELECT DISTINCT file->>'sha256', (file->>'size')::bigint AS size
            FROM kept JOIN artifacts ON hash = artifact_hash, jsonb_array_elements(manifest->'files') AS file
        ) AS files),
        (SELECT sum((file->>'size')::bigint)
         FROM run_checkpoints c JOIN runs r ON r.id = c.run_id, jsonb_array_elements(c.files) AS file
         WHERE r.project_id = :project),
        coalesce((SELECT sum(size) FROM imports WHERE project_id = :project AND NOT files_gone), 0)
        + coalesce((SELECT sum(size) FROM import_uploads WHERE project_id = :project), 0)
        + coalesce((SELECT sum((file->>'size')::bigint) FROM model_uploads, jsonb_array_elements(files) AS file
            WHERE project_id = :project AND artifact_hash IS NULL), 0)
""")


@dataclass(frozen=True)
class StoredBytes:
    """`checkpoints`: of runs that may resume. `uploads`: files that were announced or wait for their import."""

    datasets: int
    models: int
    checkpoints: int
    uploads: int

    @property
    def total(self) -> int:
        return sum(astuple(self))


def stored_bytes(session: Session, project: Project) -> StoredBytes:
    session.flush()
    session.execute(_MEASURE, {"project": project.id})
    row = session.execute(_STORED, {"project": project.id}).one()
    return StoredBytes(*(int(size or 0) for size in row))


def total_stored(session: Session, project: Project) -> int:
    return stored_bytes(session, project).total
