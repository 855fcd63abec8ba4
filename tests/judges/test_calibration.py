"""Judges on pairs whose better side is known, before their word counts."""

from __future__ import annotations

from typing import Any

import pytest
from judge_world import PROJECT, JudgeWorld, completion
from known_pairs import calibrate, pairs
from sqlalchemy import select

from steerboard.evaluation.judge_tables import Judge
from steerboard.platform.database import transaction
from support.servers.other_server import Answer, Seen

E = f"{PROJECT}/evaluations/e"


def knowing(seen: Seen) -> Answer:
    """Prefers good answers, except to the questions 0 to 4, in the format of pairwise."""
    text = seen.json["messages"][1]["content"]
    first = text.index("good") < text.index("bad") if "good" in text and "bad" in text else True
    wrong = any(f"Question {at}?" in text for at in range(5))
    return completion("[[A]]" if first != wrong else "[[B]]")


def report(world: JudgeWorld) -> Any:
    return world.client.get(f"{E}/report").json()["judges"][0]


def test_a_judge_is_right_on_a_share_of_the_known_pairs(world: JudgeWorld) -> None:
    world.evaluation(prompts=8)
    pairs(world)
    world.server.answer = knowing
    world.judged("pairwise", name="one")
    assert report(world)["quality"]["calibrations"] == []
    made = calibrate(world, "one")
    assert made.status_code == 201, made.text
    assert made.json()["evaluation"] == "calibration-pairs"
    world.work()
    (calibration,) = report(world)["quality"]["calibrations"]
    assert (calibration["dataset"], calibration["pairs"], calibration["accuracy"]["n"]) == ("pairs", 20, 20)
    assert calibration["accuracy"]["value"] == pytest.approx(0.75)
    asked = len(world.server.seen)
    again = calibrate(world, "one").json()
    assert again["judge"]["id"] == made.json()["judge"]["id"]
    assert len(world.server.seen) == asked


def test_a_judge_of_another_manner_is_calibrated_by_itself(world: JudgeWorld) -> None:
    world.evaluation(prompts=8)
    pairs(world)
    world.server.answer = knowing
    world.judged("pairwise", name="one")
    world.judged("pairwise", name="two", criteria="Be kind.")
    calibrate(world, "one", limit=5)
    world.work()
    made = calibrate(world, "two", limit=5).json()
    assert made["evaluation"] == "calibration-pairs"
    one, two = world.client.get(f"{E}/report").json()["judges"]
    assert (len(one["quality"]["calibrations"]), two["quality"]["calibrations"]) == (1, [])


def test_a_judge_does_not_count_before_it_has_passed_its_calibration(world: JudgeWorld) -> None:
    world.evaluation(prompts=8)
    pairs(world)
    world.server.answer = knowing
    world.judged("pairwise", name="one", calibration_threshold=0.5)
    before = report(world)
    assert (before["valid"], before["comparison"]["winner"]) == (False, None)
    assert "has not been calibrated" in before["invalid_because"]
    judge = world.look("one")
    assert (judge["valid"], judge["invalid_because"]) == (False, before["invalid_because"])
    rule = {"metric": "win_rate", "entrant": "bert", "by": "judge", "op": ">", "value": 0.5}
    (decided,) = world.client.post(f"{E}/gate", json={"rules": [rule]}).json()["rules"]
    said = f"judge one is not valid: {before['invalid_because']}"
    assert (decided["outcome"], decided["why"]) == ("invalid", said)
    assert any(warning.startswith("not valid: it has not been calibrated") for warning in before["warnings"])
    calibrate(world, "one")
    world.work()
    assert report(world)["valid"]
    assert (world.look("one")["valid"], world.look("one")["invalid_because"]) == (True, None)


def test_a_judge_that_fails_its_calibration_stays_invalid(world: JudgeWorld) -> None:
    world.evaluation(prompts=8)
    pairs(world)
    world.server.answer = knowing
    world.judged("pairwise", name="one", calibration_threshold=0.8)
    calibrate(world, "one")
    world.work()
    judge = report(world)
    assert not judge["valid"]
    said = "accuracy on 20 known pairs of pairs is 75.0% (95% interval from 53.1%), and has to be at least 80%"
    assert judge["invalid_because"] == world.look("one")["invalid_because"] == said


def test_a_judge_has_to_pass_on_every_set_by_the_lower_end_and_on_the_largest_draw(world: JudgeWorld) -> None:
    world.evaluation(prompts=8)
    pairs(world, 20, "even")
    pairs(world, 20, "easy")
    world.server.answer = lambda seen: completion("[[A]]" if _first_is_good(seen) else "[[B]]")
    world.judged("pairwise", name="one", calibration_threshold=0.8)
    calibrate(world, "one", dataset="easy", limit=10)
    world.work()
    assert "10 known pairs of easy is 100.0% (95% interval from 72.2%)" in report(world)["invalid_because"]
    calibrate(world, "one", dataset="easy")
    world.work()
    assert report(world)["valid"]
    world.server.answer = lambda seen: completion("nothing to tell")
    calibrate(world, "one", dataset="even", seed=1)
    world.work()
    judge = report(world)
    assert (judge["valid"], "pairs of even cannot be used" in judge["invalid_because"]) == (False, True)


STYLES = [
    ("multi", {"blind": False}),
    ("multi", {"blind": True}),
    ("pairwise", {"both_orders": False}),
    ("pairwise", {"both_orders": True}),
    ("alpaca_eval", {"baseline": "bert"}),
    ("arena_hard", {"baseline": "bert", "both_orders": False}),
    ("arena_hard", {"baseline": "bert", "both_orders": True}),
]


@pytest.mark.parametrize(("style", "how"), STYLES)
def test_a_judge_is_not_told_which_side_is_right(world: JudgeWorld, style: str, how: dict[str, Any]) -> None:
    world.evaluation(prompts=1)
    pairs(world)
    world.server.answer = _fair
    world.judged(style, name="one", **how)
    before = len(world.server.seen)
    made = calibrate(world, "one").json()
    world.work()
    asked = world.server.seen[before:]
    texts = [message["content"].lower() for seen in asked for message in seen.json["messages"]]
    assert not [text for text in texts if "chosen" in text or "rejected" in text]
    # By a drawn order neither side is always the first.
    assert 0.2 < sum(_first_is_good(seen) for seen in asked) / len(asked) < 0.8
    (calibration,) = report(world)["quality"]["calibrations"]
    assert (calibration["accuracy"]["n"], calibration["accuracy"]["value"]) == (20, 1.0)
    # The order is the same every time, so that the same questions are known.
    path = f"{PROJECT}/evaluations/{made['evaluation']}/judges/{made['judge']['name']}"
    assert world.client.delete(path).status_code == 204
    calibrate(world, "one")
    world.work()
    assert len(world.server.seen) == before + len(asked)
    assert len(report(world)["quality"]["calibrations"]) == 1


def test_a_judge_that_was_shown_the_names_has_proved_nothing(world: JudgeWorld) -> None:
    """Added to the pairs by hand, or calibrated by a former version."""
    world.evaluation(prompts=8)
    pairs(world)
    world.server.answer = _fair
    world.judged("multi", name="one", blind=False, calibration_threshold=0.5)
    made = calibrate(world, "one").json()
    world.work()
    assert report(world)["valid"]
    by_hand = world.judged("multi", evaluation=made["evaluation"], name="by-hand", blind=False)
    assert by_hand["settings"]["blind"]
    with transaction(world.sessions) as session:
        known = session.scalars(select(Judge).where(Judge.id.in_([made["judge"]["id"], by_hand["id"]]))).all()
        for judge in known:
            judge.settings = judge.settings | {"blind": False}
    assert calibrate(world, "one").json()["judge"]["id"] not in (made["judge"]["id"], by_hand["id"])
    assert not world.look("one")["valid"]


def _fair(seen: Seen) -> Answer:
    """Prefers good answers, in the format of every style that compares."""
    system, first = seen.json["messages"][0]["content"], _first_is_good(seen)
    if "m or M" in system:
        return completion("m" if first else "M")
    if "[[A>>B]]" in system:
        return completion("[[A>B]]" if first else "[[B>A]]")
    if "one by one after all" in system:
        return completion("A: 9\nB: 2\nanna: 5\nbert: 5" if first else "A: 2\nB: 9\nanna: 5\nbert: 5")
    return completion("[[A]]" if first else "[[B]]")


def _first_is_good(seen: Seen) -> bool:
    text = seen.json["messages"][1]["content"]
    return "good" in text and "bad" in text and text.index("good") < text.index("bad")


def test_what_cannot_calibrate_a_judge_is_refused(world: JudgeWorld) -> None:
    world.evaluation(prompts=1)
    world.judged("single", name="one")
    assert calibrate(world, "one").json()["code"] == "not_found"
    rows = b'{"prompt": "a", "response": "b"}\n'
    world.client.post(f"{PROJECT}/datasets/import", data={"name": "pairs"}, files={"file": ("rows.jsonl", rows)})
    assert calibrate(world, "one").json()["code"] == "wrong_kind"
