"""Whether a run that someone asks for can be started: its config, and which of its inputs are given."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError
from sqlalchemy.orm import Session

from steerboard.accounts.tables import Project
from steerboard.platform.http.errors import NotFound
from steerboard.platform.storage.artifacts import ArtifactStore
from steerboard.registry.base_sources import pinned
from steerboard.registry.endpoints.service import get_endpoint
from steerboard.runs.schemas.requests import RunWork
from steerboard.runs.standalone.given_inputs import check_training_rows, given_inputs, tokenizer_faults
from steerboard.runs.state.lifecycle import InputRef
from steerboard_contracts.complaints import complaints, did_you_mean
from steerboard_contracts.errors import BadInput, ErrorLocation
from steerboard_contracts.files.local_folders import LocalFolders
from steerboard_contracts.methods import methods, needed_method
from steerboard_contracts.run_config import RUN_CONFIG, RunConfig
from steerboard_contracts.run_kinds import any_kind_of, kind_of, run_kinds, trains
from steerboard_contracts.specs.run_kind import RunKindSpec
from steerboard_contracts.training import TrainingConfig


class InvalidRun(BadInput):
    """The config or the inputs of a run that someone asked for do not fit its kind; nothing was started."""

    code = "invalid_run"
    title = "The run cannot be started"


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
        refs = given_inputs(session, project, kind, asked.inputs, config, faults)
        _check_complete(kind, asked, faults)
        fault = config.input_fault(asked.inputs) if isinstance(config, TrainingConfig) else None
        if fault is not None:
            faults.append(ErrorLocation(location="inputs", message=fault))
        if isinstance(config, TrainingConfig):
            misplaced = needed_method(config.method).placement_fault(config, asked.inputs)
            if misplaced is not None:
                faults.append(ErrorLocation(location="config.placement", message=misplaced))
            if store is not None:
                faults += tokenizer_faults(session, store, config, refs)
    code = None
    if config is not None and kind is not None and kind.brings_in:
        try:
            found = pinned(session, project, asked.config["source"], folders)
            config = config.model_copy(update=found._asdict())
        except BadInput as error:
            code = None if faults else error.code
            faults.append(ErrorLocation(location="config.source", message=error.detail))
    if faults or config is None:
        raise InvalidRun("the run cannot be started", errors=faults, hint="Nothing was started.", code=code)
    if trains(config.run):
        for name in (name for name, ref in refs.items() if ref.dataset is not None):
            check_training_rows(session, project, name, asked.inputs[name])
    return config, refs


def _endpoint_apart(session: Session, project: Project, asked: RunWork, faults: list[ErrorLocation]) -> RunWork:
    """An endpoint may be named where some kinds want their model: it goes into the config, as it is not an input that
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


def _config(raw: dict[str, Any], faults: list[ErrorLocation]) -> tuple[RunKindSpec | None, RunConfig | None]:
    kind = kind_of(raw.get("run"), raw.get("method"))
    if kind is None:
        faults.append(_unknown_kind(raw))
        return None, None
    try:
        return kind, RUN_CONFIG.validate_python(kind.config.model_validate(raw))
    except ValidationError as error:
        for one in complaints(error, raw, kind.config):
            # A form shows what is missing where it would be.
            place = one.place if one.missing is None else (*one.place, one.missing)
            faults.append(ErrorLocation(location=".".join(map(str, ("config", *place))), message=one.message))
        return kind, None


def _unknown_kind(raw: dict[str, Any]) -> ErrorLocation:
    run = raw.get("run")
    if any_kind_of(run) is not None and not trains(run):
        message = f"`{run}` is started by its evaluation, and cannot be started alone"
        return ErrorLocation(location="config.run", message=message)
    if trains(run):
        method = raw.get("method")
        what = "needs a method" if method is None else f"`{method}` is not a method that is installed here"
        return ErrorLocation(location="config.method", message=what + _nearest(method, [*methods()]))
    what = "needs a run kind" if run is None else f"`{run}` is not a method or a run kind"
    return ErrorLocation(location="config.run", message=what + _nearest(run, [kind.key for kind in run_kinds()]))


def _nearest(word: object, known: list[str]) -> str:
    """The nearest one, or else all of them."""
    return did_you_mean(str(word), known) or f"; known: {', '.join(known)}"


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
