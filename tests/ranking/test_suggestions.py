"""A judge's suggestion to annotators: what it is, whether it was in sight, and how far people then agree with it."""

from __future__ import annotations

from typing import Any

import pytest
from ranking_world import NAMES, PROJECT, Annotator, RankingWorld
from sqlalchemy import select

from steerboard.evaluation.judge_tables import Judge, Verdict
from steerboard.evaluation.tables import Entrant, Evaluation
from steerboard.platform.database import transaction


def judge(world: RankingWorld, style: str, *verdicts: tuple[int, str, str | None, float | None], **more: Any) -> None:
    """(position, entrant, its rival, value) of a judge who is called like an entrant."""
    with transaction(world.sessions) as session:
        evaluation = session.scalars(select(Evaluation)).one()
        made = Judge(
            evaluation_id=evaluation.id, name=NAMES[4], style=style, model="gpt-9", settings={}, created_by="test"
        )
        session.add(made)
        session.flush()
        ids = {entrant.name[0]: entrant.id for entrant in session.scalars(select(Entrant))}
        session.add_all(
            Verdict(
                judge_id=made.id,
                position=position,
                a=ids[a],
                b=ids[b] if b else None,
                value=value,
                status="unparsed" if value is None else "ok",
                **{"turn": 1, "weight": 1, "superseded": False} | more,
            )
            for position, a, b, value in verdicts
        )


def by_place(task: Any, values: dict[str, Any]) -> list[Any]:
    """Values by key, in the order of the entrants z, w, h."""
    keys = {int(answer["turns"][0].split()[2]): answer["key"] for answer in task["answers"]}
    return [values[keys[place]] for place in sorted(keys)]


def suggested(world: RankingWorld, **given: Any) -> Any:
    campaign = world.campaign(judge=NAMES[4], **given)
    assert campaign["judge"] == NAMES[4]
    return world.annotator("ann").first(campaign)


def test_no_judge_is_shown_unless_the_campaign_chose_one(world: RankingWorld) -> None:
    world.evaluation(prompts=1)
    judge(world, "single", (0, "z", None, 9.0), (0, "w", None, 4.0), (0, "h", None, 4.0))
    campaign = world.campaign()
    ann = world.annotator("ann")
    task = ann.first(campaign)
    assert (campaign["judge"], task["suggestion"]) == (None, None)
    assert world.owner.get(world.path(campaign, "/quality")).json()["suggestions"] is None
    missing = world.owner.patch(world.path(campaign), json={"judge": "nobody"})
    assert (missing.status_code, missing.json()["code"]) == (404, "unknown_judge")
    assert world.owner.patch(world.path(campaign), json={"judge": NAMES[4]}).json()["judge"] == NAMES[4]
    assert ann.first(campaign)["suggestion"] is not None
    assert world.owner.patch(world.path(campaign), json={"judge": ""}).json()["judge"] is None
    assert ann.first(campaign)["suggestion"] is None
    world.campaign(task_type="correction", entrants=["heron-dt"], judge=NAMES[4], status=422)
    fixes = world.campaign(task_type="correction", entrants=["heron-dt"])
    refused = world.owner.patch(world.path(fixes), json={"judge": NAMES[4]})
    assert refused.json()["code"] == "no_suggestions"


def test_scores_are_suggested_with_the_order_that_follows_from_them(world: RankingWorld) -> None:
    world.evaluation(prompts=1)
    judge(world, "single", (0, "z", None, 9.0), (0, "w", None, 4.0), (0, "h", None, 4.0))
    task = suggested(world)
    assert by_place(task, task["suggestion"]["scores"]) == [9.0, 4.0, 4.0]
    assert by_place(task, task["suggestion"]["ranks"]) == [1, 2, 2]


@pytest.mark.parametrize(
    ("verdicts", "ranks"),
    [
        # Every two were compared.
        ([("z", "w", 0.0), ("w", "h", 1.0), ("h", "z", 0.0)], [2, 1, 3]),
        # All others with one.
        ([("z", "h", 0.0), ("w", "h", 1.0)], [3, 1, 2]),
        # Not all of them.
        ([("z", "w", 1.0)], None),
        ([("z", "w", 1.0), ("w", "h", None), ("z", "h", None)], None),
    ],
)
def test_comparisons_are_suggested_as_an_order(
    world: RankingWorld, verdicts: list[tuple[str, str, float | None]], ranks: list[int] | None
) -> None:
    world.evaluation(prompts=1)
    judge(world, "alpaca_eval", *((0, a, b, value) for a, b, value in verdicts))
    suggestion = (task := suggested(world))["suggestion"]
    assert (by_place(task, suggestion["ranks"]) if suggestion else None) == ranks
    assert suggestion is None or suggestion["scores"] is None


def test_two_orders_that_contradict_each_other_suggest_a_tie(world: RankingWorld) -> None:
    world.evaluation(prompts=1, names=NAMES[:2])
    judge(world, "pairwise", (0, "z", "w", 1.0), a_first=True)
    with transaction(world.sessions) as session:
        first = session.scalars(select(Verdict)).one()
        columns = {
            name: getattr(first, name) for name in ("judge_id", "position", "turn", "a", "b", "weight", "status")
        }
        session.add(Verdict(**columns, a_first=False, value=0.0, superseded=False))
    task = suggested(world, task_type="pairwise")
    assert by_place(task, task["suggestion"]["ranks"]) == [1, 1]


def submit(person: Annotator, campaign: Any, ranks: list[int], visible: bool | None) -> Any:
    """`ranks` of z, w, h."""
    task = person.first(campaign)
    places = [int(answer["turns"][0].split()[2]) for answer in task["answers"]]
    done = person.submit(task, [ranks[place] for place in places], suggestion_visible=visible)
    assert done.status_code == 200, done.text
    return task


def test_agreement_with_the_judge_is_apart_for_submissions_that_saw_it(world: RankingWorld) -> None:
    world.evaluation(prompts=3)
    scores = [(at, name, None, score) for at in (0, 1) for name, score in (("z", 9.0), ("w", 5.0), ("h", 5.0))]
    judge(world, "single", *scores)
    campaign = world.campaign(judge=NAMES[4], overlap=2)
    ann, bob = world.annotator("ann"), world.annotator("bob")
    tasks = [submit(ann, campaign, [1, 2, 3], True) for _ in range(3)]
    without = [task for task in tasks if task["suggestion"] is None]
    assert len(without) == 1
    for visible in (False, None, False):
        submit(bob, campaign, [2, 1, 2], visible)
    suggestions = world.owner.get(world.path(campaign, "/quality")).json()["suggestions"]
    intervals = {
        name: [suggestions[name].pop(f"agreement_{end}") for end in ("low", "high")] for name in ("visible", "hidden")
    }
    assert intervals["visible"][1] == 1.0
    assert intervals["hidden"][0] < 0.25 < intervals["hidden"][1]
    assert suggestions == {
        "judge": NAMES[4],
        # The judge orders z before w and before h, and has no view of the third item.
        "visible": {"submissions": 2, "pairs": 4, "agreement": 1.0},
        "hidden": {"submissions": 2, "pairs": 4, "agreement": 0.25},
    }
    kept = world.owner.get(world.path(campaign, "/rankings")).json()["items"]
    assert {row["suggestion_visible"] for row in kept if row["annotator"] == "ann"} == {True}
    assert [row["suggestion_visible"] for row in kept if row["annotator"] == "bob"].count(None) == 1
    item = world.owner.get(f"{PROJECT}/evaluations/quokka-eval/items/0").json()
    assert [row["suggestion_visible"] for row in item["rankings"]] in ([True, False], [True, None])
    again = ann.undo(tasks[0]).json()
    assert again["draft"]["suggestion_visible"] is True
    told = "".join(text for person in (ann, bob) for text in person.said).lower()
    assert [name for name in (*NAMES, "gpt-9") if name in told] == []


def test_the_suggestion_of_a_judge_that_is_gone_is_gone(world: RankingWorld) -> None:
    world.evaluation(prompts=1)
    judge(world, "single", (0, "z", None, 9.0), (0, "w", None, 4.0), (0, "h", None, 1.0))
    campaign = world.campaign(judge=NAMES[4])
    ann = world.annotator("ann")
    assert ann.first(campaign)["suggestion"] is not None
    removed = world.owner.delete(f"{PROJECT}/evaluations/quokka-eval/judges/{NAMES[4]}")
    assert removed.status_code == 204, removed.text
    assert ann.first(campaign)["suggestion"] is None
    assert world.figures(campaign)["judge"] is None
