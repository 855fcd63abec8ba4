"""Whether a run that someone asks for can be started: its config, and which of its inputs are given."""

from __future__ import annotations

from typing import Any

from pydantic import ValidationError
from sqlalchemy.orm import Session

from steerboard.accounts.tables import Project
from steerboard.platform.storage.artifacts import ArtifactStore
from steerboard.runs.errors import NoTrainingRows
from steerboard.runs.launch.catalogue import ProjectCatalogue
from steerboard.runs.launch.lookup import Catalogue, KnownDataset, KnownModel
from steerboard.runs.launch.stage_check import ResolvedStage, stage_faults
from steerboard.runs.schemas.requests import RunWork
from steerboard.runs.standalone.given_inputs import given_inputs
from steerboard.runs.state.lifecycle import InputRef
from steerboard_contracts.complaints import complaints, did_you_mean
from steerboard_contracts.errors import BadInput, ErrorLocation
from steerboard_contracts.files.local_folders import LocalFolders
from steerboard_contracts.methods import methods
from steerboard_contracts.run_config import RUN_CONFIG, RunConfig
from steerboard_contracts.run_kinds import ASKED_FOR, any_kind_of, kind_of, run_kinds
from steerboard_contracts.specs.run_kind import RunKindSpec


class InvalidRun(BadInput):
    """The config or the inputs of a run that someone asked for do not fit its kind; nothing was started."""

    code = "invalid_run"
    title = "The run cannot be started"


def checked(
    session: Session,
    project: Project,
    work: RunWork,
    folders: LocalFolders | None = None,
    store: ArtifactStore | None = None,
) -> tuple[RunConfig, dict[str, InputRef]]:
    """The config with its defaults, and the inputs by id, without models from outside. Raises `InvalidRun` with every
    fault by field, and `NoTrainingRows` where that is the only one.

    `folders`: which folders of this machine may be read for the caller; with None, none. `store`: where the files of
    models are; without it their tokenizers are left to the run."""
    catalogue = ProjectCatalogue(session, project, folders, store)
    faults: list[ErrorLocation] = []
    work = _endpoint_apart(work, catalogue)
    kind, config = _config(work.config, faults)
    given: dict[str, KnownDataset | KnownModel | None] = {}
    codes: set[str | None] = {None} if faults else set()
    if kind is not None:
        given = given_inputs(kind, work.inputs, catalogue, faults)
        codes |= {None} if faults else set()
        for fault in stage_faults(ResolvedStage(kind, config, work.config, given), catalogue):
            codes.add(fault.code)
            faults.append(ErrorLocation(location=".".join(fault.place) or "inputs", message=fault.message))
    if config is not None and kind is not None and kind.run == "base":
        try:
            config = config.model_copy(update=catalogue.pinned(work.config["source"])._asdict())
        except BadInput as error:
            codes.add(error.code)
            faults.append(ErrorLocation(location="config.source", message=error.detail))
    if codes == {NoTrainingRows.code}:
        raise NoTrainingRows(
            faults[0].message,
            errors=faults,
            hint="Nothing was started. Add prompts that the project does not hold out. Pairs from rankings can be made "
            "again with all of them for training.",
        )
    if faults or config is None:
        code = next(iter(codes)) if len(codes) == 1 else None
        raise InvalidRun("the run cannot be started", errors=faults, hint="Nothing was started.", code=code)
    return config, {name: _ref(value) for name, value in given.items() if value is not None}


def _ref(given: KnownDataset | KnownModel) -> InputRef:
    return InputRef(dataset=given.id) if isinstance(given, KnownDataset) else InputRef(model=given.id)


def _endpoint_apart(work: RunWork, catalogue: Catalogue) -> RunWork:
    """An endpoint may be named where some kinds want their model: it goes into the config, as it is not an input that
    could be handed to a stage."""
    kind = kind_of(work.config.get("run"), work.config.get("method"))
    named, ref = work.config.get("endpoint"), work.inputs.get("model")
    if kind is None or kind.asks_endpoint is None or named is not None or ref is None:
        return work
    if not catalogue.has_endpoint(ref):
        return work
    inputs = {name: value for name, value in work.inputs.items() if name != "model"}
    return work.model_copy(update={"config": {**work.config, "endpoint": ref}, "inputs": inputs})


def _config(raw: dict[str, Any], faults: list[ErrorLocation]) -> tuple[RunKindSpec | None, RunConfig | None]:
    kind = kind_of(raw.get("run"), raw.get("method"))
    if kind is None:
        faults.append(_unknown_kind(raw))
        return None, None
    try:
        return kind, RUN_CONFIG.validate_python(kind.config.model_validate(raw))
    except ValidationError as error:
        for complaint in complaints(error, raw, kind.config):
            # A form shows what is missing where it would be.
            place = complaint.place if complaint.missing is None else (*complaint.place, complaint.missing)
            faults.append(ErrorLocation(location=".".join(map(str, ("config", *place))), message=complaint.message))
        return kind, None


def _unknown_kind(raw: dict[str, Any]) -> ErrorLocation:
    run = raw.get("run")
    if any_kind_of(run) is not None and run != "train":
        by = "an endpoint of its own" if run in ASKED_FOR else "its evaluation"
        message = f"`{run}` is started by {by}, and cannot be started alone"
        return ErrorLocation(location="config.run", message=message)
    if run == "train":
        method = raw.get("method")
        what = "needs a method" if method is None else f"`{method}` is not a method that is installed here"
        return ErrorLocation(location="config.method", message=what + _nearest(method, [*methods()]))
    what = "needs a run kind" if run is None else f"`{run}` is not a method or a run kind"
    return ErrorLocation(location="config.run", message=what + _nearest(run, [kind.key for kind in run_kinds()]))


def _nearest(word: object, known: list[str]) -> str:
    """The nearest one, or else all of them."""
    return did_you_mean(str(word), known) or f"; known: {', '.join(known)}"
