"""Whether the health rules of a run hold, by nothing but its figures: an attempt that resumes finds the same."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from steerboard_contracts.conditional import CONDITION_GAIN
from steerboard_contracts.errors import SteerboardError
from steerboard_contracts.watching.health import (
    BothFallRule,
    EntropyRule,
    Finding,
    HealthRule,
    HeldOutLossRule,
    JudgeRule,
    KlRule,
    OveroptimisationRule,
    RouterCollapseRule,
    SamplerKlRule,
    ThresholdRule,
    TiedRule,
    UnusedConditionRule,
    ZeroZRule,
)
from steerboard_contracts.wording import listed
from steerboard_workers.stages.training.watching.trend import line_of

Figures = list[tuple[int, float]]

_REWARD = "reward"
# Figures of an evaluation, as is that of `BothFallRule`. Reward models have that figure without these.
_SIDES = ("eval_chosen_log_prob", "eval_rejected_log_prob")
# The last evaluation alone has the gain over the mixture.
_LAST_GAIN = "eval_condition_gain_mixture"
_GAIN = (CONDITION_GAIN, f"{CONDITION_GAIN}_low", f"{CONDITION_GAIN}_high")


class StoppedByHealthRule(SteerboardError):
    """A health rule with `action: stop` holds."""

    code = "stopped_by_health_rule"
    status = 422
    title = "A health rule stopped the run"


class HealthWatch:
    """The health rules of one run. A rule is found when it holds and did not at the figure before."""

    def __init__(self, rules: Sequence[HealthRule]) -> None:
        self.rules = list(rules)
        watched = (_REWARD, *_SIDES, *_GAIN, _LAST_GAIN, *map(_figure_of, rules))
        self._figures: dict[str, Figures] = {name: [] for name in watched}

    def add(self, step: int, values: Mapping[str, float]) -> list[Finding]:
        """The figures of an optimiser step, each step once and in order. Returns the rules that now hold."""
        for name, figures in self._figures.items():
            if name in values:
                figures.append((step, values[name]))
        findings = []
        for place, rule in enumerate(self.rules):
            name = _figure_of(rule)
            reason = self._news(rule, self._figures[name]) if name in values else None
            if reason is not None:
                findings.append(Finding(step=step, rule=place, kind=rule.kind, action=rule.action, reason=reason))
        return findings

    def _news(self, rule: HealthRule, figures: Figures) -> str | None:
        now = self._reason(rule, figures, len(figures))
        return None if now is None or self._reason(rule, figures, len(figures) - 1) is not None else now

    def _reason(self, rule: HealthRule, figures: Figures, end: int) -> str | None:
        """Why the rule holds at the first `end` figures, if it does."""
        if isinstance(rule, JudgeRule):
            return self._parted(rule, figures, end)
        if isinstance(rule, OveroptimisationRule):
            return self._overoptimised(rule, figures, end)
        if isinstance(rule, BothFallRule):
            return self._both_fallen(rule, figures, end)
        if isinstance(rule, UnusedConditionRule):
            return self._unused(rule, figures, end)
        if isinstance(rule, HeldOutLossRule):
            return self._overfits(rule, figures, end)
        if end < rule.steps:
            return None
        values = [value for _, value in figures[end - rule.steps : end]]
        lasting = f"for {rule.steps} figures in a row" if rule.steps > 1 else "once"
        if isinstance(rule, TiedRule):
            return f"the answers to every prompt have tied rewards, {lasting}" if min(values) >= 1 else None
        if isinstance(rule, ZeroZRule):
            alone = f"z is 0, {lasting}: each answer is learned by its own log-ratio alone"
            return alone if max(values) <= 0 else None
        if isinstance(rule, EntropyRule | RouterCollapseRule):
            first = figures[0][1]
            if first <= 0 or max(values) >= rule.below * first:
                return None
            if isinstance(rule, RouterCollapseRule):
                return (
                    f"a layer uses {values[-1]:.3g} of its experts in effect, {lasting} below {rule.below:g} of the "
                    f"first figure, {first:.3g}. Raise router_aux_loss, or set freeze_router"
                )
            return f"entropy below {rule.below:g} of the first, {first:.3g}, {lasting}: {values[-1]:.3g}"
        if isinstance(rule, ThresholdRule):
            return _outside(rule, values, lasting)
        if min(values) <= rule.above:
            return None
        if isinstance(rule, SamplerKlRule):
            return (
                f"what samples is another policy than what learns, {lasting}: its KL from the policy is above "
                f"{rule.above:g} nats a token, {values[-1]:.4g}. Sample with the precision that trains, lower "
                "staleness or lr, or weigh or mask answers (sampler_weight_cap, sampler_mean_high)"
            )
        what = f"KL above {rule.above:g} nats" if isinstance(rule, KlRule) else f"clip share above {rule.above:g}"
        return f"{what}, {lasting}: {values[-1]:.4g}"

    def _parted(self, rule: JudgeRule, judged: Figures, end: int) -> str | None:
        """Rewards are means over the steps since the judge's figure before, or since the start."""
        last = judged[max(0, end - rule.falls - 1) : end]
        if len(last) <= rule.falls or any(after[1] >= before[1] for before, after in itertools.pairwise(last)):
            return None
        start = judged[end - rule.falls - 2][0] if end > rule.falls + 1 else 0
        before, now = self._reward(start, last[0][0]), self._reward(last[-2][0], last[-1][0])
        if before is None or now is None or now <= before:
            return None
        times = f"{rule.falls} times in a row" if rule.falls > 1 else "once"
        return (
            f"the reward rose from {before:.4g} to {now:.4g} while {rule.judge} fell {times}, from {last[0][1]:.4g} to "
            f"{last[-1][1]:.4g}"
        )

    def _overoptimised(self, rule: OveroptimisationRule, judged: Figures, end: int) -> str | None:
        """Rewards are means over the steps since the judge's figure before, or since the start."""
        if end < rule.figures:
            return None
        places = range(end - rule.figures, end)
        means = [self._reward(judged[place - 1][0] if place else -1, judged[place][0]) for place in places]
        rewards = [mean for mean in means if mean is not None]
        judgements = [judged[place][1] for place in places]
        if len(rewards) < rule.figures:
            return None
        rise, error = line_of(rewards)
        judged_rise, _ = line_of(judgements)
        if rise <= 2 * error or judged_rise > 0:
            return None
        half = rule.figures // 2
        before, now = (sum(part) / half for part in (rewards[:half], rewards[-half:]))
        earlier, later = (sum(part) / half for part in (judgements[:half], judgements[-half:]))
        return (
            f"over {rule.figures} figures the reward rose, from {before:.4g} to {now:.4g}, and {rule.judge} did not, "
            f"from {earlier:.4g} to {later:.4g}. Raise kl_weight, stop earlier, or correct the reward by the answers "
            "that it prefers"
        )

    def _both_fallen(self, rule: BothFallRule, figures: Figures, end: int) -> str | None:
        """Both sides are below their floor at each of the last evaluations, and the figure fell before each of them."""
        last = [value for _, value in figures[max(0, end - rule.steps - 1) : end]]
        if len(last) <= rule.steps or any(after >= before for before, after in itertools.pairwise(last)):
            return None
        fallen = []
        for name in _SIDES:
            values = [value for _, value in self._figures[name][:end]]
            if len(values) < end or max(values[-rule.steps :]) >= values[0] - rule.floor:
                return None
            fallen.append(f"{values[0] - values[-1]:.4g}")
        times = f"{rule.steps} times in a row" if rule.steps > 1 else "once"
        return (
            f"chosen and rejected answers have lost {listed(fallen)} nats since the first evaluation while "
            f"{rule.figure} fell {times}, from {last[0]:.4g} to {last[-1]:.4g}"
        )

    def _overfits(self, rule: HeldOutLossRule, figures: Figures, end: int) -> str | None:
        last = figures[max(0, end - rule.rises - 1) : end]
        if len(last) <= rule.rises or any(after[1] <= before[1] for before, after in itertools.pairwise(last)):
            return None
        times = f"{rule.rises} times in a row" if rule.rises > 1 else "once"
        return f"the held-out loss rose {times}, from {last[0][1]:.4g} at step {last[0][0]} to {last[-1][1]:.4g}"

    def _unused(self, rule: UnusedConditionRule, figures: Figures, end: int) -> str | None:
        """Too few prompts have no interval, and then nothing is known."""
        step = figures[end - 1][0] if end else 0
        if end < rule.from_evaluation and step not in dict(self._figures[_LAST_GAIN]):
            return None
        gain, low, high = (dict(self._figures[name]).get(step) for name in _GAIN)
        if low is None or low > 0:
            return None
        return (
            f"the score is not used: answers gain {gain:.3g} nats by their own over a shuffled one, 95% interval "
            f"{low:.3g} to {high:.3g}. Train on more data or for fewer epochs, or ask with guidance"
        )

    def _reward(self, after: int, until: int) -> float | None:
        recent = itertools.takewhile(lambda figure: figure[0] > after, reversed(self._figures[_REWARD]))
        inside = [value for step, value in recent if step <= until]
        return sum(inside) / len(inside) if inside else None


def _outside(rule: ThresholdRule, values: Sequence[float], lasting: str) -> str | None:
    above = rule.above is not None and min(values) > rule.above
    below = rule.below is not None and max(values) < rule.below
    if not above and not below:
        return None
    bound = f"above {rule.above:g}" if above else f"below {rule.below:g}"
    return f"{rule.figure} {bound}, {lasting}: {values[-1]:.4g}"


def _figure_of(rule: HealthRule) -> str:
    if isinstance(rule, JudgeRule | OveroptimisationRule):
        return rule.judge
    if isinstance(rule, BothFallRule | ThresholdRule):
        return rule.figure
    if isinstance(rule, ZeroZRule):
        return "z"
    if isinstance(rule, UnusedConditionRule):
        return CONDITION_GAIN
    if isinstance(rule, HeldOutLossRule):
        return "eval_loss"
    if isinstance(rule, RouterCollapseRule):
        return "experts_used_min"
    return "equal_groups" if isinstance(rule, TiedRule) else rule.kind
