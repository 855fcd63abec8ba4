"""What can be known of a run's warnings before it starts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from sqlalchemy.orm import Session

from steerboard.datasets.tables import Dataset
from steerboard.platform.storage.artifacts import ArtifactStore
from steerboard.registry.architecture import architecture_of
from steerboard.registry.tables import Model
from steerboard.runs.schemas.runs import RowCheck
from steerboard.runs.state.lifecycle import InputRef
from steerboard.runs.tables import Run
from steerboard_contracts.methods import needed_method
from steerboard_contracts.online.rewarded import RewardedOnlineConfig
from steerboard_contracts.run_config import RunConfig, stored_config
from steerboard_contracts.training import TrainingConfig
from steerboard_contracts.watching.warnings import (
    RunWarning,
    doubtful_judges,
    experts_of,
    fewer_steps,
    full_rate_kept,
    mixture_warnings,
    router_loss_of,
)


def foreseen_warnings(
    session: Session,
    store: ArtifactStore,
    config: RunConfig | None,
    refs: Mapping[str, InputRef],
    check: RowCheck | None = None,
) -> list[RunWarning]:
    """The warnings of a training run, as far as its inputs exist; the run itself replaces them with its own. `check`:
    the finished one of its rows."""
    if not isinstance(config, TrainingConfig):
        return []
    warnings = []
    model, data = (_given(session, refs.get(name)) for name in ("model", "data"))
    if isinstance(model, Model):
        architecture = architecture_of(session, store, model)
        warnings += _of_mixture(architecture, config) if architecture else []
    warnings += [full_rate_kept(config.lr)] if config.keeps_full_rate else []
    doubtful = doubtful_judges(config.doubts) if isinstance(config, RewardedOnlineConfig) else None
    warnings += [doubtful] if doubtful else []
    if isinstance(data, Dataset):
        halves = 2 if needed_method(config.method).splits_pairs and data.kind == "preferences" else 1
        most = config.most_steps((data.rows - data.held_out_rows) * halves)
        ends_early = fewer_steps(config.max_steps, most, config.epochs, counted_rows=True)
        warnings += [ends_early] if ends_early else []
    warnings += [check.warning] if check and check.warning else []
    return warnings


def warn_of(
    session: Session, store: ArtifactStore, run: Run, refs: Mapping[str, InputRef], check: RowCheck | None
) -> None:
    """Gives a new run the warnings that are foreseen, by its config as it was stored: with its judges."""
    if run.state != "succeeded":
        warnings = foreseen_warnings(session, store, stored_config(run.config), refs, check)
        run.warnings = [warning.model_dump(mode="json") for warning in warnings]


def _of_mixture(architecture: Mapping[str, Any], config: TrainingConfig) -> list[RunWarning]:
    coefficient = router_loss_of(architecture) if config.router_aux_loss is None else config.router_aux_loss
    balanced = config.freeze_router or coefficient > 0
    adapted = config.lora is not None and config.lora.targets == "experts"
    return mixture_warnings(experts_of(architecture), config.lora is not None, balanced, adapted)


def _given(session: Session, ref: InputRef | None) -> Model | Dataset | None:
    """Returns None for what a run has yet to make."""
    if ref is None or ref.run is not None:
        return None
    return session.get(Model, ref.model) if ref.model else session.get(Dataset, ref.dataset)
