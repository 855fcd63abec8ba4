"""The imports of datasets and of rewards, as the import process makes them (`hooks.import_request`)."""

from __future__ import annotations

from typing import Any

from sqlalchemy.orm import Session

from steerboard.accounts.access import Access, audit
from steerboard.accounts.hub_tokens import hub_token_of
from steerboard.datasets.hooks import ToImport
from steerboard.datasets.hub import hub_sources
from steerboard.datasets.imports.loading import import_sources
from steerboard.datasets.imports.uploads import ImportForm, RewardsForm
from steerboard.datasets.lookup import get_dataset
from steerboard.datasets.queries import reward_sources
from steerboard.datasets.rewards.service import import_rewards
from steerboard.datasets.schemas import ImportReport, RewardSourceOut
from steerboard.platform.security.secrets import Secrets
from steerboard.platform.settings import get_settings


def dataset(session: Session, access: Access, given: ToImport) -> ImportReport:
    """A file, or a hub dataset, which is fetched here."""
    form, origin = ImportForm.model_validate(given.form), dict[str, Any]()
    if given.source is not None:
        sources = [given.source]
    else:
        token = hub_token_of(session, Secrets(get_settings()), access.project.id)
        sources = hub_sources(form.hub or "", get_settings().max_upload_mb << 20, token=token)
        origin = {"type": "hub", "hub": form.hub, "files": [part.label for part in sources]}
    report = import_sources(
        session,
        access.project,
        sources=sources,
        name=form.name,
        options=form.options,
        actor=access.actor,
        origin=origin,
    )
    audit(session, access, "dataset.import", form.name, {"rows": report.rows, "kind": report.dataset.kind})
    return report


def rewards(session: Session, access: Access, given: ToImport) -> RewardSourceOut:
    """Grades for every row of a dataset."""
    form, stored = RewardsForm.model_validate(given.form), get_dataset(session, access.project, given.into)
    source = import_rewards(session, access.project, stored, given.file, form.source)
    audit(session, access, "rewards.import", stored.name, {"source": source.name})
    return next(out for out in reward_sources(session, stored) if out.id == source.id)
