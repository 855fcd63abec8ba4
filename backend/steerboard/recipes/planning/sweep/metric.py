"""What decides between the variants of a sweep: the mean reward of an evaluation's entrant, or a held-out figure of
training."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from steerboard.recipes.errors import Faults
from steerboard.recipes.planning.sweep.block import SWEEP, SweepBlock
from steerboard.recipes.recipe import Recipe, Stage, upstream_of
from steerboard_contracts.complaints import did_you_mean
from steerboard_contracts.conditions.condition import Condition
from steerboard_contracts.recipes.sweep import SweepGoal
from steerboard_contracts.wording import listed

Stages = Mapping[str, Stage]
_ACCURACY = "held_out_accuracy"


@dataclass(frozen=True)
class Decision:
    """`judged`: the stage, as the recipe names it, whose figure it is. The others as in `PlannedSweep`."""

    judged: str
    goal: SweepGoal
    stage: str | None = None
    judge: int = 0
    score: Condition | None = None
    figure: str | None = None


class Metric:
    """`written[variant]`: the recipe's stages with the values of a variant; `names[variant]`: how they are called."""

    def __init__(
        self,
        recipe: Recipe,
        block: SweepBlock,
        written: Sequence[Stages],
        names: Sequence[Mapping[str, str]],
        faults: Faults,
        at: tuple[str, ...] = (),
    ) -> None:
        """`at`: of the sweep, where `metric` is called `figure`."""
        self._at = at
        self._recipe = recipe
        self._block = block
        self._written = written
        self._names = names
        self._faults = faults

    def read(self) -> Decision | None:
        """Returns None, with a fault, where the figure is not clear."""
        try:
            decision = self._decision()
        except _Unclear as fault:
            self._fault(fault.key, fault.message)
            return None
        return decision if self._all_matter(decision.judged) else None

    def _decision(self) -> Decision:
        stage, _, figure = self._block.metric.partition(".")
        if stage not in self._written[0]:
            raise _Unclear("metric", f"unknown stage `{stage}`" + did_you_mean(stage, self._written[0]))
        if self._written[0][stage].evaluates:
            return self._of_evaluation(stage, figure)
        if self._written[0][stage].run == "train":
            return self._of_training(stage, figure)
        raise _Unclear("metric", f"`{stage}` has no held-out figure: name an evaluation, or a training stage's")

    def _of_evaluation(self, stage: str, judge: str) -> Decision:
        fields = self._written[0][stage].fields
        if self._block.goal == "minimize":
            raise _Unclear("goal", "the figure of an evaluation is a mean reward, where higher is better")
        rewards = fields.get("rewards") or []
        judges = [str(reward).removeprefix("$") for reward in (rewards if isinstance(rewards, list) else [rewards])]
        if judge and judge not in judges:
            message = f"`{judge}` is not one of the `rewards` of `{stage}`" + did_you_mean(judge, judges)
            raise _Unclear("metric", message)
        varying = self._varying(fields.get("entrants"))
        entrant = self._block.entrant
        if entrant is None and len(varying) > 1:
            raise _Unclear("", f"needs `entrant`: of {listed(varying)}, all of which vary, whose figure decides")
        if entrant is None and not varying:
            raise _Unclear("metric", f"no entrant of `{stage}` varies")
        entrant = entrant or next(iter(varying))
        if entrant not in varying:
            message = f"`{entrant}` is not an entrant of `{stage}` that varies" + did_you_mean(entrant, varying)
            raise _Unclear("entrant", message)
        place = judges.index(judge) if judge else 0
        return self._at_score(Decision(entrant, "maximize", stage, place), varying[entrant])

    def _varying(self, entrants: Any) -> dict[str, Any]:
        """The entrants that are not the same in every variant, as they are written."""
        varying = {}
        for entrant in entrants if isinstance(entrants, list) else ():
            name = entrant.get("model") if isinstance(entrant, dict) else entrant
            if isinstance(name, str) and len({names.get(name) for names in self._names}) > 1:
                varying[name] = entrant
        return varying

    def _at_score(self, decision: Decision, entrant: Any) -> Decision:
        """The decision with what the entrant is asked for where its figure is taken."""
        raw = entrant.get("scores") if isinstance(entrant, dict) else None
        try:
            scores = [Condition.model_validate(condition) for condition in raw] if isinstance(raw, list) else []
        except ValueError:
            return decision  # reported where it is written
        wanted = self._block.score
        if wanted is None and len(scores) > 1:
            raise _Unclear("", f"needs `score`: `{decision.judged}` is asked for several; the figure of one decides")
        if wanted is not None and wanted not in scores:
            raise _Unclear("score", f"`{decision.judged}` is not asked for {wanted:g}")
        score = wanted or next(iter(scores), None)
        return Decision(decision.judged, decision.goal, decision.stage, decision.judge, score)

    def _of_training(self, stage: str, figure: str) -> Decision:
        block = self._block
        if figure != _ACCURACY and not figure.startswith("eval_"):
            what = f"`{figure}` is none of" if figure else "needs one of"
            known = f"`{_ACCURACY}`, and those of its summary that begin with `eval_`, such as `{stage}.eval_loss`"
            raise _Unclear("metric", f"{what} the held-out figures of `{stage}`: {known}")
        if block.goal is None:
            raise _Unclear("", f"needs `goal`: whether to maximize or minimize {figure}")
        for key in ("entrant", "score"):
            if getattr(block, key) is not None:
                raise _Unclear(key, "belongs to the figure of an evaluation")
        return Decision(stage, block.goal, figure=figure)

    def upstream_of(self, judged: str) -> set[str]:
        """The stage itself, and all that it needs in any variant."""
        reads = {name: {read for stages in self._written for read in stages[name].reads} for name in self._written[0]}
        return upstream_of(reads, judged)

    def _all_matter(self, judged: str) -> bool:
        """Whether every swept field is one of the judged stage, or of one upstream of it."""
        upstream = self.upstream_of(judged)
        others = [field for field in self._block.vary if field.partition(".")[0] not in upstream]
        for field in others:
            self._fault(("vary", field), f"changes nothing of `{judged}`, whose figure decides; give it its own sweep")
        return not others

    def _fault(self, key: tuple[str, ...], message: str) -> None:
        if self._at and key[:1] != ("vary",):
            key = (*self._at, *(("figure",) if key == ("metric",) else key))
        self._recipe.fault(self._faults, (SWEEP, *key), message)


class _Unclear(Exception):
    """`key` of the sweep is at fault; the empty one: the sweep as a whole."""

    def __init__(self, key: str, message: str) -> None:
        super().__init__(message)
        self.key = (key,) if key else ()
        self.message = message
