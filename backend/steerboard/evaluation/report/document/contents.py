"""What a document has of a report, for HTML and PDF alike."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import get_args

from steerboard.evaluation.report.document.cells import NONE, figure, interval, p_value
from steerboard.evaluation.report.document.several_rewards import distances, several_rewards
from steerboard.evaluation.report.sections.outcomes import percent, source_name
from steerboard.sharing.blocks import Block, Cell, Document, Fold, Grid, Items, Text
from steerboard_contracts.models import Ancestor
from steerboard_contracts.report.academic import AcademicRow, EntrantAcademic
from steerboard_contracts.report.estimate import Estimate
from steerboard_contracts.report.evaluation import EvaluationReport
from steerboard_contracts.report.sections.comparison import Comparison, pair_of
from steerboard_contracts.report.sections.costs import cost_cells
from steerboard_contracts.report.sections.fluency import fluency_cells
from steerboard_contracts.report.sections.headline import Headline, SourceHeadline
from steerboard_contracts.report.sections.judges import JudgeReport, JuryReport
from steerboard_contracts.wording import listed

BLIND = (
    "People still rank in this evaluation. Until they are done, entrants are called A, B, C, and sources have numbers; "
    "juries, and sources that compare with a baseline only, are left out."
)


def document_of(report: EvaluationReport, *, blind: bool = False) -> Document:
    """No names of annotators and no addresses. `blind`: the report is a `blinding.blinded` one."""
    headline = report.headline or Headline(text="")
    prompts = f"{report.prompts} prompts" + (f", {report.prompts_from}" if report.prompts_from else "")
    about = f"{prompts}; version {report.version}, computed on {report.computed_at:%d %B %Y at %H:%M} UTC."
    blocks: list[Block] = [Text(BLIND)] if blind else []
    if report.human or report.juries or report.judges or report.rewards:
        blocks.append(_methods(report))
    return Document(
        title=report.evaluation,
        about=about,
        answer=headline.text,
        facts=tuple(_facts(headline)),
        against=tuple(reservation.text for reservation in headline.reservations),
        blocks=tuple(blocks),
        folds=(
            *_sources(report, headline.sources),
            *several_rewards(report),
            *distances(report),
            *_fluency(report),
            *_academic(report),
            *_agreement(report),
            *_costs(report),
            *_recipe(report),
            _seen(report),
        ),
    )


def _facts(headline: Headline) -> Iterator[tuple[str, str]]:
    if headline.by is not None and headline.source is not None:
        yield "Source", source_name(headline.by, headline.source)
    if headline.margin is not None:
        yield f"Win rate against {headline.margin.over}", percent(headline.margin.win_rate)
        if headline.margin.difference is not None:
            yield f"Difference of means to {headline.margin.over}", interval(headline.margin.difference)
    if headline.over:
        yield "Over", ", ".join(headline.over)
    if headline.items:
        yield "Items", str(headline.items)


def _methods(report: EvaluationReport) -> Grid:
    """Every entrant by every source."""
    columns = [
        (label, field)
        for field in ("human", "jury", "judge", "reward")
        for label in dict.fromkeys(name for row in report.methods for name in getattr(row, field))
    ]
    kinds = {"human": "rank score, people", "jury": "score, jury", "judge": "score, judge", "reward": "reward"}
    return Grid(
        title="Entrants by every source",
        heads=("Entrant", *(f"{label} ({kinds[field]})" for label, field in columns), "Characters"),
        rows=tuple(
            (
                Cell(row.entrant),
                *(figure(getattr(row, field).get(label)) for label, field in columns),
                figure(row.length, digits=0),
            )
            for row in report.methods
        ),
        note="Means with their 95% intervals over prompts.",
    )


def _sources(report: EvaluationReport, headlines: Sequence[SourceHeadline]) -> Iterator[Fold]:
    sections: list[tuple[str, Comparison]] = [
        *(
            (f"{human.done_items} of {human.items} items, {human.rankings} rankings.", human.comparison)
            for human in report.human
        ),
        *((_jury(jury), jury.comparison) for jury in report.juries),
        *((_judge(judge), judge.comparison) for judge in report.judges),
        *((f"In {reward.units} units.", reward.comparison) for reward in report.rewards),
    ]
    for headline, (words, comparison) in zip(headlines, sections, strict=True):
        title = source_name(headline.by, headline.source)
        yield Fold(title[0].upper() + title[1:], headline.text, (Text(words, small=True), *_comparison(comparison)))


def _jury(report: JuryReport) -> str:
    return f"The {report.rule} of {listed(report.judges)}." if report.valid else "Too few of its judges count."


def _judge(report: JudgeReport) -> str:
    lost = {"unparsed": report.unparsed, "refused": report.refused, "failed": report.errors}
    reasons = listed([f"{count} {name}" for name, count in lost.items() if count])
    return f"{report.ok} of {report.verdicts} verdicts count{f' ({reasons})' if reasons else ''}."


def _comparison(comparison: Comparison) -> Iterator[Block]:
    if not comparison.items:
        return
    if comparison.friedman is not None:
        test = comparison.friedman
        yield Text(f"Friedman over {test.entrants} entrants: p {p_value(test.p)}.", small=True)
    strengths = {row.entrant: row.strength for row in comparison.bradley_terry}
    best = sorted(comparison.scores, key=lambda row: float("inf") if row.mean.value is None else -row.mean.value)
    yield Grid(
        title="Means",
        heads=("Entrant", "Mean", *(["Bradley-Terry strength"] if strengths else [])),
        rows=tuple(
            (Cell(row.entrant), figure(row.mean), *([figure(strengths.get(row.entrant))] if strengths else []))
            for row in best
        ),
    )
    names = [row.entrant for row in best]
    if len(names) > 2:
        yield _matrix(comparison, names)
    yield Grid(
        title="Every pair",
        heads=(
            "Pair",
            "Wins / ties / losses",
            "Win rate",
            "Length-matched",
            "Length-adjusted",
            "Difference",
            "p, Holm",
        ),
        rows=tuple(
            (
                Cell(f"{row.a} against {row.b}"),
                Cell(" / ".join(f"{count:.4g}" for count in (row.wins, row.ties, row.losses))),
                figure(row.win_rate, share=True),
                figure(row.length_matched, share=True),
                figure(row.length_adjusted, share=True),
                figure(row.difference),
                Cell(p_value(row.p_holm), "significant" if row.significant else ""),
            )
            for row in comparison.pairs
        ),
    )


def _matrix(comparison: Comparison, names: Sequence[str]) -> Grid:
    rows = []
    for name in names:
        cells = [Cell(name)]
        for other in names:
            row = pair_of(comparison, name, other) if other != name else None
            share = row.win_rate.value if row is not None else None
            cells.append(Cell(NONE if share is None else f"{math.floor(100 * share + 0.5)}%", shade=share))
        rows.append(tuple(cells))
    return Grid("Win rate of the row against the column", ("Entrant", *names), tuple(rows))


def _academic(report: EvaluationReport) -> Iterator[Fold]:
    """No one has to judge for these; a blind report has none."""
    if not report.academic:
        return
    blocks: list[Block] = []
    for academic in report.academic:
        blocks.append(_benchmarks(academic))
        blocks += [
            Text(
                f"{row.task.task} is not compared with the {other.vs} model {other.model}: {other.words}.",
                small=True,
            )
            for row in academic.rows
            for other in row.not_compared
        ]
    words = "The newest result of each task; none of it depends on the prompts of this evaluation."
    yield Fold("Academic benchmarks", words, tuple(blocks))


def _benchmarks(academic: EntrantAcademic) -> Grid:
    return Grid(
        title=academic.entrant,
        heads=("Figure", "Value", "Standard error", *(f"Less {vs}" for vs in get_args(Ancestor)), "Items", "Shots"),
        rows=tuple(
            (
                Cell(f"{row.task.task}.{value.name}", "chat template" if row.task.template else ""),
                Cell(f"{value.value:,.3f}"),
                Cell(NONE if value.stderr is None else f"{value.stderr:.3f}"),
                *(figure(_gain(row, value.name, vs), digits=3) for vs in get_args(Ancestor)),
                Cell(str(row.task.items), "" if row.task.whole else f"of {row.task.of}"),
                Cell(NONE if row.task.shots is None else str(row.task.shots)),
            )
            for row in academic.rows
            for value in row.task.figures
        ),
    )


def _gain(row: AcademicRow, figure: str, vs: Ancestor) -> Estimate | None:
    return next((gain.difference for gain in row.differences if (gain.vs, gain.figure) == (vs, figure)), None)


def _agreement(report: EvaluationReport) -> Iterator[Fold]:
    if not report.agreement:
        return
    rows = tuple(
        (
            Cell(f"{source_name(row.a_by, row.a)} and {source_name(row.b_by, row.b)}"),
            figure(row.item, share=True),
            figure(row.spearman),
            Cell(f"{row.entrants}, {row.items}"),
        )
        for row in report.agreement
    )
    heads = ("Sources", "Same on an item", "Spearman of means", "Entrants, items")
    words = f"{len(rows)} pairs of sources on the same items; a tie of one of them counts half."
    yield Fold("Agreement", words, (Grid("Agreement between sources", heads, rows),))


def _fluency(report: EvaluationReport) -> Iterator[Fold]:
    """A blind report has none."""
    if report.fluency is None or not report.fluency.entrants:
        return
    by, rows = report.fluency.perplexity_by, report.fluency.entrants
    heads = ("Distinct-1", "Distinct-2", "Empty", "Repeated", "Cut", "Tokens")
    grid = Grid(
        title="Fluency",
        heads=("Entrant", *([f"Perplexity under {by}"] if by else []), *heads),
        rows=tuple(
            (
                Cell(row.entrant, f"No perplexity: {row.why}" if row.why else ""),
                *([figure(row.perplexity)] if by else []),
                *map(Cell, fluency_cells(row)),
            )
            for row in rows
        ),
        note="Distinct words and pairs of words over all; shares of answers; tokens of an answer.",
    )
    yield Fold("Fluency", f"Whether the answers of {len(rows)} entrants are still fluent.", (grid,))


def _costs(report: EvaluationReport) -> Iterator[Fold]:
    """A blind report has none."""
    if not report.costs:
        return
    words = "Device-seconds of the run that made each entrant, and of every run that it needs, each counted once."
    heads = ("Entrant", "Own run", "With all it needs", "Of it shared", "Shared runs")
    rows = tuple(tuple(map(Cell, cost_cells(cost))) for cost in report.costs)
    yield Fold("Costs", words, (Grid("Device-seconds", heads, rows),))


def _recipe(report: EvaluationReport) -> Iterator[Fold]:
    """What the paper claims, checked when the stage ended. A blind report has none."""
    recipe = report.recipe
    if recipe is None:
        return
    met = tuple(check.text for check in recipe.checks if check.met)
    missed = tuple(check.text for check in recipe.checks if not check.met)
    blocks: list[Block] = [Items("Met", met)] if met else []
    blocks += [Items("Not met", missed)] if missed else []
    if recipe.control is not None:
        curve = zip(recipe.control.requested, recipe.control.achieved, strict=True)
        rows = tuple((Cell(f"{score:g}"), Cell(f"{achieved:.2f}")) for score, achieved in curve)
        blocks.append(Grid("Control", ("Requested score", f"Achieved reward ({recipe.units})"), rows))
    if recipe.training:
        blocks.append(Items("Training", tuple(recipe.training)))
    if recipe.warnings:
        blocks.append(Items("Caveats", tuple(recipe.warnings)))
    words = f"{len(met)} of {len(recipe.checks)} claims met." if recipe.checks else "What the stage kept."
    yield Fold("Recipe", words, tuple(blocks))


def _seen(report: EvaluationReport) -> Fold:
    seen = report.contamination
    words = (
        f"{seen.exact} of {seen.prompts} prompts occur in training data as they are, {seen.near} nearly."
        if seen.checked
        else "The prompts were not checked against training data."
    )
    where = tuple(name for name in seen.checked if name)
    return Fold("Prompts seen in training", words, (Items("Checked against", where),) if where else ())
