"""Datasets, models, rewards and documents from a stage's finished files, in the transaction that ends the run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from sqlalchemy import delete, exists, or_, select
from sqlalchemy.orm import Session

from steerboard.accounts.tables import Project
from steerboard.datasets import service as datasets
from steerboard.datasets.held_out_changes import inherited_changes
from steerboard.datasets.tables import Dataset
from steerboard.platform.storage.artifacts import ArtifactStore
from steerboard.registry import service as registry
from steerboard.registry.folders import check_folder, read_info
from steerboard.registry.tables import Model
from steerboard.runs import hooks
from steerboard.runs.errors import StageCrashed, UnusableInput
from steerboard.runs.inputs import MAIN_MODEL
from steerboard.runs.tables import LivePairRow, Pipeline, Run, RunOutput
from steerboard_contracts.run_kinds.combine import CombineConfig
from steerboard_contracts.run_kinds.grade import GradeConfig
from steerboard_contracts.stage.outputs import (
    AcademicOutput,
    AnswersOutput,
    BenchmarkOutput,
    CombinationOutput,
    DatasetOutput,
    GgufOutput,
    ModelOutput,
    PairsOutput,
    ResponseRewardsOutput,
    ResponsesOutput,
    RewardsOutput,
    SelectionOutput,
    StageOutput,
    VerdictsOutput,
)
from steerboard_files.texts import storable

Things = dict[str, Dataset | Model]


def upload(store: ArtifactStore, outputs: list[StageOutput], folder: Path) -> None:
    """Bring large files into the store before the transaction, which then finds them there and stays short."""
    for output in outputs:
        if isinstance(output, ModelOutput):
            check_folder(inside(folder, output.path))
        if isinstance(output, ModelOutput | PairsOutput | GgufOutput):
            store.put_folder(inside(folder, output.path))


def inside(folder: Path, name: str) -> Path:
    """The path that a stage gives for an output. Raises `StageCrashed` when that is outside of its folder."""
    path = (folder / name).resolve()
    if not path.is_relative_to(folder.resolve()):
        raise StageCrashed(f"the stage names an output outside of its folder: {name!r}")
    return path


def register(
    session: Session,
    store: ArtifactStore,
    run: Run,
    inputs: Things,
    outputs: list[StageOutput],
    folder: Path,
) -> None:
    """Write every output of a stage and its `run_outputs` row. `run` is locked; paths are relative to `folder`.

    Raises what the registering services raise: rewards that are missing or not finite, unsafe model files, ...
    """
    project = session.get_one(Project, run.project_id)
    for output in outputs:
        path = inside(folder, output.path)
        row = RunOutput(run_id=run.id, name=output.name, type=output.type)
        if isinstance(output, ModelOutput):
            row.model_id = _model(session, store, project, run, inputs, output, path).id
        elif isinstance(output, DatasetOutput):
            row.dataset_id = datasets.register_rows(
                session,
                project,
                name=output_name(session, run),
                kind=output.kind,
                path=path,
                run_id=run.id,
                origin={"run": run.kind, **inherited_changes(*_datasets(inputs))},
            ).id
        elif isinstance(output, RewardsOutput):
            row.dataset_id = _labelled(session, project, run, inputs, path).id
        elif isinstance(output, PairsOutput):
            row.artifact_hash = registry.store_folder(session, store, path).hash
            row.document = {"pairs": output.pairs, "steps": output.steps}
            session.execute(delete(LivePairRow).where(LivePairRow.run_id == run.id))
        elif isinstance(output, GgufOutput):
            row.artifact_hash = registry.store_folder(session, store, path).hash
            row.document = output.result.model_dump(mode="json")
        elif isinstance(output, ResponsesOutput):
            row.document = {"responses": hooks.store_responses(session, run, path)}
        elif isinstance(output, ResponseRewardsOutput):
            hooks.store_response_rewards(session, run, output, path)
            row.document = {"responses": output.rows, **output.found.model_dump(mode="json", exclude={"margins"})}
        elif isinstance(output, VerdictsOutput):
            row.document = {"comparisons": hooks.store_verdicts(session, run, path)}
        else:
            row.document = _document(output, path)
        session.add(row)
    session.flush()


def _datasets(inputs: Things) -> list[Dataset]:
    return [thing for thing in inputs.values() if isinstance(thing, Dataset)]


def output_name(session: Session, run: Run, role: str | None = None) -> str:
    """`PIPELINE.STAGE`, or the run's own name outside a pipeline; with a bit of the run's id where that is taken. A
    further model of the run has its `role` at the end."""
    pipeline = session.get(Pipeline, run.pipeline_id) if run.pipeline_id else None
    name = f"{pipeline.name}.{run.name}" if pipeline else run.name
    name = f"{name}.{role}" if role else name
    taken = session.scalar(
        select(
            or_(
                exists().where(Model.project_id == run.project_id, Model.name == name),
                exists().where(Dataset.project_id == run.project_id, Dataset.name == name),
            )
        )
    )
    return f"{name[:119]}-{run.id.hex[-8:]}" if taken else name


def _model(
    session: Session,
    store: ArtifactStore,
    project: Project,
    run: Run,
    inputs: Things,
    output: ModelOutput,
    path: Path,
) -> Model:
    further = output.name != MAIN_MODEL
    if further and output.name != output.role:
        raise StageCrashed(f"the stage returned a model of role {output.role} under the name {output.name!r}")
    parent = inputs.get(output.name, inputs.get("model"))
    # A folder imported as a base may be a policy of its own method, which the run knows nothing of.
    method = read_info(path).method
    return registry.register_model(
        session,
        store,
        project,
        name=output_name(session, run, output.role if further else None),
        folder=path,
        role=output.role,
        method=method,
        parent_id=parent.id if isinstance(parent, Model) else None,
        run_id=run.id,
    )


def _labelled(session: Session, project: Project, run: Run, inputs: Things, path: Path) -> Dataset:
    if run.kind == "combine":
        return _combined(session, project, run, inputs, path)
    data, reward = inputs.get("data"), inputs.get("reward")
    if not isinstance(data, Dataset):
        raise UnusableInput(f"run {run.name} made rewards, but has no dataset `data` as an input")
    if run.kind == "grade":
        source = datasets.imported_source(session, project, _grader(run))
    elif isinstance(reward, Model) and run.config.get("aggregate"):
        # They are on another scale than the model's own rewards.
        source = datasets.imported_source(session, project, f"{reward.name}.{run.config['aggregate']}"[:120])
    elif isinstance(reward, Model):
        source = datasets.reward_source_for_model(session, project, reward.name, reward.id)
    else:
        raise UnusableInput(f"run {run.name} made rewards, but has no model `reward` as an input")
    datasets.record_rewards(session, data, source, path)
    labelled = datasets.pin_labelled(
        session, project, name=output_name(session, run), dataset=data, source=source, run_id=run.id
    )
    session.flush()
    return labelled


def _grader(run: Run) -> str:
    """Who gave the grades: with noise every run gives others."""
    config = GradeConfig.model_validate(run.config)
    return f"{config.quality}-noisy-{run.id.hex[-8:]}" if config.noise else config.quality


def _combined(session: Session, project: Project, run: Run, inputs: Things, path: Path) -> Dataset:
    """A dataset over the rows of the first of the labelled datasets, whose rows are those of the others."""
    config = CombineConfig.model_validate(run.config)
    given = [inputs.get(f"data.{place}") for place in range(len(inputs))]
    data = [
        dataset for dataset in given if isinstance(dataset, Dataset) and dataset.reward_source_id and dataset.normaliser
    ]
    if len(data) != len(given) or not data:
        raise UnusableInput(f"run {run.name} made rewards, but has no labelled datasets `data` as inputs")
    name = output_name(session, run)
    weights = config.weights or [1.0] * len(data)
    source = datasets.combined_source(session, project, name, data, weights)
    datasets.record_rewards(session, data[0], source, path)
    labelled = datasets.pin_labelled(session, project, name=name, dataset=data[0], source=source, run_id=run.id)
    session.flush()
    return labelled


def _document(
    output: AnswersOutput | BenchmarkOutput | AcademicOutput | SelectionOutput | CombinationOutput, path: Path
) -> dict[str, Any]:
    """The file as an object that Postgres stores."""
    document = storable(json.loads(path.read_bytes()))
    return {"answers": document} if isinstance(output, AnswersOutput) else dict(document)
