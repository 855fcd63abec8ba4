"""The figures that a rule is about, looked up in the report."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

from steerboard.evaluation.gate.rules import GateRule, two_of
from steerboard.evaluation.report.sections.human import human_label
from steerboard.evaluation.report.sections.methods import against
from steerboard.evaluation.report.sections.reward_hacking import length_ratio
from steerboard_contracts.held_out_changes import in_words
from steerboard_contracts.report.benchmark import PairedShare
from steerboard_contracts.report.estimate import Estimate
from steerboard_contracts.report.evaluation import EvaluationReport
from steerboard_contracts.report.sections.comparison import By, Comparison, PairRow, pair_of, score_of
from steerboard_contracts.report.sections.human import HumanReport
from steerboard_contracts.report.sections.judges import JudgeReport, JuryReport
from steerboard_contracts.report.sections.rewards import RewardReport
from steerboard_contracts.wording import listed

Section = HumanReport | JudgeReport | JuryReport | RewardReport
Differences = Mapping[tuple[str, str, str], PairedShare | str]
"""By content hash of a reward model, the other one and the benchmark: how far the two differ, or why that is not known.
None of a model with itself."""


@dataclass(frozen=True)
class Figure:
    """`stats` by name, None where there is none. `n`: what it was computed over, None where that does not matter.

    `by`: the source in words. `judges`: those whose validity it depends on. `why`: what is missing, where something is.
    `note`: what to know about the figure.
    """

    stats: dict[str, float | bool | None]
    n: int | None = None
    by: str | None = None
    judges: tuple[str, ...] = ()
    why: str | None = None
    note: str | None = None


@dataclass
class Sources:
    """The sections of one kind, or `why` there are none."""

    sections: list[tuple[str, Section]] = field(default_factory=list)
    why: str | None = None


def figures(report: EvaluationReport, rule: GateRule, differences: Differences | None = None) -> list[Figure]:
    """One for each source that the rule is about; a figure with `why` where there is none to look at."""
    vs = rule.vs or report.baseline
    match rule.metric:
        case "length_mean":
            return [_of_estimate(next(row.length for row in report.entrants if row.name == rule.entrant))]
        case "condition_gain":
            gain = next(row.condition_gain for row in report.entrants if row.name == rule.entrant)
            why = f"no gain by its condition was measured in the training of {rule.entrant}"
            return [_of_estimate(gain) if gain is not None else Figure({}, why=why)]
        case "length_ratio":
            return [_of_estimate(length_ratio(report, rule.entrant or "", vs or ""))]
        case "reward_hacking":
            return [_hacking(report, rule.entrant or "", vs or "")]
        case "seen_share":
            return [_seen(report)]
        case "held_out_changes":
            changed = sum(change.flipped + change.dropped + change.edited for change in report.held_out_changes)
            return [Figure({"value": changed}, note=in_words(report.held_out_changes) or None)]
        case "responses_missing":
            rows = [row for row in report.entrants if rule.entrant in (None, row.name)]
            total = sum(row.responses + row.missing for row in rows)
            return [Figure({"value": sum(row.missing for row in rows), "n": total}, total)]
        case "rank_correlation":
            return _correlations(report, rule)
        case "benchmark":
            return [_academic(report, rule)]
        case "n" if rule.by is None:
            rows = [row for row in report.entrants if rule.entrant in (None, row.name)]
            return [Figure({"value": sum(row.responses for row in rows)})]
    assert isinstance(rule.by, str)
    sources = sources_of(report, rule.by, rule.source if isinstance(rule.source, str) else None)
    if sources.why is not None:
        return [Figure({}, why=sources.why)]
    if rule.metric == "benchmark_accuracy":
        return _on_benchmark(rule, sources, differences or {})
    return [_by(rule, label, section, vs) for label, section in sources.sections]


def sources_of(report: EvaluationReport, by: By, name: str | None) -> Sources:
    """The sources by name, or all of a kind. A campaign with criteria has its overall ranking, or without it each."""
    if by == "human":
        chosen = _people(report, name)
        known = [human_label(human.campaign, human.criterion) for human in report.human]
    else:
        every = _sections(report, by)
        chosen = [(label, section) for label, section in every if name in (None, label)]
        known = [label for label, _ in every]
    if chosen:
        return Sources(chosen)
    kind = {"human": "campaign", "judge": "judge", "jury": "jury", "reward": "reward model"}[by]
    if name is None:
        return Sources(why=f"the evaluation has no {kind}")
    return Sources(why=f"the evaluation has no {kind} {name!r}; it has {', '.join(known) or 'none'}")


def _sections(report: EvaluationReport, by: By) -> list[tuple[str, Section]]:
    match by:
        case "judge":
            return [(judge.judge, judge) for judge in report.judges]
        case "jury":
            return [(jury.jury, jury) for jury in report.juries]
        case _:
            return [(reward.reward_model, reward) for reward in report.rewards]


def _people(report: EvaluationReport, name: str | None) -> list[tuple[str, Section]]:
    exact = [human for human in report.human if human_label(human.campaign, human.criterion) == name]
    campaigns = exact or [human for human in report.human if name in (None, human.campaign)]
    ranked = {human.campaign for human in campaigns if human.criterion is None}
    return [
        (human_label(human.campaign, human.criterion), human)
        for human in campaigns
        if exact or human.criterion is None or human.campaign not in ranked
    ]


def _by(rule: GateRule, label: str, section: Section, vs: str | None) -> Figure:
    """The figure of one source."""
    judges = (label,) if isinstance(section, JudgeReport) else ()
    by = f"{rule.by} {label}"
    comparison, entrant = section.comparison, rule.entrant or ""
    pair = pair_of(comparison, entrant, vs) if vs else None
    match rule.metric:
        case "win_rate":
            return _of_pair(pair, pair.win_rate if pair else None, by, judges)
        case "mean_score" | "reward_mean" if rule.vs:
            return _of_pair(pair, pair.difference if pair else None, by, judges)
        case "mean_score" | "reward_mean":
            return _of_estimate(score_of(comparison, entrant), by, judges)
        case "bradley_terry":
            return _strength(comparison, entrant, rule.vs, by, judges)
        case "n":
            mean = score_of(comparison, entrant) if rule.entrant else None
            return Figure({"value": mean.n if mean else 0 if rule.entrant else comparison.items}, None, by, judges)
        case "accuracy" if isinstance(section, RewardReport):
            changes = in_words(section.held_out_changes)
            note = f"people changed held-out pairs: {changes}" if changes else None
            return replace(_of_estimate(section.accuracy, by), note=note)
        case "unparsed_rate" if isinstance(section, JudgeReport):
            rate = section.unparsed_rate if section.verdicts else None
            return Figure({"value": rate, "n": section.verdicts}, section.verdicts, by, judges)
        case "lc_win_rate" if isinstance(section, JudgeReport):
            return _length_controlled(section, entrant, by)
    raise AssertionError(rule.metric)  # parse_rules knows every metric


def _of_estimate(estimate: Estimate | None, by: str | None = None, judges: tuple[str, ...] = ()) -> Figure:
    if estimate is None:
        return Figure({}, by=by, judges=judges, why="there is no such figure")
    stats: dict[str, float | bool | None] = {
        "value": estimate.value,
        "ci_low": estimate.low,
        "ci_high": estimate.high,
        "n": estimate.n,
    }
    return Figure(stats, estimate.n, by, judges)


def _of_pair(pair: PairRow | None, estimate: Estimate | None, by: str, judges: tuple[str, ...]) -> Figure:
    if pair is None or estimate is None:
        return Figure({}, by=by, judges=judges, why="it has not compared the two")
    figure = _of_estimate(estimate, by, judges)
    return Figure({**figure.stats, "p": pair.p, "p_holm": pair.p_holm}, figure.n, by, judges)


def _on_benchmark(rule: GateRule, sources: Sources, differences: Differences) -> list[Figure]:
    """The accuracy of each reward model; with `vs` its difference to that one on the same items."""
    accuracies = []
    for label, section in sources.sections:
        assert isinstance(section, RewardReport)
        by, benchmark = f"reward {label}", rule.benchmark or ""
        if rule.vs is None:
            own = next(
                (
                    benchmark_row.result.accuracy
                    for benchmark_row in section.benchmarks
                    if benchmark_row.dataset == benchmark
                ),
                None,
            )
            accuracies.append(
                _of_estimate(own, by) if own else Figure({}, by=by, why=f"{label} has no result on {benchmark}")
            )
        elif (difference := differences.get((section.content_hash, rule.vs, benchmark))) is not None:
            accuracies.append(_of_difference(difference, by))
    return accuracies or [Figure({}, why=f"the evaluation has no reward model other than {rule.vs}")]


def _of_difference(difference: PairedShare | str, by: str) -> Figure:
    if isinstance(difference, str):
        return Figure({}, by=by, why=difference)
    figure = _of_estimate(difference.difference, by)
    return replace(figure, stats={**figure.stats, "p": difference.p})


def _strength(comparison: Comparison, entrant: str, vs: str | None, by: str, judges: tuple[str, ...]) -> Figure:
    """The entrant's Bradley-Terry strength; with `vs` the ratio of the two, which has no interval of its own."""
    strengths = {row.entrant: row.strength for row in comparison.bradley_terry}
    own = strengths.get(entrant)
    if own is None or vs is None:
        return _of_estimate(own, by, judges)
    other = strengths.get(vs)
    if other is None or not other.value or own.value is None:
        return Figure({}, by=by, judges=judges, why="one of the two has no finite strength")
    n = min(own.n, other.n)
    return Figure({"value": own.value / other.value, "n": n}, n, by, judges)


def _length_controlled(judge: JudgeReport, entrant: str, by: str) -> Figure:
    row = next((row for row in judge.alpaca_eval if row.entrant == entrant), None)
    if row is None or row.length_controlled is None:
        return Figure({}, by=by, judges=(judge.judge,), why="it has no length-controlled win rate")
    return Figure({"value": row.length_controlled / 100, "n": row.n}, row.n, by, (judge.judge,))


def _hacking(report: EvaluationReport, entrant: str, vs: str) -> Figure:
    rows = report.hacking if vs == report.baseline else against(report, vs).hacking
    row = next((row for row in rows if row.entrant == entrant), None)
    if row is None:
        return Figure({}, why="the baseline is not compared with itself")
    return Figure({"value": row.alarm}, why=None if row.alarm is not None else "; ".join(row.reasons))


def _seen(report: EvaluationReport) -> Figure:
    seen = report.contamination
    if not seen.checked or not seen.prompts:
        return Figure({}, why="the prompts were not checked against training data")
    return Figure({"value": (seen.exact + seen.near) / seen.prompts, "n": seen.prompts}, seen.prompts)


def _academic(report: EvaluationReport, rule: GateRule) -> Figure:
    """`TASK.FIGURE` of the entrant's model; with `vs` its difference to an ancestor."""
    task, _, name = (rule.benchmark or "").rpartition(".")
    rows = next((academic.rows for academic in report.academic if academic.entrant == rule.entrant), [])
    row = next((row for row in rows if row.task.task == task), None)
    figure = next((figure for figure in row.task.figures if figure.name == name), None) if row else None
    if row is None or figure is None:
        there = [f"{row.task.task}.{figure.name}" for row in rows for figure in row.task.figures]
        known = f"it has {', '.join(there)}" if there else "no academic run of it has finished"
        return Figure({}, why=f"the model of {rule.entrant} has no figure {rule.benchmark}; {known}")
    if not row.task.whole and not rule.partial:
        part = f"{row.task.items:,} of the {row.task.of:,} items of {task}"
        return Figure({}, why=f"only {part} were answered: run it without `limit`, or give the rule `partial: true`")
    if rule.vs is None:
        interval = figure.interval
        stats = {"ci_low": interval.low, "ci_high": interval.high} if interval else {}
        return Figure({"value": figure.value, "stderr": figure.stderr, "n": row.task.items, **stats}, row.task.items)
    compared = next(
        (difference for difference in row.differences if (difference.vs, difference.figure) == (rule.vs, name)), None
    )
    if compared is None:
        unlike = next((pair for pair in row.not_compared if pair.vs == rule.vs), None)
        but = f"; the nearest one has {unlike.words}" if unlike else ""
        same = "on the same items, asked and scored in the same way"
        return Figure({}, why=f"its {rule.vs} model has no {rule.benchmark} {same}{but}")
    return _of_estimate(compared.difference)


def _correlations(report: EvaluationReport, rule: GateRule) -> list[Figure]:
    first, other = two_of(rule)
    sides = []
    for kind, name in (first, other):
        sources = sources_of(report, kind, name)
        if sources.why is not None:
            return [Figure({}, why=sources.why)]
        sides.append({(kind, label) for label, _ in sources.sections})
    figures_ = []
    for row in report.agreement:
        ends = ((row.a_by, row.a), (row.b_by, row.b))
        if _joins(ends, sides):
            judges = tuple(label for source, label in ends if source == "judge")
            spearman = row.spearman
            stats: dict[str, float | bool | None] = {
                "spearman": spearman.value,
                "kendall": row.kendall.value,
                "ci_low": spearman.low,
                "ci_high": spearman.high,
                "n": row.items,
            }
            by = listed(f"{kind} {label}" for kind, label in ends)
            figures_.append(Figure(stats, row.items, by, judges))
    judges = tuple(label for side in sides for source, label in side if source == "judge")
    return figures_ or [Figure({}, judges=judges, why="no two such sources cover the same items")]


def _joins(ends: Iterable[tuple[By, str]], sides: list[set[tuple[By, str]]]) -> bool:
    first, second = ends
    return (first in sides[0] and second in sides[1]) or (first in sides[1] and second in sides[0])
