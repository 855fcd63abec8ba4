"""The clock of a stage's phases, by a clock that the test moves; and the phases that runs of each kind have."""

from __future__ import annotations

import pytest
from running import ran, recorded

from steerboard_contracts.watching.ledger import PhaseTime
from steerboard_workers.phases import Phases


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def test_phases_and_what_is_between_them_add_up_to_the_wall_time() -> None:
    clock = Clock()
    phases = Phases(clock)
    began, between = clock.now, 0.0
    for step in range(1, 6):
        with phases.measure("generate") as generate:
            clock.now += 0.1 * step
            generate.tokens = 7
        clock.now, between = clock.now + 0.03, between + 0.03
        with phases.measure("update"):
            clock.now += 0.2
    spent = phases.so_far()
    assert sum(phase.seconds for phase in spent.values()) + between == pytest.approx(clock.now - began)
    assert {name: (pytest.approx(phase.seconds), phase.tokens) for name, phase in spent.items()} == {
        "generate": (1.5, 35),
        "update": (1.0, 0),
    }


def test_a_phase_in_another_is_part_of_it_also_when_it_raises() -> None:
    clock = Clock()
    phases = Phases(clock)

    def evaluate() -> None:
        with phases.measure("evaluate") as outer:
            outer.tokens = 1
            with phases.measure("generate") as generate:
                clock.now += 2.0
                generate.tokens = 5
            clock.now += 1.0
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        evaluate()
    assert phases.so_far() == {"evaluate": PhaseTime(seconds=3.0, tokens=6)}


def test_what_an_open_phase_has_taken_is_known_before_it_ends() -> None:
    clock = Clock()
    phases = Phases(clock)
    with phases.measure("score") as score:
        clock.now, score.tokens = clock.now + 4.0, 3
        assert phases.so_far() == {"score": PhaseTime(seconds=4.0, tokens=3)}
        clock.now += 1.0
    assert phases.so_far() == {"score": PhaseTime(seconds=5.0, tokens=3)}


def test_what_is_taken_is_since_the_last_time_and_the_ledger_keeps_all() -> None:
    clock = Clock()
    phases = Phases(clock)
    for tokens in (3, 4):
        with phases.measure("score") as score:
            clock.now, score.tokens = clock.now + 1.0, tokens
        assert phases.take() == {"score_seconds": 1.0, "score_tokens": float(tokens)}
    assert phases.take() == {}
    assert phases.so_far() == {"score": PhaseTime(seconds=2.0, tokens=7)}


def test_a_phase_waits_for_the_device_before_it_ends() -> None:
    clock = Clock()
    phases = Phases(clock)

    def settle() -> None:
        clock.now += 9.0

    phases.settle = settle
    with phases.measure("update"):
        clock.now += 1.0
    assert phases.so_far() == {"update": PhaseTime(seconds=10.0)}


def test_an_sft_run_loads_updates_evaluates_and_writes(make_stage, base_model) -> None:
    config = {"run": "train", "method": "sft", "batch": 8, "max_steps": 2, "max_length": 96, "evaluate_rows": 4}
    stage = make_stage({**config, "checkpoint_every": 1}, model=base_model)
    ran(stage)
    spent = stage.phases.so_far()
    assert set(spent) == {"load", "update", "evaluate", "checkpoint"}
    steps = recorded(stage, "metrics")
    assert spent["update"].tokens == sum(event.values["tokens"] for event in steps)
    assert spent["evaluate"].tokens > 0
    assert not spent.keys() & {name.removesuffix("_seconds") for event in steps for name in event.values}
    # What a kill would leave is what was passed on last.
    assert recorded(stage, "spent")[-1].phases.keys() <= spent.keys()


def test_a_phase_that_the_ledger_does_not_have_stays_with_the_stage(make_stage) -> None:
    stage = make_stage({"run": "train", "method": "sft"})
    for name in ("reread", "score"):
        with stage.phases.measure(name):
            pass
    stage.spent()
    assert [set(event.phases) for event in recorded(stage, "spent")] == [{"score"}]
