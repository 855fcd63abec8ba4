"""Names of what is made of a dataset: NAME-clean-1, NAME-clean-2, ..."""

from __future__ import annotations

import re

from sqlalchemy import select
from sqlalchemy.orm import Session

from steerboard.accounts.tables import Project
from steerboard.datasets.tables import Dataset
from steerboard.platform.names import check_name, names_like, next_name


def next_version(session: Session, project: Project, dataset: Dataset, what: str) -> str:
    """NAME-WHAT-N, N one above the highest that exists, also for a version of a version."""
    plain = re.sub(rf"-{re.escape(what)}-[0-9]{{1,9}}\Z", "", dataset.name)
    base = check_name(f"{plain[: 116 - len(what)]}-{what}")
    # One at a time, or two calls would choose the same number.
    session.execute(select(Dataset.id).where(Dataset.id == dataset.id).with_for_update(key_share=True))
    return next_name(base, names_like(session, Dataset.name, f"{base}-", Dataset.project_id == project.id))
