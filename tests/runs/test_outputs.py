"""What a stage made becomes datasets, rewards and documents together with the change of state, or not at all."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

import pytest
from run_world import World
from sqlalchemy import func, select

from steerboard.accounts.tables import Project
from steerboard.datasets import service as datasets
from steerboard.datasets.tables import Dataset, Reward
from steerboard.platform.artifacts import ArtifactStore
from steerboard.platform.database import transaction
from steerboard.registry.tables import Model
from steerboard.runs import claims, endings, inputs, outputs, sweeper
from steerboard.runs.claims import Claim
from steerboard.runs.errors import StageCrashed
from steerboard.runs.lifecycle import InputRef
from steerboard.runs.tables import Pipeline, Run, RunOutput
from steerboard_contracts.errors import SteerboardError
from steerboard_contracts.stage import AnswersOutput, DatasetOutput, RewardsOutput, StageOutput

ROWS = [{"prompt": f"Question {number}?", "response": "a" * (number + 1)} for number in range(4)]


class Bench:
    """A world with a place for a stage's files."""

    def __init__(self, world: World, store: ArtifactStore, folder: Path) -> None:
        self.world = world
        self.store = store
        self.folder = folder

    def write(self, name: str, rows: list[Any]) -> str:
        (self.folder / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
        return name

    def dataset(self) -> uuid.UUID:
        with transaction(self.world.sessions) as session:
            project = session.get_one(Project, self.world.project.id)
            path = self.folder / self.write("import.jsonl", ROWS)
            return datasets.import_file(session, project, path=path, name="base", kind="instructions").dataset.id

    def register(self, claim: Claim | None, outs: list[StageOutput]) -> None:
        assert claim is not None
        with transaction(self.world.sessions) as session:
            run = claims.fenced(session, claim)
            outputs.register(session, self.store, run, inputs.resolve(session, run), outs, self.folder)
            endings.succeed(session, run, {}, 2.0)

    def output(self, run_id: uuid.UUID) -> RunOutput:
        with transaction(self.world.sessions) as session:
            return session.scalars(select(RunOutput).where(RunOutput.run_id == run_id)).one()


@pytest.fixture
def bench(world: World, store: ArtifactStore, tmp_path: Path) -> Bench:
    return Bench(world, store, tmp_path)


def score(bench: Bench, name: str = "labelled") -> uuid.UUID:
    with transaction(bench.world.sessions) as session:
        data = session.scalar(select(Dataset.id).where(Dataset.name == "base"))
    refs = {"data": InputRef(dataset=data or bench.dataset()), "reward": InputRef(model=bench.world.model())}
    return bench.world.create(name, config={"run": "score"}, inputs=refs)


def test_generated_rows_become_a_dataset_named_after_pipeline_and_stage(bench: Bench) -> None:
    with transaction(bench.world.sessions) as session:
        pipeline = Pipeline(
            project_id=bench.world.project.id, name="demo-1", recipe={}, recipe_text="", settings={}, created_by="t"
        )
        session.add(pipeline)
        session.flush()
        pipeline_id = pipeline.id
    run_id = bench.world.create("mixture", pipeline_id=pipeline_id)
    path = bench.write("out.jsonl", ROWS)
    bench.register(bench.world.claim(), [DatasetOutput(path=path, kind="instructions", rows=4)])
    with transaction(bench.world.sessions) as session:
        dataset = session.get_one(Dataset, bench.output(run_id).dataset_id)
        assert (dataset.name, dataset.rows, dataset.run_id) == ("demo-1.mixture", 4, run_id)


def test_a_taken_name_does_not_cost_a_finished_run_its_output(bench: Bench) -> None:
    path = bench.write("out.jsonl", ROWS)
    names = []
    for _ in range(2):
        run_id = bench.world.create("mixture")
        bench.register(bench.world.claim(), [DatasetOutput(path=path, kind="instructions", rows=4)])
        with transaction(bench.world.sessions) as session:
            names.append(session.get_one(Dataset, bench.output(run_id).dataset_id).name)
    assert names[0] == "mixture"
    assert names[1].startswith("mixture-")


def test_rewards_become_a_labelled_dataset_with_its_normaliser(bench: Bench) -> None:
    run_id = score(bench)
    path = bench.write("rewards.jsonl", [{"row": row, "value": float(row)} for row in range(4)])
    bench.register(bench.world.claim(), [RewardsOutput(path=path, rows=4)])
    with transaction(bench.world.sessions) as session:
        labelled = session.get_one(Dataset, bench.output(run_id).dataset_id)
        assert (labelled.kind, labelled.rows, labelled.run_id) == ("labelled", 4, run_id)
        assert labelled.normaliser is not None
        assert labelled.normaliser["mean"] == pytest.approx(1.5)


@pytest.mark.parametrize(
    "rewards",
    [
        [{"row": 0, "value": 1.0}],
        [{"row": row, "value": float("nan")} for row in range(4)],
        [{"row": 0, "value": float(row)} for row in range(4)],
    ],
    ids=["missing rows", "not finite", "doubled rows"],
)
def test_rewards_that_do_not_fit_leave_nothing_behind(bench: Bench, rewards: list[dict[str, float]]) -> None:
    run_id = score(bench)
    claim = bench.world.claim()
    with pytest.raises(SteerboardError):
        bench.register(claim, [RewardsOutput(path=bench.write("rewards.jsonl", rewards), rows=4)])
    assert bench.world.state(run_id) == "running"
    with transaction(bench.world.sessions) as session:
        assert session.scalar(select(func.count()).select_from(Reward)) == 0
        assert session.scalars(select(Dataset.name)).all() == ["base"]


def test_answers_are_kept_in_the_run_even_with_characters_that_postgres_refuses(bench: Bench) -> None:
    run_id = bench.world.create("generated", config={"run": "generate", "prompts": ["hi"]})
    (bench.folder / "answers.json").write_text(json.dumps([{"text": "a\x00b \ud800 \\u0000"}]))
    bench.register(bench.world.claim(), [AnswersOutput(path="answers.json")])
    document = bench.output(run_id).document
    assert document is not None
    assert document["answers"][0]["text"] == "a\ufffdb ? \\u0000"


def test_a_method_costs_its_training_and_the_generation_and_scoring_behind_its_data_once(bench: Bench) -> None:
    """generate (3 s) -> mix (5 s) -> score (7 s) -> train (11 s): own 11, shared 10."""
    world = bench.world
    policy = InputRef(model=world.model())
    data = InputRef(dataset=bench.dataset())
    seconds = {}
    generated = world.create("generated", config={"run": "generate"}, inputs={"model": policy, "data": data})
    mixture = world.create("mixture", inputs={"parts.0": generated, "parts.1": data, "parts.2": generated})
    labelled = world.create("labelled", config={"run": "score"}, inputs={"data": mixture, "reward": policy})
    sft = {"run": "train", "method": "sft"}
    trained = world.create("dt", config=sft, inputs={"model": policy, "data": labelled})
    seconds = {generated: 3.0, mixture: 5.0, labelled: 7.0, trained: 11.0}
    for run_id, spent in seconds.items():
        claim = world.claim()
        assert claim is not None
        assert claim.run_id == run_id
        model = world.model(run_id) if run_id == trained else None
        with transaction(world.sessions) as session:
            if model is None:
                made = Dataset(
                    project_id=world.project.id,
                    name=str(run_id),
                    kind="instructions",
                    rows=1,
                    held_out_rows=0,
                    content_hash=str(run_id),
                    origin={},
                    run_id=run_id,
                )
                session.add(made)
                session.flush()
            output = RunOutput(run_id=run_id, name="x", type="x", model_id=model)
            output.dataset_id = made.id if model is None else None
            session.add(output)
            endings.succeed(session, claims.fenced(session, claim), {}, spent)
        sweeper.settle_all(world.sessions)
    with transaction(world.sessions) as session:
        model_row = session.scalars(select(Model).where(Model.run_id == trained)).one()
        assert inputs.training_cost(session, model_row) == (11.0, 10.0)
        assert session.get_one(Run, trained).device_seconds == 11.0


def test_an_output_outside_of_the_stages_folder_is_refused(bench: Bench) -> None:
    bench.world.create("generated", config={"run": "generate", "prompts": ["hi"]})
    with pytest.raises(StageCrashed):
        bench.register(bench.world.claim(), [AnswersOutput(path="../../../etc/hostname")])
