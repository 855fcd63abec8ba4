"""Verdicts of judges on the answers of a run, as rewards; which judge may give them; and what asking costs."""

from __future__ import annotations

import math
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from judge_world import JudgeWorld, completion
from known_pairs import calibrate, pairs
from pydantic import ValidationError
from sqlalchemy import select

from steerboard.evaluation.judge_tables import Judge, JudgeAnswer
from steerboard.evaluation.reward_judges.asking import JudgesStopped, RewardJudges
from steerboard.evaluation.reward_judges.launch import JudgeNotCalibrated, reward_judge
from steerboard.evaluation.reward_judges.rewards import GroupToJudge
from steerboard.evaluation.reward_judges.server import serving
from steerboard.evaluation.reward_judges.tables import RewardJudge
from steerboard.platform.database import transaction
from steerboard.runs.state.lifecycle import create_run
from steerboard_contracts.errors import BadInput
from steerboard_contracts.methods import needed_method
from steerboard_contracts.online.judge_reward import JudgeReward
from steerboard_contracts.run_config import RUN_CONFIG
from steerboard_workers.alignment.online.judge_scorer import JudgeScorer, JudgeUnavailable
from support.servers.other_server import Answer, Seen

RUBRIC = [{"question": "Is it polite?", "weight": 3}, {"question": "Is it short?"}]
QUESTION = [{"role": "user", "content": "Say it."}]


def goodness(text: str) -> int:
    """The number at the end of an answer such as `fine 7`."""
    return int(text.rsplit(" ", 1)[-1])


def shown(seen: Seen) -> list[str]:
    """The answers that a judge was shown, in order."""
    text = seen.json["messages"][1]["content"]
    return [line for line in text.splitlines() if line.startswith("fine ")]


def judging(seen: Seen) -> Answer:
    """Any style's verdict, by the number in each answer."""
    text, answers = seen.json["messages"][0]["content"], shown(seen)
    if "strictly following this format:\n\n{Assistant" in text:
        return completion("\n".join(f"Assistant {'ABCD'[at]}: {goodness(one)}" for at, one in enumerate(answers)))
    if "1: yes" in text:
        good = goodness(answers[0])
        return completion(f"Well.\n1: {'yes' if good > 3 else 'no'}\n2: {'yes' if good > 6 else 'no'}")
    if len(answers) == 2:
        one, other = map(goodness, answers)
        return completion("[[C]]" if one == other else "[[A]]" if one > other else "[[B]]")
    return completion(f"Rating: [[{goodness(answers[0])}]]")


def rule(judge: str = "e/one", **fields: Any) -> JudgeReward:
    return JudgeReward.model_validate({"kind": "judge", "judge": judge, "uncalibrated": True, **fields})


def pinned(world: JudgeWorld, given: JudgeReward) -> JudgeReward:
    with transaction(world.sessions) as session:
        judge = reward_judge(session, session.merge(world.project), given)
    return given.model_copy(update={"pinned": judge})


@contextmanager
def asked(world: JudgeWorld, budget: float | None = None, **fields: Any) -> Iterator[RewardJudges]:
    """The judges of a run that is at work."""
    with transaction(world.sessions) as session:
        config = {"run": "train", "method": "rloo", "answers": 3, "rules": [rule(**fields).model_dump()]}
        project = session.merge(world.project)
        create_run(session, project, name="r", config=RUN_CONFIG.validate_python(config), inputs={}, created_by="t")
    claim, given = world.claim(), {0: pinned(world, rule(**fields))}
    judges = RewardJudges(world.settings, claim, world.project.id, given, budget)
    try:
        yield judges
    finally:
        judges.close()


def group(*numbers: int, first: int = 0) -> GroupToJudge:
    answers = [f"fine {number}" for number in numbers]
    return GroupToJudge(QUESTION, None, answers, range(first, first + len(answers)))


@pytest.fixture
def judge(world: JudgeWorld) -> Callable[..., None]:
    """A judge `one` of evaluation `e` that has done its work there."""

    def make(style: str, **settings: Any) -> None:
        world.evaluation(prompts=1, answer=lambda who, *_: f"fine {len(who)}")
        world.server.answer = judging
        world.judged(style, name="one", **settings)
        world.server.seen.clear()

    return make


@pytest.mark.parametrize(
    ("style", "how", "rewards"),
    [
        ("single", {}, [0, 8 / 9, 3 / 9, 3 / 9]),
        ("rubric", {"rubric": RUBRIC}, [0, 1, 0.75, 0.75]),
        ("multi", {}, [0, 1, 0.5, 0.5]),
        ("pairwise", {}, [0, 1, 0.5, 0.5]),
    ],
)
def test_scores_and_ranks_become_rewards_between_0_and_1(
    world: JudgeWorld, judge: Callable[..., None], style: str, how: dict[str, Any], rewards: list[float]
) -> None:
    judge(style, **how)
    with asked(world) as judges:
        judged = judges.judge(0, [group(1, 9, 4, 4), group(5, 6, first=4)])
    assert judged.rewards[:4] == pytest.approx(rewards)
    other = {"single": [4 / 9, 5 / 9], "rubric": [0.75, 0.75]}
    assert judged.rewards[4:] == pytest.approx(other.get(style, [0, 1]))


def test_an_answer_without_a_verdict_has_no_reward_and_the_others_are_ranked(
    world: JudgeWorld, judge: Callable[..., None]
) -> None:
    judge("multi")
    world.server.answer = lambda seen: completion(
        "\n".join(f"Assistant {'ABC'[at]}: {goodness(one)}" for at, one in enumerate(shown(seen)) if one != "fine 2")
    )
    with asked(world) as judges:
        rewards = judges.judge(0, [group(1, 2, 3)]).rewards
    assert (rewards[0], rewards[2]) == (0, 1)
    assert math.isnan(rewards[1])


def test_what_is_asked_again_is_not_paid_again_and_the_run_keeps_its_costs(
    world: JudgeWorld, judge: Callable[..., None]
) -> None:
    judge("single", prompt_price=10.0, completion_price=100.0)
    with asked(world) as judges:
        first = judges.judge(0, [group(1, 9, 9)])
        again = judges.judge(0, [group(9, 1)])
    price = (100 * 10 + 7 * 100) / 1e6  # of one answer, by the tokens that the server counts
    assert (first.requests, len(world.server.seen), again.requests) == (2, 2, 2)
    assert (first.cached, again.cached) == (1, 3)
    assert again.cost == pytest.approx(2 * price)
    assert again.rewards == pytest.approx([8 / 9, 0])
    with transaction(world.sessions) as session:
        row = session.scalars(select(RewardJudge)).one()
        assert (row.requests, row.prompt_tokens, row.completion_tokens) == (2, 200, 14)
        assert (row.cost, row.uncertain_cost) == (pytest.approx(2 * price), 0)
        # The judge's own budget, in its evaluation, is not what a run spends.
        own = session.scalars(select(JudgeAnswer).where(JudgeAnswer.judge_id.is_not(None))).all()
        assert len(own) == 1


def test_no_request_is_made_that_could_exceed_the_budget(world: JudgeWorld, judge: Callable[..., None]) -> None:
    judge("single", prompt_price=0.0, completion_price=1000.0, max_tokens=100, concurrency=1)
    # 7 tokens of an answer cost 0.007, and a request may cost 0.1.
    with asked(world, budget=0.12) as judges:
        with pytest.raises(JudgesStopped, match=r"0\.021 of the budget of 0\.12 is spent") as stopped:
            judges.judge(0, [group(1, 2, 3, 4, 5)])
        assert stopped.value.code == "budget_reached"
        assert len(world.server.seen) == 3
        assert judges.judge(0, [group(1, 2)]).rewards == pytest.approx([0, 1 / 9])  # they are known


def test_an_endpoint_that_is_down_fails_the_run_and_one_that_comes_back_is_asked_again(
    world: JudgeWorld, judge: Callable[..., None]
) -> None:
    judge("single", attempts=1, concurrency=1)
    world.server.answer = lambda _: Answer.json({"error": {"message": "busy"}}, 503)
    with asked(world) as judges:
        with pytest.raises(JudgesStopped, match="stopped answering: http_503") as stopped:
            judges.judge(0, [group(*range(1, 10), *range(1, 10))])
        assert (stopped.value.code, stopped.value.retryable) == ("judge_failed", True)
        world.server.answer = judging
        assert judges.judge(0, [group(1, 2)]).rewards == pytest.approx([0, 1 / 9])
    with transaction(world.sessions) as session:
        assert session.scalars(select(RewardJudge)).one().failures == {"http_503": 10}


def test_a_stage_asks_through_a_socket_and_never_sees_the_key(world: JudgeWorld, judge: Callable[..., None]) -> None:
    judge("pairwise", prompt_price=1.0)
    with asked(world) as judges, serving(judges) as path:
        scorer = JudgeScorer(pinned(world, rule()), 0, path)
        given = ["fine 3", "fine 5", "fine 5", "fine 1"]
        rewards = scorer.score([0, 0, 1, 1], [QUESTION] * 4, given, [None] * 4)
        assert rewards == pytest.approx([0, 1, 1, 0])
        assert scorer.groupwise
        assert scorer.figures["requests"] == 4
        assert scorer.figures["cost"] == pytest.approx(400 / 1e6)
        world.server.answer = lambda _: Answer.json({"error": {"message": "no"}}, 401)
        unheard = scorer.score([0, 0], [QUESTION] * 2, ["fine 6", "fine 7"], [None] * 2)
        assert all(map(math.isnan, unheard))
    with pytest.raises(JudgeUnavailable, match="asks no judge any more"):
        JudgeScorer(pinned(world, rule()), 0, path).score([0], [QUESTION], ["fine 1"], [None])
    with pytest.raises(BadInput, match="need a worker"):
        JudgeScorer(pinned(world, rule()), 0, "")


def test_a_judge_that_only_watches_is_asked_about_a_part_at_intervals(
    world: JudgeWorld, judge: Callable[..., None]
) -> None:
    judge("multi")
    watching = JudgeScorer(pinned(world, rule(weight=0, every=3, share=0.5)), 0, "unused")
    groups = [0, 0, 1, 1, 2, 2, 3, 3]
    drawn = [watching.asked_about(groups, sampling) for sampling in range(30)]
    assert all(not places for at, places in enumerate(drawn) if at % 3)
    for places in drawn[::3]:
        assert len(places) == 4
        assert [place + 1 for place in places[::2]] == places[1::2]  # whole groups, which it ranks
    assert len({tuple(places) for places in drawn[::3]}) > 2
    assert watching.asked_about(groups, 6) == drawn[6]
    with pytest.raises(ValidationError, match="judge that only watches"):
        rule(weight=0.5, share=0.5)


def test_a_judge_rewards_nothing_before_it_agrees_with_people(world: JudgeWorld) -> None:
    world.evaluation(prompts=1)
    pairs(world)
    world.server.answer = lambda seen: completion("[[A]]" if _good_first(seen) else "[[B]]")
    world.judged("pairwise", name="one")
    sure = rule(uncalibrated=False)
    with pytest.raises(JudgeNotCalibrated, match="has not been calibrated") as refused:
        pinned(world, sure)
    assert refused.value.code == "judge_not_calibrated"
    assert "steerboard evaluations calibrate e one --dataset PAIRS" in (refused.value.hint or "")
    doubtful = pinned(world, rule()).pinned
    assert doubtful is not None
    assert (doubtful.accuracy, doubtful.doubt is None) == (None, False)
    calibrate(world, "one")
    world.work()
    judge = pinned(world, sure).pinned
    assert judge is not None
    assert (judge.calibrated_on, judge.accuracy, judge.style, judge.doubt) == ("pairs", 1.0, "pairwise", None)
    assert judge.accuracy_low == pytest.approx(0.8389, abs=1e-3)
    with pytest.raises(JudgeNotCalibrated, match="has to be at least 90%"):
        pinned(world, rule(uncalibrated=False, min_accuracy=0.9))


def test_a_judge_that_nobody_can_ask_is_refused(world: JudgeWorld) -> None:
    world.evaluation(prompts=1)
    world.judged("alpaca_eval", name="one", baseline="anna")
    for name, code in (("e/one", "wrong_style"), ("e/two", "unknown_judge"), ("f/one", "unknown_judge")):
        with pytest.raises(BadInput) as refused:
            pinned(world, rule(name))
        assert refused.value.code == code
    with transaction(world.sessions) as session:
        session.scalars(select(Judge)).one().endpoint_id = None
    with pytest.raises(BadInput, match="has no endpoint to ask"):
        pinned(world, rule())


def test_a_run_is_refused_whose_answers_a_judge_cannot_rank(world: JudgeWorld, judge: Callable[..., None]) -> None:
    judge("multi")
    given = pinned(world, rule()).pinned
    assert given is not None

    def fault(**config: Any) -> str:
        parsed = needed_method("rloo").config.model_validate({"method": "rloo", "answers": 4, **config})
        return parsed.judge_fault(given) or ""  # type: ignore[attr-defined]

    assert fault() == ""
    assert "needs `answers` of 2 or more" in needed_method("reinforce_pp").config.model_validate(
        {"method": "reinforce_pp", "answers": 1}
    ).judge_fault(given)  # type: ignore[attr-defined]
    assert "compares at most 26 answers at once" in fault(answers=27)
    assert "has no prices" in fault(judge_budget=1.0)


def test_a_run_keeps_the_judge_as_it_was(world: JudgeWorld, judge: Callable[..., None]) -> None:
    judge("single", criteria="kindness")
    with asked(world) as judges:
        with transaction(world.sessions) as session:
            session.scalars(select(Judge)).one().settings = {"criteria": "cruelty"}
        judges.judge(0, [group(4)])
    assert "kindness" in world.server.seen[-1].json["messages"][0]["content"]
    with transaction(world.sessions) as session:
        assert session.scalars(select(RewardJudge.run_id)).one() != uuid.UUID(int=0)


def _good_first(seen: Seen) -> bool:
    text = seen.json["messages"][1]["content"]
    return text.index("good") < text.index("bad") if "bad" in text else True
