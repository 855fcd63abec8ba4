"""What a stage made becomes datasets, rewards and documents together with the change of state, or not at all."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import func, select

from steerboard.accounts.tables import Project
from steerboard.datasets.imports.loading import import_file
from steerboard.datasets.tables import Dataset, Reward, RewardSource
from steerboard.platform.database import transaction
from steerboard.platform.http.errors import NotFound
from steerboard.platform.storage.artifacts import ArtifactStore
from steerboard.registry import service as registry
from steerboard.runs import inputs, queries
from steerboard.runs.errors import StageCrashed
from steerboard.runs.results import lineage, outputs, selections
from steerboard.runs.state import attempt_outcomes, claims, sweeper
from steerboard.runs.state.claims import Claim
from steerboard.runs.state.lifecycle import InputRef
from steerboard.runs.tables import Pipeline, Run, RunOutput
from steerboard_contracts.errors import SteerboardError
from steerboard_contracts.prompts import Normaliser
from steerboard_contracts.stage.outputs import (
    AnswersOutput,
    CombinationOutput,
    DatasetOutput,
    ModelOutput,
    RewardsOutput,
    SelectionOutput,
    StageOutput,
)
from support.models.model_folders import write_model
from support.rows.run_world import World

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
            return import_file(session, project, path=path, name="base", kind="instructions").dataset.id

    def register(self, claim: Claim | None, outs: list[StageOutput]) -> None:
        assert claim is not None
        with transaction(self.world.sessions) as session:
            run = claims.fenced(session, claim)
            outputs.register(session, self.store, run, inputs.resolve(session, run), outs, self.folder)
            attempt_outcomes.succeed(session, run, {}, 2.0)

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


SELECTED = {
    "keep": "all",
    "scale": "raw",
    "penalty": 0.0,
    **dict.fromkeys(("groups", "answers", "kept_groups", "rows", "curve_groups"), 4),
    **{name: {"value": 1.0, "n": 4} for name in ("mean", "best", "unique_texts", "length_gap")},
    "dropped": {},
    "rewards": [],
    "curve": [],
}


COMBINED = {
    "rows": 4,
    "mean": 0.0,
    "sd": 1.0,
    "rewards": [],
    "correlations": {"names": [], "n": 4, "pearson": [], "spearman": []},
    "histogram": [],
}


def test_a_selection_becomes_a_labelled_dataset_with_its_own_rewards_and_a_document(bench: Bench) -> None:
    rows = [
        {**row, "reward": float(n), "source": "generated", "group": n, "candidate": 0} for n, row in enumerate(ROWS)
    ]
    run_id = bench.world.create("kept", config={"run": "select", "keep": "all"})
    outs: list[StageOutput] = [
        DatasetOutput(path=bench.write("rows.jsonl", rows), kind="labelled", rows=4),
        SelectionOutput(path="selection.json"),
    ]
    (bench.folder / "selection.json").write_text(json.dumps(SELECTED))
    bench.register(bench.world.claim(), outs)
    with transaction(bench.world.sessions) as session:
        run = session.get_one(Run, run_id)
        labelled = inputs.output_of(session, run_id)
        assert isinstance(labelled, Dataset)
        assert (labelled.kind, labelled.name, labelled.run_id) == ("labelled", "kept", run_id)
        assert labelled.normaliser is not None
        assert (labelled.normaliser["mean"], labelled.normaliser["n"]) == (1.5, 4)
        values = session.scalars(select(Reward.value).where(Reward.dataset_id == labelled.id).order_by(Reward.row))
        assert values.all() == [0, 1, 2, 3]
        selection = selections.selection_of(session, run)
        assert (selection.groups, selection.mean.value, selection.dropped.total) == (4, 1.0, 0)
        assert [thing for thing, _ in lineage.upstream(session, labelled)] == [run]
        other = bench.world.create("other")
        with pytest.raises(NotFound):
            selections.selection_of(session, session.get_one(Run, other))


def test_combined_rewards_share_the_rows_and_keep_how_each_was_normalised(bench: Bench) -> None:
    """Two imported labelled datasets, as a combine run adds them up: the new one is over the rows of the first."""
    world = bench.world
    given = {"helpful": [1.0, 2.0, 3.0, 4.0], "harmless": [40.0, 0.0, 0.0, 0.0]}
    by = {name: Normaliser.fit(values, name) for name, values in given.items()}
    with transaction(world.sessions) as session:
        project = session.get_one(Project, world.project.id)
        ids = []
        for name, values in given.items():
            labelled = [{**row, "reward": value} for row, value in zip(ROWS, values, strict=True)]
            path = bench.folder / bench.write(f"{name}.jsonl", labelled)
            ids.append(import_file(session, project, path=path, name=name, kind="labelled").dataset.id)
    refs = {f"data.{place}": InputRef(dataset=id_) for place, id_ in enumerate(ids)}
    run_id = world.create("both", config={"run": "combine", "weights": [1.0, -0.5]}, inputs=refs)
    total = [by["helpful"].z(a) - 0.5 * by["harmless"].z(b) for a, b in zip(*given.values(), strict=True)]
    values = bench.write("rewards.jsonl", [{"row": row, "value": value} for row, value in enumerate(total)])
    (bench.folder / "combination.json").write_text(json.dumps(COMBINED))
    bench.register(world.claim(), [RewardsOutput(path=values, rows=4), CombinationOutput(path="combination.json")])
    with transaction(world.sessions) as session:
        made = inputs.output_of(session, run_id)
        assert isinstance(made, Dataset)
        assert (made.name, made.kind, made.base_dataset_id, made.run_id) == ("both", "labelled", ids[0], run_id)
        source = session.get_one(RewardSource, made.reward_source_id)
        kept = select(Reward.value).where(Reward.reward_source_id == source.id).order_by(Reward.row)
        assert session.scalars(kept).all() == total
        assert (source.kind, list((source.weights or {}).values())) == ("weighted", [1.0, -0.5])
        assert Normaliser.model_validate(made.normaliser).parts == [
            by["helpful"].part(1.0),
            by["harmless"].part(-0.5),
        ]
        assert selections.combination_of(session, session.get_one(Run, run_id)).rows == 4


def test_answers_are_kept_in_the_run_even_with_characters_that_postgres_refuses(bench: Bench) -> None:
    run_id = bench.world.create("generated", config={"run": "generate", "prompts": ["hi"]})
    (bench.folder / "answers.json").write_text(json.dumps([{"text": "a\x00b \ud800 \\u0000"}]))
    bench.register(bench.world.claim(), [AnswersOutput(path="answers.json")])
    document = bench.output(run_id).document
    assert document is not None
    assert document["answers"][0]["text"] == "a\ufffdb ? \\u0000"


def test_a_run_gives_each_of_its_models_by_its_role(bench: Bench) -> None:
    """A policy and its critic: two names, one lineage, and inputs that name either."""
    world = bench.world
    with transaction(world.sessions) as session:
        named = {"name": "demo-2", "recipe": {}, "recipe_text": "", "settings": {}, "created_by": "t"}
        pipeline = Pipeline(project_id=world.project.id, **named)
        session.add(pipeline)
        session.flush()
        pipeline_id = pipeline.id
    start, worth = world.model(), world.model()
    models = {"model": InputRef(model=start), "critic": InputRef(model=worth)}
    sft = {"run": "train", "method": "sft"}
    made = world.create("ppo", config=sft, inputs=models, pipeline_id=pipeline_id)
    later = {"model": InputRef(run=made), "critic": InputRef(run=made, output="critic")}
    next_run = world.create("again", config=sft, inputs=later, pipeline_id=pipeline_id)
    outs = [ModelOutput(name=n, path=n, role=r) for n, r in (("model", "policy"), ("critic", "critic"))]
    for out in outs:
        write_model(bench.folder / out.path, out.role, weights=out.path.encode())
    bench.register(world.claim(), list(outs))
    sweeper.settle_all(world.sessions)
    with transaction(world.sessions) as session:
        project = session.get_one(Project, world.project.id)
        policy, critic = (registry.get_model(session, project, f"demo-2.ppo{end}") for end in ("", ".critic"))
        assert (policy.role, policy.parent_id, critic.role, critic.parent_id) == ("policy", start, "critic", worth)
        run = session.get_one(Run, next_run)
        expected = {"model": policy.id, "critic": critic.id}
        assert {name: thing.id for name, thing in inputs.resolve(session, run).items()} == expected
        assert {name: thing.id for name, thing in inputs.resolve_all(session, [run])[next_run].items()} == expected
        detail = queries.detail(session, session.get_one(Run, made))
        assert [(out.name, out.label) for out in detail.outputs] == [
            ("model", "demo-2.ppo"),
            ("critic", "demo-2.ppo.critic"),
        ]
        shown = queries.detail(session, run)
        assert [(given.name, given.label) for given in shown.inputs] == [("critic", "ppo.critic"), ("model", "ppo")]
        assert {thing.id for thing, _ in lineage.upstream(session, run)} == {policy.id, critic.id}
        # Another pipeline that reuses the run has no models of its own name, and still gives both.
        other = Pipeline(project_id=world.project.id, **(named | {"name": "demo-3"}))
        session.add(other)
        session.flush()
        other_id = other.id
    reused = world.create("ppo", config=sft, inputs=models, pipeline_id=other_id, reuse=True)
    assert world.get(reused).reused_from_id == made
    with transaction(world.sessions) as session:
        project = session.get_one(Project, world.project.id)
        assert registry.get_model(session, project, "demo-3.ppo").id == policy.id
        assert registry.get_model(session, project, "demo-3.ppo.critic").id == critic.id


def test_a_further_model_is_called_by_its_role_and_nothing_else(bench: Bench) -> None:
    sft = {"run": "train", "method": "sft"}
    bench.world.create("ppo", config=sft, inputs={"model": InputRef(model=bench.world.model())})
    write_model(bench.folder / "x", "critic")
    with pytest.raises(StageCrashed, match="returned a model of role critic under the name 'judge'"):
        bench.register(bench.world.claim(), [ModelOutput(name="judge", path="x", role="critic")])


def test_an_output_outside_of_the_stages_folder_is_refused(bench: Bench) -> None:
    bench.world.create("generated", config={"run": "generate", "prompts": ["hi"]})
    with pytest.raises(StageCrashed):
        bench.register(bench.world.claim(), [AnswersOutput(path="../../../etc/hostname")])
