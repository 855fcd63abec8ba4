"""A pipeline of rounds as rows, whose judge falls in one of them."""

from __future__ import annotations

import uuid
from typing import Any

from sqlalchemy import select

from steerboard.platform.database import transaction
from steerboard.runs.pipelines import service as pipelines
from steerboard.runs.state import attempt_outcomes, sweeper
from steerboard.runs.state.lifecycle import InputRef
from steerboard.runs.tables import Pipeline, Run, RunInput, RunOutput
from steerboard_contracts.recipes.rounds import PlannedRound, PlannedRounds
from steerboard_contracts.report.decision import RoundDecision
from steerboard_contracts.report.estimate import Estimate
from support.rows.run_world import World

ROUNDS = 3
SFT = {"run": "train", "method": "sft", "lr": 1e-3}
GENERATE = {"run": "generate"}


def decision(*, fell: bool) -> dict[str, Any]:
    after = 0.12 if fell else 0.4
    document = RoundDecision(
        judge="referee",
        units="raw",
        prompts=100,
        before=Estimate(value=0.31, n=100),
        after=Estimate(value=after, n=100),
        difference=Estimate(value=after - 0.31, n=100),
        p=0.003,
        fell=fell,
    )
    return document.model_dump(mode="json")


class Rounds:
    """A pipeline of rounds of `answers` and `tuned`, each with its check, and three runs that follow."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.start, self.judge, self.data = world.model(), world.model(), world.dataset()
        planned = PlannedRounds(
            start="sft",
            start_model=self.start,
            judge="referee",
            rounds=[
                PlannedRound(number=n, stages=[f"answers-{n}", f"tuned-{n}"], check=f"check-{n}")
                for n in range(1, ROUNDS + 1)
            ],
        )
        self.id = world.pipeline("loop", rounds=planned)
        self.runs: dict[str, uuid.UUID] = {}
        policies: list[InputRef] = [InputRef(model=self.start)]
        for n in range(1, ROUNDS + 1):
            after = {"after.0": InputRef(run=self.runs[f"check-{n - 1}"])} if n > 1 else {}
            answers = self._add(f"answers-{n}", GENERATE, model=policies[-1], data=InputRef(dataset=self.data), **after)
            tuned = self._add(f"tuned-{n}", SFT, model=policies[-1], data=InputRef(run=answers), **after)
            policies.append(InputRef(run=tuned))
            entrants = [*policies[:1], *policies[-2:]] if n > 1 else policies
            self._evaluate(f"check-{n}", entrants, decides=True, **after)
        last = {"after.0": InputRef(run=self.runs[f"check-{ROUNDS}"])}
        self._add("more", SFT, model=policies[-1], data=InputRef(dataset=self.data), **last)
        self._add("again", SFT, model=InputRef(model=self.start), data=InputRef(run=self.runs["answers-3"]), **last)
        self._evaluate("report", [*policies, InputRef(run=self.runs["more"])])

    def _add(self, name: str, config: dict[str, Any], **inputs: InputRef) -> uuid.UUID:
        self.runs[name] = self.world.create(name, config=config, inputs=inputs, pipeline_id=self.id)
        return self.runs[name]

    def _evaluate(self, name: str, entrants: list[InputRef], *, decides: bool = False, **after: InputRef) -> None:
        config = {"run": "evaluate", "entrants": [{"scores": [float(n)]} for n in range(len(entrants))]}
        inputs = {f"entrants.{n}": ref for n, ref in enumerate(entrants)}
        inputs |= {"rewards.0": InputRef(model=self.judge), "data": InputRef(dataset=self.data)}
        self._add(name, {**config, "decides": decides}, **inputs, **after)
        # Its parts are not what this is about: a worker takes it as a whole.
        with transaction(self.world.sessions) as session:
            session.get_one(Run, self.runs[name]).kind = "mix"

    def work(self, *, fall: int | None = None, settle: bool = True) -> None:
        """Workers do all that is queued. In round `fall` the judge falls, and without `settle` all stops then."""
        while (claim := self.world.claim()) is not None:
            name = self.world.get(claim.run_id).name
            if name.startswith("check"):
                fell = name == f"check-{fall}"
                with transaction(self.world.sessions) as session:
                    report = {"decision": decision(fell=fell)}
                    session.add(RunOutput(run_id=claim.run_id, name="report", type="report", document=report))
            else:
                fell = False
                self.world.give_output(claim.run_id)
            self.world.act(claim, lambda session, run: attempt_outcomes.succeed(session, run, {}, 1.0))
            if fell and not settle:
                return
            sweeper.settle_all(self.world.sessions)

    def state(self, name: str) -> str:
        return self.world.state(self.runs[name])

    def states(self) -> dict[str, str]:
        return {name: self.state(name) for name in self.runs}

    def skipped(self) -> list[str]:
        return sorted(name for name, state in self.states().items() if state == "skipped")

    def inputs(self, name: str) -> dict[str, Any]:
        with transaction(self.world.sessions) as session:
            rows = session.scalars(select(RunInput).where(RunInput.run_id == self.runs[name])).all()
            return {row.name: row.upstream_run_id or row.model_id or row.dataset_id for row in rows}

    def entrants(self) -> tuple[list[Any], list[float]]:
        """The entrants of the report: what each reads, and the score that its config gives it."""
        given = self.inputs("report")
        config = self.world.get(self.runs["report"]).config["entrants"]
        return [given[f"entrants.{n}"] for n in range(len(config))], [entry["scores"][0] for entry in config]

    def pipeline(self) -> Any:
        with transaction(self.world.sessions) as session:
            return pipelines.detail(session, session.get_one(Pipeline, self.id))
