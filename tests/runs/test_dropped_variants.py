"""Successive halving of a sweep's variants as their runs end: who continues, and what happens to the others."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from steerboard.platform.database import transaction
from steerboard.runs.pipelines import service as pipelines
from steerboard.runs.state import attempt_outcomes, sweeper
from steerboard.runs.state.attempt_outcomes import Failure
from steerboard.runs.state.lifecycle import InputRef
from steerboard.runs.tables import Pipeline, Run, RunInput
from steerboard_contracts.recipes.sweep import PlannedHalving, PlannedRung, PlannedSweep
from support.rows.run_world import World

SFT = {"run": "train", "method": "sft", "lr": 1e-3}
VARIANTS = range(1, 5)


def _failed(session: Session, run: Run) -> None:
    attempt_outcomes.fail(session, run, Failure("bad_input", "Row 3 is empty.", retryable=False), 1.0, 0.0)


def _succeeded(summary: dict[str, float]) -> Callable[[Session, Run], None]:
    return lambda session, run: attempt_outcomes.succeed(session, run, summary, 1.0)


class Halved:
    """Four variants in three rungs, each with a run that follows, and a report of all. `copies` of each variant share
    its runs in the rungs."""

    def __init__(self, world: World, goal: Any = "minimize", copies: int = 1) -> None:
        self.world = world
        self.start, self.data = world.model(), world.dataset()
        rungs = [
            PlannedRung(number=n, steps=10 * n, stages=[f"dt-{v}" + (f"-rung{n}" if n < 3 else "") for v in VARIANTS])
            for n in (1, 2, 3)
        ]
        planned = PlannedSweep(
            search="grid",
            seed=None,
            fields=["dt.lr"],
            metric="dt.eval_loss",
            goal=goal,
            halving=PlannedHalving(
                figure="eval_loss",
                goal=goal,
                factor=2,
                rungs=[r.model_copy(update={"stages": [s for s in r.stages for _ in range(copies)]}) for r in rungs],
            ),
            variants=[],
        )
        self.id = world.pipeline("halved", sweep=planned)
        self.runs: dict[str, uuid.UUID] = {}
        self.done: list[str] = []
        after: dict[str, InputRef] = {}
        for rung in rungs:
            for place, name in enumerate(rung.stages):
                self._add(name, SFT | {"lr": 1e-3 * (place + 1), "max_steps": rung.steps}, self.start, **after)
            after = {f"after.any.{n}": InputRef(run=self.runs[stage]) for n, stage in enumerate(rung.stages)}
        for v in VARIANTS:
            self._add(f"more-{v}", SFT, InputRef(run=self.runs[f"dt-{v}"]))
        entrants = {f"entrants.{n}": InputRef(run=self.runs[f"dt-{v}"]) for n, v in enumerate(VARIANTS)}
        config = {"run": "evaluate", "entrants": [{"scores": [float(v)]} for v in VARIANTS]}
        inputs = {**entrants, "rewards.0": InputRef(model=self.start), "data": InputRef(dataset=self.data)}
        self.runs["report"] = world.create("report", config=config, inputs=inputs, pipeline_id=self.id)
        with transaction(world.sessions) as session:
            session.get_one(Run, self.runs["report"]).kind = "mix"  # a worker takes it as a whole

    def _add(self, name: str, config: dict[str, Any], model: Any, **after: InputRef) -> None:
        model = model if isinstance(model, InputRef) else InputRef(model=model)
        inputs = {"model": model, "data": InputRef(dataset=self.data), **after}
        self.runs[name] = self.world.create(name, config=config, inputs=inputs, pipeline_id=self.id, reuse=False)

    def work(self, *figures: float | None, fail: tuple[str, ...] = (), later: dict[str, float] | None = None) -> None:
        """Workers do all that is queued. `figures` of the variants; `later`: those of single runs."""
        while (claim := self.world.claim()) is not None:
            name = self.world.get(claim.run_id).name
            self.done.append(name)
            if name in fail:
                self.world.act(claim, _failed)
            else:
                figure = figures[int(name.split("-")[1]) - 1] if name.startswith("dt-") else None
                figure = (later or {}).get(name, figure)
                self.world.give_output(claim.run_id)
                self.world.act(claim, _succeeded({} if figure is None else {"eval_loss": figure}))
            sweeper.settle_all(self.world.sessions)

    def states(self, *names: str) -> list[str]:
        return [self.world.state(self.runs[name]) for name in names]

    def rung(self, number: int) -> list[str]:
        suffix = f"-rung{number}" if number < 3 else ""
        return self.states(*(f"dt-{v}{suffix}" for v in VARIANTS))

    def reason(self, name: str) -> str:
        return self.world.get(self.runs[name]).reason

    def entrants(self) -> list[str]:
        names = {run: name for name, run in self.runs.items()}
        with transaction(self.world.sessions) as session:
            rows = session.scalars(
                select(RunInput).where(RunInput.run_id == self.runs["report"], RunInput.name.startswith("entrants"))
            ).all()
            return [names[row.upstream_run_id] for row in sorted(rows, key=lambda row: row.name) if row.upstream_run_id]

    def pipeline(self) -> Any:
        with transaction(self.world.sessions) as session:
            return pipelines.detail(session, session.get_one(Pipeline, self.id))


IN, OUT = "succeeded", "skipped"


def test_the_best_half_goes_on_after_each_rung_and_the_others_are_skipped(world: World) -> None:
    halved = Halved(world)
    # In the second rung, the one that was behind is ahead.
    halved.work(0.4, 0.3, 0.2, 0.1, later={"dt-4-rung2": 0.5})
    assert halved.rung(1) == [IN] * 4
    assert halved.rung(2) == [OUT, OUT, IN, IN]
    assert halved.rung(3) == [OUT, OUT, IN, OUT]
    assert halved.reason("dt-1-rung2") == ("dropped after rung 1 (10 steps): eval_loss 0.4 is not among the 2 lowest")
    assert halved.reason("dt-1") == halved.reason("dt-1-rung2")
    assert halved.reason("dt-4") == "dropped after rung 2 (20 steps): eval_loss 0.5 is not among the lowest"
    # What needs a variant follows it, and lists have those that are left.
    assert halved.states(*(f"more-{v}" for v in VARIANTS)) == [OUT, OUT, IN, OUT]
    assert halved.entrants() == ["dt-3"]
    config = halved.world.get(halved.runs["report"]).config
    assert [entrant["scores"] for entrant in config["entrants"]] == [[3.0]]
    assert halved.pipeline().state == "succeeded"


def test_variants_that_share_a_rung_s_run_are_halved_by_its_runs(world: World) -> None:
    """Eight variants, of which every two differ in a later stage only: two of the four runs continue, then one."""
    halved = Halved(world, copies=2)
    halved.work(0.4, 0.3, 0.2, 0.1)
    assert halved.rung(2) == [OUT, OUT, IN, IN]
    assert halved.rung(3) == [OUT, OUT, OUT, IN]
    assert halved.reason("dt-1") == "dropped after rung 1 (10 steps): eval_loss 0.4 is not among the 2 lowest"


def test_a_rung_waits_for_all_of_the_one_before(world: World) -> None:
    halved = Halved(world)
    for _ in VARIANTS:
        assert set(halved.rung(2)) == {"pending"}
        claim = world.claim()
        assert claim is not None
        world.give_output(claim.run_id)
        world.act(claim, _succeeded({"eval_loss": 1.0}))
        sweeper.settle_all(world.sessions)
    assert halved.rung(2) == ["queued", "queued", OUT, OUT]


def test_of_equal_figures_the_first_go_on_and_the_goal_says_which_are_better(world: World) -> None:
    halved = Halved(world, "maximize")
    halved.work(0.5, 0.7, 0.7, 0.7)
    assert halved.rung(2) == [OUT, IN, IN, OUT]
    assert halved.rung(3) == [OUT, IN, OUT, OUT]


@pytest.mark.parametrize("which", ["failed", "without a figure"])
def test_a_variant_that_failed_or_has_no_figure_is_the_worst(world: World, which: str) -> None:
    halved = Halved(world)
    halved.work(None, 9.0, 0.3, 0.1, fail=("dt-1-rung1",) if which == "failed" else ())
    assert halved.rung(2) == [OUT, OUT, IN, IN]
    assert halved.rung(3) == [OUT, OUT, OUT, IN]
    ended = "dt-1-rung1 failed" if which == "failed" else "dt-1-rung1 has no eval_loss"
    assert halved.reason("dt-1") == f"dropped after rung 1 (10 steps): {ended}"
    assert halved.states("report") == [IN]
    assert halved.pipeline().state == ("failed" if which == "failed" else "succeeded")


def test_a_failed_run_that_is_resumed_takes_nobody_s_place(world: World) -> None:
    halved = Halved(world)
    halved.work(0.1, 0.2, 0.3, 0.4, fail=("dt-1-rung1",))
    with transaction(world.sessions) as session:
        assert pipelines.resume(session, session.get_one(Pipeline, halved.id), "ann") == 1
    halved.work(0.1, 0.2, 0.3, 0.4)
    assert halved.rung(1) == [IN] * 4
    assert halved.rung(3) == [OUT, IN, OUT, OUT]
    assert halved.pipeline().state == "succeeded"


def test_where_none_has_the_figure_the_next_rung_fails_and_names_what_there_is(world: World) -> None:
    halved = Halved(world)
    halved.work(None, None, None, None)
    assert set(halved.rung(2)) == {"failed"}
    run = world.get(halved.runs["dt-1-rung2"])
    assert (run.reason_code, run.reason) == ("no_figure", "the summary of dt-1-rung1 has no eval_loss, which decides")
    assert halved.pipeline().state == "failed"


def test_where_all_failed_nothing_else_is_run(world: World) -> None:
    halved = Halved(world)
    halved.work(fail=tuple(f"dt-{v}-rung1" for v in VARIANTS))
    assert halved.rung(3) == [OUT] * 4
    assert halved.states("report", "more-1") == [OUT, OUT]
    assert halved.pipeline().state == "failed"
