"""Questions asked a second time: paid for apart, counted in no comparison, and the measure of repeatability."""

from __future__ import annotations

import pytest
from judge_world import JudgeWorld, completion
from sqlalchemy import select, update

from steerboard.evaluation.judge_tables import RepeatedVerdict, Verdict
from steerboard.evaluation.judges import runner
from steerboard.evaluation.report import assembly
from steerboard.evaluation.tables import Evaluation
from steerboard.platform.database import transaction
from steerboard.runs.tables import Run
from steerboard_contracts.report.sections.judges import JudgeReport


def report(world: JudgeWorld) -> JudgeReport:
    with transaction(world.sessions) as session:
        id_ = session.scalars(select(Evaluation.id)).one()
    (judge,) = assembly.compute(world.sessions, id_).judges
    return judge


def test_the_same_question_is_asked_again_and_a_judge_that_wavers_is_seen(world: JudgeWorld) -> None:
    world.evaluation(prompts=10)
    asked: dict[str, int] = {}

    def wavering(seen: object) -> object:
        question = seen.json["messages"][1]["content"]  # type: ignore[attr-defined]
        asked[question] = asked.get(question, 0) + 1
        return completion("[[3]]" if asked[question] == 2 and "anna" in question else "[[7]]")

    world.server.answer = wavering  # type: ignore[assignment]
    judge = world.judged("single", name="one", repeat_share=1.0, concurrency=1)
    assert (judge["requests"], judge["verdicts"], judge["ok"]) == (40, 20, 20)
    assert set(asked.values()) == {2}
    judged = report(world)
    assert judged.quality is not None
    assert judged.quality.repeatability.value == pytest.approx(0.5)
    assert judged.quality.repeatability.n == 10
    # The first verdict counts, and it alone.
    assert {row.mean.value for row in judged.comparison.scores} == {7.0}


@pytest.mark.long
def test_a_share_is_drawn_by_the_seed(world: JudgeWorld) -> None:
    world.evaluation(prompts=60)
    judge = world.judged("single", name="one", repeat_share=0.25)
    repeats = world.count(RepeatedVerdict)
    assert judge["requests"] == 120 + repeats
    # Which ones depends on the entrants' ids, too, which are new each time: 4.5 standard deviations.
    assert 9 <= repeats <= 51
    again = world.judged("single", name="two", repeat_share=0.25)
    assert (again["requests"], world.count(RepeatedVerdict)) == (0, 2 * repeats)
    assert report_is_empty(world, share=0.0)


def report_is_empty(world: JudgeWorld, share: float) -> bool:
    world.judged("single", name="three", repeat_share=share)
    with transaction(world.sessions) as session:
        id_ = session.scalars(select(Evaluation.id)).one()
    last = assembly.compute(world.sessions, id_).judges[-1]
    return last.quality is not None and last.quality.repeatability.value is None


def test_a_process_that_died_between_repeats_asks_only_for_the_others(
    world: JudgeWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    world.evaluation(prompts=2)
    world.judge("single", name="one", repeat_share=1.0, concurrency=1)
    read, calls = runner.outcomes, iter(range(100))

    def dies(*given: object) -> object:
        if next(calls) == 6:
            raise KeyboardInterrupt
        return read(*given)  # type: ignore[arg-type]

    monkeypatch.setattr(runner, "outcomes", dies)
    with pytest.raises(KeyboardInterrupt):
        world.work()
    monkeypatch.undo()
    assert (world.count(Verdict), world.count(RepeatedVerdict), len(world.server.seen)) == (4, 2, 7)
    with transaction(world.sessions) as session:
        session.execute(update(Run).values(state="queued", lease_owner=None, lease_expires_at=None))
    world.work()
    assert (world.count(Verdict), world.count(RepeatedVerdict), len(world.server.seen)) == (4, 4, 8)
