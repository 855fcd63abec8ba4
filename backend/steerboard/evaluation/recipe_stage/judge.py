"""The judge of a recipe's evaluate stage: how it is asked, and what it found about every two entrants."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass

import numpy as np
from sqlalchemy.orm import Session

from steerboard.accounts.tables import Project
from steerboard.evaluation.entrants.responses import entrants_of
from steerboard.evaluation.judges.comparisons import STYLE as COMPARES
from steerboard.evaluation.judges.presenters import judges_out
from steerboard.evaluation.judges.schemas import JudgeIn, JudgeSettings
from steerboard.evaluation.judges.service import create_judge, judges_of
from steerboard.evaluation.recipe_runs import RecipeStage
from steerboard.evaluation.report.data import Floats
from steerboard.evaluation.report.loading.verdicts import verdicts_of
from steerboard.evaluation.report.sections.judging.validity import invalid_entrants
from steerboard.evaluation.report.verdict_tables import PAIR_STYLES, pair_units, pair_values, score_units
from steerboard.evaluation.tables import Evaluation
from steerboard.registry.tables import Model
from steerboard_contracts.report.baseline import baseline_place

INPUT = "judge"


@dataclass(frozen=True)
class Judged:
    """What a judge found about the stage's entrants. `scores` (prompts, entrants): of style `single`, from 1 to 10;
    `values` (prompts, pairs), pairs as in `pair_columns`: the win share of the first; NaN where it gave no verdict.
    `unparsed_rate`: share of its verdicts that are unusable, None without verdicts; `valid`: few enough; `silent`:
    entrants of whose own verdicts there are too many."""

    name: str
    entrants: int
    unparsed_rate: float | None
    valid: bool
    scores: Floats | None
    values: Floats
    silent: Collection[int] = ()

    def against(self, a: int, b: int) -> Floats:
        """(prompts,): 1 where entrant `a` is better than `b`, 1/2 for a tie, 0; a preference is between."""
        if self.scores is not None:
            return np.asarray((np.sign(self.scores[:, a] - self.scores[:, b]) + 1) / 2)
        first, second = np.triu_indices(self.entrants, 1)
        low, high = min(a, b), max(a, b)
        value: Floats = self.values[:, np.flatnonzero((first == low) & (second == high))[0]]
        return value if a < b else 1 - value

    def silence(self, *entrants: int) -> str | None:
        """What is wrong with its verdicts on these, None where they may be used."""
        if self.unparsed_rate is None:
            return f"judge {self.name} gave no verdicts"
        if not self.valid:
            return f"{self.unparsed_rate:.0%} of the verdicts of judge {self.name} are unusable"
        if any(entrant in self.silent for entrant in entrants):
            return f"too many of the verdicts of judge {self.name} on one of the entrants are unusable"
        return None


def ask(
    session: Session, project: Project, evaluation: Evaluation, stage: RecipeStage, model: Model | None, name: str
) -> None:
    """Let the stage's judge compare its entrants, if it has one: the last two of a deciding stage, others with the
    baseline where there is one. `name`: of the judge where it is a preference model.

    Raises `NotFound` for an endpoint that was deleted, `InvalidJudge`."""
    given = stage.config.judge
    if given is None and model is None:
        return
    entrants = entrants_of(session, evaluation)
    place = baseline_place(entrants)
    baseline = None if place is None else entrants[place].name
    settings = JudgeSettings(
        entrants=[entrant.name for entrant in entrants[-2:]] if stage.config.decides else None,
        baseline=None if stage.config.decides else baseline,
    )
    if given is not None:
        how = given.model_dump(include={"criteria", "requests_per_minute", "concurrency"})
        settings = settings.model_copy(update=how)
        request = JudgeIn(name=given.endpoint, style=given.style, endpoint=given.endpoint, settings=settings)
    else:
        request = JudgeIn(name=name, style=COMPARES, model=str(model.id) if model else None, settings=settings)
    create_judge(session, project, evaluation, request, stage.run.created_by, stage)


def judged(session: Session, evaluation: Evaluation, entrants: int) -> Judged | None:
    """What the stage's judge found about its first `entrants`; None where it has been deleted. People may have asked
    others since: the stage's was the first."""
    judge = next(iter(judges_of(session, evaluation)), None)
    if judge is None:
        return None
    (facts,) = judges_out(session, evaluation, judge)
    verdicts = verdicts_of(session, evaluation, judge)
    prompts, width = int(verdicts.row.max(initial=-1)) + 1, max(entrants, int(verdicts.a.max(initial=-1)) + 1)
    width = max(width, int(verdicts.b.max(initial=-1)) + 1)
    paired = judge.style in PAIR_STYLES
    return Judged(
        name=judge.name,
        entrants=width,
        unparsed_rate=facts.unparsed_rate,
        valid=facts.valid and facts.ok > 0,
        silent=invalid_entrants(
            verdicts, float(facts.settings.get("unparsed_threshold", JudgeSettings().unparsed_threshold))
        ),
        scores=None if paired else score_units(verdicts, width).items(prompts),
        values=pair_values(pair_units(verdicts, width, judge.style), prompts, width) if paired else np.zeros((0, 0)),
    )
