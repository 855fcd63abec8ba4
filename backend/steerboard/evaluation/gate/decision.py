"""The gate: an evaluation's report is checked against rules. Pass, fail, or invalid, which beats fail."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence

from sqlalchemy.orm import Session

from steerboard.accounts.tables import Project
from steerboard.evaluation.gate.rules import METRICS, BaselinePin, GateRule, GateRules, parse_rules, sources_needed
from steerboard.evaluation.gate.values import Differences, Figure, figures
from steerboard.platform.http.errors import NotFound
from steerboard.registry.service import get_model
from steerboard_contracts.report.evaluation import EvaluationReport, Unfinished
from steerboard_contracts.report.gate import GateRuleResult, GateVerdict
from steerboard_contracts.report.sections.comparison import By
from steerboard_contracts.wording import listed

_OPS: dict[str, Callable[[float, float], bool]] = {
    ">": operator.gt,
    ">=": operator.ge,
    "<": operator.lt,
    "<=": operator.le,
    "==": operator.eq,
    "!=": operator.ne,
}
_WORST = ("invalid", "fail", "pass")


def expected_hashes(
    session: Session, project: Project, pins: Mapping[str, BaselinePin]
) -> dict[str, tuple[str | None, str]]:
    """The content hash that each entrant must have, None where nothing has it; and what was pinned, in words."""
    return {name: _expected(session, project, pin) for name, pin in pins.items()}


def _expected(session: Session, project: Project, pin: BaselinePin) -> tuple[str | None, str]:
    if pin.model is None:
        return pin.content_hash, f"content hash {pin.content_hash}"
    name, _, stage = pin.model.rpartition("@") if not pin.model.startswith("@") else (pin.model, "", "")
    name, stage = (name, stage) if name else (stage, "")
    try:
        model = get_model(session, project, name)
    except NotFound as error:
        return None, f"model {pin.model} ({error.detail})"
    if stage and model.stage != stage:
        return None, f"model {pin.model} ({model.name} is {f'in {model.stage}' if model.stage else 'in no stage'})"
    return model.artifact_hash, f"model {pin.model}"


def decide(
    report: EvaluationReport,
    given: GateRules,
    pinned: Mapping[str, tuple[str | None, str]] | None = None,
    differences: Differences | None = None,
) -> GateVerdict:
    """Every rule with its value and bound. `pinned`: as from `expected_hashes`; `differences`: as from
    `reward_differences`. Raises `BadInput` for the rules."""
    rules = parse_rules(given, [entrant.name for entrant in report.entrants])
    # Another baseline leaves no rule decidable, however its figure looks.
    others = _other_baselines(report, pinned or {})
    broken = [_unfinished(report, rule) + others for rule in rules]
    results = [
        _result([_judged(report, rule, raw, figure, given) for figure in figures(report, rule, differences)], why)
        for rule, raw, why in zip(rules, given.rules, broken, strict=True)
    ]
    pairs = list(zip(results, broken, strict=True))
    outcomes = {result.outcome for result in results}
    return GateVerdict(
        evaluation=report.evaluation,
        evaluation_id=report.evaluation_id,
        verdict=next(outcome for outcome in _WORST if outcome in outcomes),
        rules=results,
        why=list(dict.fromkeys(reason for why in broken for reason in why))
        + [f"{result.text}: {result.why}" for result, why in pairs if result.outcome != "pass" and not why],
    )


def _unfinished(report: EvaluationReport, rule: GateRule) -> list[str]:
    """What is under way or has failed, of that on which the rule's figure depends."""
    needed = sources_needed(rule)
    return [
        f"the evaluation is not finished: {part.words}"
        for part in report.unfinished_parts
        if part.by is None or any(_is_of(part, kind, name) for kind, name in needed)
    ]


def _is_of(part: Unfinished, kind: By, name: str | None) -> bool:
    """A campaign is also named with its criterion, `round-1: helpful`."""
    return part.by == kind and (name is None or name == part.source or name.startswith(f"{part.source}: "))


def _other_baselines(report: EvaluationReport, pinned: Mapping[str, tuple[str | None, str]]) -> list[str]:
    reasons = []
    for name, (expected, words) in pinned.items():
        actual = next(row.content_hash for row in report.entrants if row.name == name)
        if expected is None or actual != expected:
            reasons.append(f"the entrant {name} is not the pinned {words}; it has content hash {actual or 'unknown'}")
    return reasons


def _result(judged: Sequence[GateRuleResult], broken: Sequence[str]) -> GateRuleResult:
    """The worst result of several sources: what a rule asks must hold for each."""
    worst = min(judged, key=lambda result: _WORST.index(result.outcome))
    if len(judged) > 1:
        worst.why += f" (of {len(judged)} sources, for each of which it must hold)"
    if broken:
        worst.outcome, worst.why = "invalid", "; ".join(broken)
    return worst


def _judged(
    report: EvaluationReport, rule: GateRule, raw: dict[str, object], figure: Figure, given: GateRules
) -> GateRuleResult:
    value = figure.stats.get(rule.stat)
    result = GateRuleResult(
        rule=raw,
        text=_text(report, rule, figure),
        value=value,
        bound=rule.value,
        outcome="invalid",
        why=_missing(report, rule, figure, given) or "",
    )
    if result.why:
        return result
    if value is None:
        result.why = f"it has no {rule.stat}: there is not enough data"
        return result
    result.outcome = "pass" if _OPS[rule.op](value, rule.value) else "fail"
    result.why = f"{_number(value)} is {'' if result.outcome == 'pass' else 'not '}{rule.op} {_number(rule.value)}"
    if figure.note is not None:
        result.why += f"; {figure.note}"
    return result


def _missing(report: EvaluationReport, rule: GateRule, figure: Figure, given: GateRules) -> str | None:
    """Why the figure cannot decide anything."""
    vs = rule.vs or (report.baseline if METRICS[rule.metric].vs == "needed" else None)
    for judge in report.judges:
        if judge.judge not in figure.judges:
            continue
        if not judge.valid:
            return f"judge {judge.judge} is not valid: {judge.invalid_because or 'it has given no verdicts'}"
        silent = next((name for name in (rule.entrant, vs) if name in judge.invalid_entrants), None)
        if silent is not None:
            return f"judge {judge.judge} is not valid for {silent}: {judge.invalid_entrants[silent]}"
    if figure.why is not None:
        return figure.why
    if METRICS[rule.metric].counted:
        return None
    needed = rule.min_n or given.min_n
    if figure.n is not None and figure.n < needed:
        return f"{figure.n} are too few to decide on; {needed} are needed"
    if rule.benchmark is not None:
        return None  # the entrant's answers are to other prompts
    allowed = given.max_missing if rule.max_missing is None else rule.max_missing
    for row in report.entrants:
        total = row.responses + row.missing
        if row.name in (rule.entrant, vs) and row.missing > allowed * total:
            return f"{row.missing} of {total} answers of {row.name} are missing, more than {allowed:.0%}"
    return None


def _text(report: EvaluationReport, rule: GateRule, figure: Figure) -> str:
    """`win_rate of dt vs sft by judge gpt-4, ci_low > 0.5`."""
    vs = rule.vs or (report.baseline if METRICS[rule.metric].vs == "needed" else None)
    by = figure.by or (rule.by if isinstance(rule.by, str) else listed(rule.by or []))
    words = [rule.benchmark if rule.metric == "benchmark" and rule.benchmark else rule.metric]
    words += [f"on {rule.benchmark}"] if rule.benchmark and rule.metric != "benchmark" else []
    words += [f"of {rule.entrant}"] if rule.entrant else []
    words += [f"vs {vs}"] if vs else []
    words += [f"by {by}"] if by else []
    stat = "" if rule.stat == "value" else f", {rule.stat}"
    return f"{' '.join(words)}{stat} {rule.op} {_number(rule.value)}"


def _number(value: float | bool) -> str:
    return str(value).lower() if isinstance(value, bool) else f"{value:.6g}"
