"""The inputs that are named for a run: what they are, and whether they fit its kind."""

from __future__ import annotations

import re
from collections.abc import Mapping

from sqlalchemy.orm import Session

from steerboard.accounts.tables import Project
from steerboard.datasets.conversions.launch import rows_fault
from steerboard.datasets.lookup import dataset_names
from steerboard.datasets.service import get_dataset
from steerboard.platform.http.errors import NotFound
from steerboard.platform.storage.artifacts import ArtifactStore
from steerboard.registry.service import get_model, model_names
from steerboard.registry.tables import Model
from steerboard.registry.tokenizers import tokenizer_fault
from steerboard.runs.errors import NoTrainingRows
from steerboard.runs.kinds import adapter_misfit, misfit, needs_whole
from steerboard.runs.state.lifecycle import InputRef
from steerboard.runs.texts import all_held_out
from steerboard_contracts.complaints import did_you_mean
from steerboard_contracts.errors import ErrorLocation
from steerboard_contracts.files.base_sources import source_type
from steerboard_contracts.methods import needed_method
from steerboard_contracts.run_config import RunConfig
from steerboard_contracts.specs.run_kind import RunKindSpec
from steerboard_contracts.specs.slots import Slot
from steerboard_contracts.training import TrainingConfig


def given_inputs(
    session: Session,
    project: Project,
    kind: RunKindSpec,
    names: dict[str, str],
    config: RunConfig | None,
    faults: list[ErrorLocation],
) -> dict[str, InputRef]:
    """By name of the input, without models from outside. What is not found, or does not fit, is added to `faults`."""
    refs: dict[str, InputRef] = {}
    slots = kind.slots_of(names)
    for name, ref in names.items():
        slot = slots.get(name.partition(".")[0])
        if slot is None or not re.fullmatch(r"[a-z]+\.\d+" if slot.many else r"[a-z0-9_]+", name):
            known = [f"{n}.0" if s.many else n for n, s in kind.slots.items()]
            message = f"is not an input of {kind.word}{did_you_mean(name, known)}"
            faults.append(ErrorLocation(location=f"inputs.{name}", message=message))
            continue
        if is_outside(slot, ref):
            continue
        try:
            refs[name] = _look_up(session, project, slot, name, ref, config, faults)
            if slot.thing == "dataset":
                _check_rows(session, project, name, ref, kind, config, faults)
        except NotFound as error:
            known_names = dataset_names if slot.thing == "dataset" else model_names
            message = error.detail + did_you_mean(ref, known_names(session, project))
            faults.append(ErrorLocation(location=f"inputs.{name}", message=message))
    return refs


def is_outside(slot: Slot, ref: str) -> bool:
    """Whether a folder, an upload or a hub name is meant: no name in a project has their characters."""
    return slot.thing == "model" and source_type(ref) in ("folder", "upload", "hub")


def _check_rows(
    session: Session,
    project: Project,
    name: str,
    ref: str,
    kind: RunKindSpec,
    config: RunConfig | None,
    faults: list[ErrorLocation],
) -> None:
    """Fields of datasets of which they are known, and rows of which nothing can be learned."""
    dataset = get_dataset(session, project, ref)
    field, fields = kind.needs_field.get(dataset.kind), dataset.origin.get("fields")
    if field is not None and fields is not None and field not in fields:
        message: str | None = f"needs rows with `{field}`; those of `{ref}` have {', '.join(fields)}"
    else:
        message = rows_fault(session, dataset, kind, name, config)
    if message is not None:
        faults.append(ErrorLocation(location=f"inputs.{name}", message=message))


def _look_up(
    session: Session,
    project: Project,
    slot: Slot,
    name: str,
    ref: str,
    config: RunConfig | None,
    faults: list[ErrorLocation],
) -> InputRef:
    setting = None
    if slot.thing == "model":
        model = get_model(session, project, ref)
        found, what = InputRef(model=model.id), model.role
        setting = needs_whole(config, name.partition(".")[0]) if model.info.get("lora") else None
        window = model.info.get("max_length")
        if name == "model" and window and isinstance(config, TrainingConfig):
            fault = config.room_fault(int(window))
            faults += [] if fault is None else [ErrorLocation(location="config.max_new_tokens", message=fault)]
    else:
        dataset = get_dataset(session, project, ref)
        found, what = InputRef(dataset=dataset.id), dataset.kind
    if what not in slot.allowed:
        word = "role" if slot.thing == "model" else "kind"
        message = misfit(slot, f"`{ref}` is of {word} {what}", what, ref if slot.thing == "dataset" else None)
        faults.append(ErrorLocation(location=f"inputs.{name}", message=message))
    elif setting is not None:
        faults.append(ErrorLocation(location=f"inputs.{name}", message=adapter_misfit(ref, setting)))
    return found


def check_training_rows(session: Session, project: Project, name: str, ref: str) -> None:
    """Raises `NoTrainingRows` where all rows are held out."""
    dataset = get_dataset(session, project, ref)
    if dataset.rows == dataset.held_out_rows:
        raise NoTrainingRows(
            f"{dataset.name!r} has {all_held_out(dataset.rows)}, so none are left for training",
            errors=[ErrorLocation(location=f"inputs.{name}", message=all_held_out(dataset.rows))],
            hint="Nothing was started. Add prompts that the project does not hold out. Pairs from rankings can be made "
            "again with all of them for training.",
        )


def tokenizer_faults(
    session: Session, store: ArtifactStore, config: TrainingConfig, refs: Mapping[str, InputRef]
) -> list[ErrorLocation]:
    """Of models that would be given the tokens of the model to train, and read them as another text."""
    models = {name: session.get_one(Model, ref.model) for name, ref in refs.items() if ref.model is not None}
    start, faults = models.get("model"), []
    for name in needed_method(config.method).given_tokens(config) if start else ():
        fault = tokenizer_fault(session, store, start, models[name]) if start and name in models else None
        if fault is not None:
            faults.append(ErrorLocation(location=f"inputs.{name}", message=fault))
    return faults
