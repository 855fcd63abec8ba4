"""Runs of their own, outside any pipeline: checked by the same rules as the stages of a recipe."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError
from sqlalchemy.orm import Session

from steerboard.accounts.tables import Project
from steerboard.datasets.conversions.launch import rows_fault
from steerboard.datasets.service import get_dataset
from steerboard.platform.http.errors import NotFound
from steerboard.platform.names import next_name_of_all
from steerboard.platform.storage.artifacts import ArtifactStore
from steerboard.registry.base_sources import pinned
from steerboard.registry.endpoints.service import get_endpoint
from steerboard.registry.service import get_model
from steerboard.registry.tables import Model
from steerboard.registry.tokenizers import tokenizer_fault
from steerboard.runs.errors import NoTrainingRows
from steerboard.runs.inputs import resolve
from steerboard.runs.kinds import adapter_misfit, misfit, needs_whole
from steerboard.runs.schemas.requests import RunClone, RunCreate, RunWork
from steerboard.runs.state.lifecycle import InputRef, create_run
from steerboard.runs.tables import Run
from steerboard.runs.texts import all_held_out
from steerboard_contracts.configs.base import BaseModelConfig
from steerboard_contracts.errors import BadInput, ErrorLocation
from steerboard_contracts.files.local_folders import LocalFolders
from steerboard_contracts.methods import needed_method
from steerboard_contracts.run_config import RUN_CONFIG, RunConfig
from steerboard_contracts.run_kinds import any_kind_of, kind_of, run_kinds, trains
from steerboard_contracts.specs.run_kind import RunKindSpec
from steerboard_contracts.specs.slots import Slot
from steerboard_contracts.training import TrainingConfig


class InvalidRun(BadInput):
    """The config or the inputs of a run that someone asked for do not fit its kind; nothing was started."""

    code = "invalid_run"
    title = "The run cannot be started"


def start_run(
    session: Session,
    project: Project,
    asked: RunCreate,
    actor: str,
    folders: LocalFolders | None = None,
    store: ArtifactStore | None = None,
) -> Run:
    """Check and create a run. Raises `InvalidRun` with every fault by field."""
    config, refs = checked(session, project, asked, folders, store)
    return create_run(
        session,
        project,
        name=asked.name or _run_name(session, project, config.run),
        config=config,
        inputs=refs,
        pool=asked.pool,
        priority=asked.priority,
        reuse=asked.reuse,
        created_by=actor,
    )


def checked(
    session: Session,
    project: Project,
    asked: RunWork,
    folders: LocalFolders | None = None,
    store: ArtifactStore | None = None,
) -> tuple[RunConfig, dict[str, InputRef]]:
    """The config with its defaults, and the inputs by id. Raises `InvalidRun` with every fault by field.

    `folders`: which folders of this machine may be read for the caller; with None, none. `store`: where the files of
    models are; without it their tokenizers are left to the run."""
    faults: list[ErrorLocation] = []
    asked = _endpoint_apart(session, project, asked, faults)
    kind, config = _config(asked.config, faults)
    _check_judge(session, project, config, asked, faults)
    refs: dict[str, InputRef] = {}
    if kind is not None:
        refs = _inputs(session, project, kind, asked.inputs, config, faults)
        _check_complete(kind, asked, faults)
        fault = config.input_fault(asked.inputs) if isinstance(config, TrainingConfig) else None
        if fault is not None:
            faults.append(ErrorLocation(location="inputs", message=fault))
        if isinstance(config, TrainingConfig):
            misplaced = needed_method(config.method).placement_fault(config, asked.inputs)
            if misplaced is not None:
                faults.append(ErrorLocation(location="config.placement", message=misplaced))
            if store is not None:
                faults += _tokenizer_faults(session, store, config, refs)
    code = None
    if isinstance(config, BaseModelConfig):
        try:
            config = pinned(session, project, config, folders)
        except BadInput as error:
            code = None if faults else error.code
            faults.append(ErrorLocation(location="config.source", message=error.detail))
    if faults or config is None:
        raise InvalidRun("the run cannot be started", errors=faults, hint="Nothing was started.", code=code)
    if trains(config.run):
        for name in (name for name, ref in refs.items() if ref.dataset is not None):
            _check_training_rows(session, project, name, asked.inputs[name])
    return config, refs


def _check_training_rows(session: Session, project: Project, name: str, ref: str) -> None:
    dataset = get_dataset(session, project, ref)
    if dataset.rows == dataset.held_out_rows:
        raise NoTrainingRows(
            f"{dataset.name!r} has {all_held_out(dataset.rows)}, so none are left for training",
            errors=[ErrorLocation(location=f"inputs.{name}", message=all_held_out(dataset.rows))],
            hint="Nothing was started. Add prompts that the project does not hold out. Pairs from rankings can be made "
            "again with all of them for training.",
        )


def _tokenizer_faults(
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


def _endpoint_apart(session: Session, project: Project, asked: RunWork, faults: list[ErrorLocation]) -> RunWork:
    """An endpoint may be named where some kinds want their model: it goes into the config, since it is no input that
    could be handed to a stage."""
    kind = kind_of(asked.config.get("run"), asked.config.get("method"))
    if kind is None or kind.asks_endpoint is None:
        return asked
    named, ref = asked.config.get("endpoint"), asked.inputs.get("model")
    if named is None and ref is not None and _is_endpoint(session, project, ref):
        inputs = {name: value for name, value in asked.inputs.items() if name != "model"}
        return asked.model_copy(update={"config": {**asked.config, "endpoint": ref}, "inputs": inputs})
    if isinstance(named, str) and not _is_endpoint(session, project, named):
        faults.append(ErrorLocation(location="config.endpoint", message=f"there is no endpoint {named!r}"))
    if named is not None and ref is not None:
        faults.append(ErrorLocation(location="inputs.model", message="give either this or config.endpoint"))
    return asked


def _is_endpoint(session: Session, project: Project, ref: str) -> bool:
    try:
        get_endpoint(session, project, ref)
    except NotFound:
        return False
    return True


def clone_run(
    session: Session,
    project: Project,
    run: Run,
    changes: RunClone,
    actor: str,
    folders: LocalFolders | None = None,
    store: ArtifactStore | None = None,
) -> Run:
    """A new run like `run`, with the changes. Its inputs are what the original's came to be.

    Raises `InvalidRun`; also while an input of the original has not been made yet.
    """
    things = resolve(session, run)
    names = {name: str(thing.id) for name, thing in things.items()}
    asked = RunCreate(
        name=changes.name,
        config={**run.config, **changes.config},
        inputs={**names, **changes.inputs},
        pool=changes.pool or run.pool,
        priority=run.priority,
        reuse=changes.reuse,
    )
    return start_run(session, project, asked, actor, folders, store)


def _config(raw: dict[str, Any], faults: list[ErrorLocation]) -> tuple[RunKindSpec | None, RunConfig | None]:
    kind = kind_of(raw.get("run"), raw.get("method"))
    if kind is None:
        words = ", ".join(k.word for k in run_kinds())
        at = "config.method" if trains(raw.get("run")) else "config.run"
        message = f"is not a run kind; known: {words}"
        if any_kind_of(raw.get("run")) is not None:
            message = "is started by its evaluation, and cannot be started alone"
        faults.append(ErrorLocation(location=at, message=message))
        return None, None
    try:
        return kind, RUN_CONFIG.validate_python(kind.config.model_validate(raw))
    except ValidationError as error:
        for problem in error.errors(include_url=False, include_context=False):
            location = ".".join(["config", *(str(part) for part in problem["loc"])])
            message = problem["msg"].removeprefix("Value error, ")
            faults.append(ErrorLocation(location=location, message=message))
        return kind, None


def _inputs(
    session: Session,
    project: Project,
    kind: RunKindSpec,
    names: dict[str, str],
    config: RunConfig | None,
    faults: list[ErrorLocation],
) -> dict[str, InputRef]:
    refs: dict[str, InputRef] = {}
    slots = kind.slots_of(names)
    for name, ref in names.items():
        slot = slots.get(name.partition(".")[0])
        if slot is None or not re.fullmatch(r"[a-z]+\.\d+" if slot.many else r"[a-z0-9_]+", name):
            known = ", ".join(f"{n}.0" if s.many else n for n, s in kind.slots.items())
            faults.append(
                ErrorLocation(location=f"inputs.{name}", message=f"is not an input of {kind.word}; known: {known}")
            )
            continue
        try:
            refs[name] = _look_up(session, project, slot, name, ref, config, faults)
            if slot.thing == "dataset":
                _check_rows(session, project, name, ref, kind, faults)
        except NotFound as error:
            faults.append(ErrorLocation(location=f"inputs.{name}", message=error.detail))
    return refs


def _check_rows(
    session: Session, project: Project, name: str, ref: str, kind: RunKindSpec, faults: list[ErrorLocation]
) -> None:
    """Fields of datasets of which they are known, and rows of which nothing can be learned."""
    dataset = get_dataset(session, project, ref)
    field, fields = kind.needs_field.get(dataset.kind), dataset.origin.get("fields")
    if field is not None and fields is not None and field not in fields:
        message: str | None = f"needs rows with `{field}`; those of `{ref}` have {', '.join(fields)}"
    else:
        message = rows_fault(session, dataset, kind, name)
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


def _check_complete(kind: RunKindSpec, asked: RunWork, faults: list[ErrorLocation]) -> None:
    for name, slot in kind.slots.items():
        first = f"{name}.0" if slot.many else name
        elsewhere = (name == "model" and kind.asks_endpoint and asked.config.get("endpoint") is not None) or (
            name == "rewards" and asked.config.get("decides") is True and _is_judged(asked)
        )
        if slot.required and first not in asked.inputs and not elsewhere:
            faults.append(ErrorLocation(location=f"inputs.{first}", message=f"is missing: {kind.word} needs it"))
    for field, slot_name in kind.lists.items():
        items = asked.config.get(field)
        given = sum(name.startswith(f"{slot_name}.") for name in asked.inputs)
        # A list that has a default may be left empty.
        left_out = not items and not kind.config.model_fields[field].is_required()
        if isinstance(items, list) and given != len(items) and not left_out:
            message = f"has {len(items)} items, but {given} inputs are given for them"
            faults.append(ErrorLocation(location=f"config.{field}", message=message))
    for name, field in kind.written_out.items():
        if kind.asks_endpoint and asked.config.get("endpoint") is not None and asked.config.get(field):
            faults.append(ErrorLocation(location=f"config.{field}", message="does not apply to an endpoint"))
        if (name in asked.inputs) == bool(asked.config.get(field)):
            faults.append(ErrorLocation(location=f"inputs.{name}", message=f"give either this or config.{field}"))


def _check_judge(
    session: Session, project: Project, config: RunConfig | None, asked: RunWork, faults: list[ErrorLocation]
) -> None:
    judge = getattr(config, "judge", None)
    if judge is None:
        return
    if not _is_endpoint(session, project, judge.endpoint):
        message = f"there is no endpoint {judge.endpoint!r}"
        faults.append(ErrorLocation(location="config.judge.endpoint", message=message))
    if "judge" in asked.inputs:
        faults.append(ErrorLocation(location="inputs.judge", message="give either this or config.judge"))


def _is_judged(asked: RunWork) -> bool:
    return asked.config.get("judge") is not None or "judge" in asked.inputs


def _run_name(session: Session, project: Project, kind: str) -> str:
    """`generate-3`: one more than the runs of this kind outside pipelines."""
    alone = (Run.project_id == project.id, Run.pipeline_id.is_(None))
    return next_name_of_all(session, project.id, Run.name, kind, *alone)
