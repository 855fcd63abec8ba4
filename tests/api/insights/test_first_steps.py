"""What a newcomer has done in a project, and what is next."""

from __future__ import annotations

from api_world import ApiWorld

from steerboard.datasets.tables import Dataset
from steerboard.platform.database import new_id, transaction
from steerboard.playground.tables import Comparison, PlaygroundAnswer
from steerboard.registry.tables import Model
from steerboard_contracts.conditions.condition import Condition


def ask(world: ApiWorld, *, score: float | None, blind: bool = False) -> None:
    with transaction(world.sessions) as session:
        comparison = Comparison(project_id=world.project.id, prompt=[], blind=blind, seed=0, created_by="me", attempt=0)
        session.add(comparison)
        session.flush()
        session.add(
            PlaygroundAnswer(
                comparison_id=comparison.id,
                place=0,
                name="m",
                score=None if score is None else Condition.model_validate(score),
                decoding={},
                seed=0,
                reuse_key=new_id().hex,
                state="succeeded",
                text="",
                tokens=0,
                finished=True,
                reused=False,
            )
        )


def test_only_answers_at_a_score_in_the_playground_count(world: ApiWorld) -> None:
    assert world.get("first-steps")["asked"] is False
    ask(world, score=None)
    ask(world, score=5.0, blind=True)
    assert world.get("first-steps")["asked"] is False
    ask(world, score=5.0)
    assert world.get("first-steps")["asked"] is True


def test_pairs_of_ones_own_count_and_those_of_the_demo_or_of_a_run_do_not(world: ApiWorld) -> None:
    with transaction(world.sessions) as session:
        for dataset in session.query(Dataset):
            session.delete(dataset)
    made = world.dataset("made-by-a-run")
    with transaction(world.sessions) as session:
        session.get_one(Dataset, made).run_id = new_id()
    world.dataset("demo-preferences")
    world.dataset("texts", kind="instructions")
    assert world.get("first-steps")["imported"] is False
    world.dataset("mine")
    assert world.get("first-steps")["imported"] is True


def test_the_newest_model_that_takes_a_score_is_named(world: ApiWorld) -> None:
    assert world.get("first-steps")["steered"] is None
    for name in ("old", "steered", "plain"):
        made = world.model(name, "policy")
        with transaction(world.sessions) as session:
            model = session.get_one(Model, made)
            model.info = {**model.info, "condition": None if name == "plain" else {"attributes": []}}
    assert world.get("first-steps")["steered"] == "steered"


def test_without_a_campaign_there_is_nothing_to_rank(world: ApiWorld) -> None:
    first_steps = world.get("first-steps")
    assert (first_steps["ranked"], first_steps["to_rank"], first_steps["campaign"]) == (0, 5, None)
