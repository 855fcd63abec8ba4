"""Judges that check each answer against yes or no questions with weights."""

from __future__ import annotations

from typing import Any

import pytest
from judge_world import JudgeWorld, completion, post, saying
from known_pairs import calibrate, pairs

from steerboard.evaluation.judges.verdict_parser import criteria_met

RUBRIC = [{"question": "Is it polite?", "weight": 3}, {"question": "Is it short?"}]


@pytest.mark.parametrize(
    ("text", "score"),
    [
        ("Good.\n1: yes\n2: yes", 10),
        ("1: Yes.\n2: no", 7.75),
        ("**1**: no\n- 2: **yes**", 3.25),
        ("1) no\nCriterion 2: no", 1),
        ("1: yes\n2: yes, but\n\nIn the end:\n1: no\n2: no", 1),
        ("<think>1: yes\n2: yes</think>1: no\n2: no", 1),
        ("1: yes", None),
        ("1: yes\n2: perhaps", None),
        ("In 1: yes and 2: no", None),
        ("", None),
    ],
)
def test_the_score_is_the_share_of_the_weights_that_is_met(text: str, score: float | None) -> None:
    assert criteria_met(text, [3, 1]) == score


def test_each_answer_is_asked_about_every_question(world: JudgeWorld) -> None:
    world.evaluation(prompts=2, turns=2, category="math", reference=True)
    world.server.answer = saying("1: yes\n2: no")
    judged = world.judged("rubric", name="one", rubric=RUBRIC, criteria="kindness")
    assert (judged["ok"], judged["valid"]) == (8, True)
    assert {verdict["value"] for verdict in world.verdicts("one")} == {7.75}
    system, user = (message["content"] for message in world.server.seen[-1].json["messages"])
    assert "considering kindness" in system
    for shown in ("1: Is it polite?\n2: Is it short?", "and then 2?", "says", "truth 2"):
        assert shown in user
    (report,) = world.client.get("/api/v1/projects/default/evaluations/e/report").json()["judges"]
    assert report["comparison"]["scores"][0]["mean"]["value"] == pytest.approx(7.75)


def test_a_rubric_is_calibrated_with_its_questions(world: JudgeWorld) -> None:
    world.evaluation(prompts=1)
    pairs(world)
    world.server.answer = lambda seen: completion(
        f"1: {'yes' if 'good' in seen.json['messages'][1]['content'] else 'no'}\n2: no"
    )
    world.judged("rubric", name="one", rubric=RUBRIC)
    assert calibrate(world, "one").status_code == 201
    world.work()
    (report,) = world.client.get("/api/v1/projects/default/evaluations/e/report").json()["judges"]
    (calibration,) = report["quality"]["calibrations"]
    assert calibration["accuracy"]["value"] == 1.0


@pytest.mark.parametrize(
    ("style", "how", "said"),
    [("rubric", {}, "is missing"), ("single", {"rubric": RUBRIC}, "is only for style rubric")],
)
def test_a_rubric_and_its_style_belong_together(world: JudgeWorld, style: str, how: dict[str, Any], said: str) -> None:
    world.evaluation()
    refused = post(world, {"style": style, "endpoint": "gpt-judge", "settings": how})
    assert refused.status_code == 422
    (fault,) = refused.json()["errors"]
    assert fault["location"] == "body.settings.rubric"
    assert said in fault["message"]
