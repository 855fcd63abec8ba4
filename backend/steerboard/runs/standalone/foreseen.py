"""What can be known of a run's warnings before it starts."""

from __future__ import annotations

from sqlalchemy.orm import Session

from steerboard.platform.storage.artifacts import ArtifactStore
from steerboard.registry.architecture import architecture_of
from steerboard.registry.tables import Model
from steerboard_contracts.run_config import RunConfig
from steerboard_contracts.training import TrainingConfig
from steerboard_contracts.watching.warnings import RunWarning, experts_of, mixture_warnings


def foreseen_warnings(
    session: Session, store: ArtifactStore, config: RunConfig, model: Model | None
) -> list[RunWarning]:
    """Of training from `model`; the run itself replaces them with its own."""
    if not isinstance(config, TrainingConfig) or model is None:
        return []
    architecture = architecture_of(session, store, model)
    return mixture_warnings(experts_of(architecture), config.lora is not None) if architecture else []
