"""Judges on pairs whose better side is known, before their word counts."""

from __future__ import annotations

import json
from typing import Any

import pytest
from judge_world import PROJECT, JudgeWorld, completion

from support.servers.other_server import Answer, Seen

E = f"{PROJECT}/evaluations/e"


def pairs(world: JudgeWorld, number: int = 20, name: str = "pairs") -> None:
    rows = [
        {
            "prompt": f"Question {at}?" + (f" Of {name}." if name != "pairs" else ""),
            "chosen": f"good {at}",
            "rejected": f"bad {at}",
        }
        for at in range(number)
    ]
    content = "".join(json.dumps(row) + "\n" for row in rows).encode()
    made = world.client.post(f"{PROJECT}/datasets/import", data={"name": name}, files={"file": ("rows.jsonl", content)})
    assert made.status_code == 201, made.text


def knowing(seen: Seen) -> Answer:
    """Prefers good answers, except to the questions 0 to 4, in the format of pairwise."""
    text = seen.json["messages"][1]["content"]
    first = text.index("good") < text.index("bad") if "good" in text and "bad" in text else True
    wrong = any(f"Question {at}?" in text for at in range(5))
    return completion("[[A]]" if first != wrong else "[[B]]")


def calibrate(world: JudgeWorld, judge: str, **body: Any) -> Any:
    return world.client.post(f"{E}/judges/{judge}/calibrations", json={"dataset": "pairs", **body})


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
    (found,) = report(world)["quality"]["calibrations"]
    assert (found["dataset"], found["pairs"], found["accuracy"]["n"]) == ("pairs", 20, 20)
    assert found["accuracy"]["value"] == pytest.approx(0.75)
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
    assert any(warning.startswith("not valid: it has not been calibrated") for warning in before["warnings"])
    calibrate(world, "one")
    world.work()
    assert report(world)["valid"]


def test_a_judge_that_fails_its_calibration_stays_invalid(world: JudgeWorld) -> None:
    world.evaluation(prompts=8)
    pairs(world)
    world.server.answer = knowing
    world.judged("pairwise", name="one", calibration_threshold=0.8)
    calibrate(world, "one")
    world.work()
    found = report(world)
    assert not found["valid"]
    said = "accuracy on 20 known pairs of pairs is 75.0% (95% interval from 53.1%), and has to be at least 80%"
    assert found["invalid_because"] == said


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
    found = report(world)
    assert (found["valid"], "pairs of even cannot be used" in found["invalid_because"]) == (False, True)


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
