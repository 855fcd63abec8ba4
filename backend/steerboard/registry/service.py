"""The registry's rules: what becomes a model, and where it came from."""

from __future__ import annotations

import uuid
from pathlib import Path

from sqlalchemy import or_, select
from sqlalchemy.dialects.postgresql import insert
from sqlalchemy.orm import Session

from steerboard.accounts.tables import Project
from steerboard.datasets.errors import InUse, NameTaken
from steerboard.datasets.hooks import stage_output, used_by_run
from steerboard.datasets.tables import RewardSource
from steerboard.platform.events.log import emit
from steerboard.platform.http.errors import NotFound
from steerboard.platform.names import MOST_SUGGESTED, check_name, find
from steerboard.platform.storage import store_lock
from steerboard.platform.storage.artifacts import ArtifactStore, Manifest
from steerboard.registry.folders import check_folder, read_info
from steerboard.registry.promotions import PRODUCTION, in_production, locked
from steerboard.registry.tables import Artifact, Endpoint, Model
from steerboard_contracts.errors import BadInput
from steerboard_contracts.models import ModelRole


def get_model(session: Session, project: Project, ref: str | uuid.UUID) -> Model:
    """The model by id, name, `<pipeline>.<stage>`, or `@production` and `@production-reward`.

    Raises `NotFound`, also for another project's, and `NothingInProduction`.
    """
    if isinstance(ref, str) and ref in PRODUCTION:
        return in_production(session, project, ref)
    model = find(session, select(Model).where(Model.project_id == project.id), Model.id, Model.name, ref)
    if model is None and isinstance(ref, str):
        made = stage_output(session, project.id, ref, "model")
        model = session.get(Model, made) if made else None
    if model is None:
        raise NotFound(
            f"there is no model {str(ref)!r}", code="unknown_model", hint="List them with `steerboard models list`."
        )
    return model


def model_names(session: Session, project: Project) -> list[str]:
    """The newest names, for suggestions."""
    names = select(Model.name).where(Model.project_id == project.id)
    return list(session.scalars(names.order_by(Model.id.desc()).limit(MOST_SUGGESTED)))


def register_model(
    session: Session,
    store: ArtifactStore,
    project: Project,
    *,
    name: str,
    folder: Path,
    role: ModelRole,
    method: str | None,
    parent_id: uuid.UUID | None,
    run_id: uuid.UUID | None,
) -> Model:
    """Store a finished model folder and enter it. The folder is checked before a byte of it is stored.

    Raises `UnsafeModelFile`, `BadInput` (`not_a_model`, `bad_model_info`, `role_mismatch`), `NameTaken`.
    """
    check_name(name)
    check_folder(folder)
    info = read_info(folder)
    if info.role != role or info.method != method:
        raise BadInput(
            f"steerboard.json has {info.role}/{info.method}, but the run made {role}/{method}",
            code="role_mismatch",
        )
    if session.scalar(select(Model.id).where(Model.project_id == project.id, Model.name == name)):
        raise NameTaken(f"there is already a model {name!r}", hint="Choose another name.")
    manifest = store_folder(session, store, folder)
    model = Model(
        project_id=project.id,
        name=name,
        role=role,
        method=method,
        artifact_hash=manifest.hash,
        parent_id=parent_id,
        run_id=run_id,
        info=info.model_dump(mode="json"),
    )
    session.add(model)
    session.flush()
    payload = {"id": str(model.id), "name": name, "role": role, "method": method}
    emit(session, project.id, "model.created", payload)
    return model


def store_folder(session: Session, store: ArtifactStore, folder: Path) -> Manifest:
    """A folder in the artifact store and its row. No one collects its blobs before the transaction ends
    (`platform.storage.store_lock`)."""
    store_lock.share_store(session)
    manifest = store.put_folder(folder)
    entry = insert(Artifact).values(hash=manifest.hash, size=manifest.size, manifest={"files": manifest.files})
    session.execute(entry.on_conflict_do_nothing())
    return manifest


def manifest_of(session: Session, model: Model) -> Manifest:
    artifact = session.get_one(Artifact, model.artifact_hash)
    return Manifest(hash=artifact.hash, size=artifact.size, files=artifact.manifest["files"])


def delete_model(session: Session, model: Model) -> None:
    """Remove an entry. Its files stay in the store: other models may share them. Raises `InUse`, `NotFound`."""
    if locked(session, model).stage is not None:
        raise InUse(
            f"{model.name!r} is in the stage {model.stage}",
            code="model_promoted",
            hint="Demote it first: steerboard models promote NAME --stage none",
        )
    used = session.scalar(
        select(
            or_(
                select(Model.id).where(Model.parent_id == model.id).exists(),
                select(RewardSource.id).where(RewardSource.model_id == model.id).exists(),
                select(Endpoint.id).where(Endpoint.policy_model_id == model.id).exists(),
            )
        )
    )
    if used or used_by_run(session, "model", model.id):
        raise InUse(
            f"a run, a model, an endpoint or a reward source refers to {model.name!r}", hint="Delete those first."
        )
    session.delete(model)
    session.flush()
