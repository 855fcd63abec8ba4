"""The reservations about a headline, each with its code, its figure and a sentence."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal

from steerboard.evaluation.report.sections.human import LOW_ALPHA, human_label
from steerboard.evaluation.report.sections.outcomes import percent, source_name
from steerboard.evaluation.report.sections.reward_hacking import length_ratio
from steerboard.evaluation.report.sections.warnings import FEW_PROMPTS
from steerboard_contracts.held_out_changes import in_words
from steerboard_contracts.report.evaluation import EvaluationReport
from steerboard_contracts.report.sections.comparison import By, Comparison, pair_of
from steerboard_contracts.report.sections.headline import Headline, Reservation, ReservationCode
from steerboard_contracts.wording import counted, listed

# The interval of the length ratio is above it.
LONGER = 1.1
# The interval of the share of equal verdicts is below it; two coins would agree on half.
LITTLE_AGREEMENT = 0.6
# The share of empty, and of cut answers, from which sources no longer assess whole answers.
MANY_CUT = MANY_EMPTY = 0.1
# Labels and numbers repeat for good reasons; where most answers do, they do not depend on their prompts.
MANY_REPEATED = 0.5

Sources = Mapping[tuple[By, str], Comparison]


def reservations(report: EvaluationReport, answer: Headline, sources: Sources) -> list[Reservation]:
    """The reservations about the source that answers, the gravest first. `sources`: the valid ones, by kind and
    label."""
    return [
        *_significance(answer),
        *_answers(report, answer),
        *_items(answer),
        *_progress(report),
        *_annotators(report, answer),
        *_disagreement(report, answer, sources),
        *_confirmation(answer, sources),
        *_length(report, answer),
        *_circular(report, answer),
        *_contamination(report),
        *_held_out_changes(report),
    ]


def _significance(answer: Headline) -> Iterator[Reservation]:
    margin = answer.margin
    if answer.winner is None:
        if answer.tied and answer.leader:
            text = f"{answer.leader} does not differ significantly from {listed(answer.tied)}."
            yield _made("not_significant", text, margin.p_holm if margin else None)
        else:
            yield _made("not_significant", "No entrant is significantly better than all others.")
    elif margin and margin.win_rate.low is not None and margin.win_rate.low <= 0.5:
        text = f"The interval of its win rate over {margin.over}, {percent(margin.win_rate)}, contains 50%."
        yield _made("not_significant", text, margin.win_rate.low)


def _answers(report: EvaluationReport, answer: Headline) -> Iterator[Reservation]:
    """Whether answers of the leader, or of all entrants together, are repeated, empty or cut."""
    rows = report.fluency.entrants if report.fluency is not None else []
    kinds: list[tuple[Literal["repeated", "empty", "cut"], float, str]] = [
        ("repeated", MANY_REPEATED, "are repeated"),
        ("empty", MANY_EMPTY, "are empty"),
        ("cut", MANY_CUT, "were cut at the token limit"),
    ]
    for code, many, words in kinds:
        shares = {row.entrant: (share, row.answers) for row in rows if (share := getattr(row, code)) is not None}
        known = sum(answers for _, answers in shares.values())
        if not known:
            continue
        of_all = sum(share * answers for share, answers in shares.values()) / known
        of_leader = shares[answer.leader][0] if answer.leader in shares else 0.0
        if of_leader > many:
            text = f"{of_leader:.1%} of the answers of {answer.leader} {words}; of all entrants' it is {of_all:.1%}."
            yield _made(code, text, of_leader)
        elif of_all > many:
            yield _made(code, f"{of_all:.1%} of all entrants' answers {words}.", of_all)


def _items(answer: Headline) -> Iterator[Reservation]:
    items = answer.margin.win_rate.n if answer.margin else answer.items
    if items < FEW_PROMPTS:
        text = f"With only {counted(items, 'item')}, only large differences can be distinguished from chance."
        yield _made("few_items", text, items)


def _progress(report: EvaluationReport) -> Iterator[Reservation]:
    reported = set()
    for human in report.human:
        if human.state != "closed" and human.campaign not in reported:
            reported.add(human.campaign)
            text = f"Campaign {human.campaign} is {human.state}: {human.done_items} of {human.items} items are ranked."
            yield _made("campaign_open", text, human.done_items / human.items if human.items else None)
    others = sum(part.by != "human" for part in report.unfinished_parts)
    if others:
        parts = "A part" if others == 1 else f"{others} parts"
        text = f"{parts} of the evaluation {'is' if others == 1 else 'are'} under way or failed."
        yield _made("unfinished", text, others)


def _annotators(report: EvaluationReport, answer: Headline) -> Iterator[Reservation]:
    for human in report.human:
        if answer.by == "human" and human_label(human.campaign, human.criterion) == answer.source:
            alpha = human.alpha.value
            if alpha is not None and alpha < LOW_ALPHA:
                text = f"Annotators agree little: Krippendorff's alpha is {alpha:.2f}, below {LOW_ALPHA}."
                yield _made("annotators_disagree", text, alpha)


def _disagreement(report: EvaluationReport, answer: Headline, sources: Sources) -> Iterator[Reservation]:
    here = (answer.by, answer.source)
    for other in answer.sources:
        comparison = sources.get((other.by, other.source))
        if comparison is None or answer.leader is None or other.leader is None or other.leader == answer.leader:
            continue
        row = pair_of(comparison, answer.leader, other.leader)
        if row is None or row.win_rate.value is None:
            continue
        noise = "" if row.significant else ", which may be noise"
        text = (
            f"{_name(other.by, other.source)} prefers {other.leader}: there the win rate of {answer.leader} over it "
            f"is {percent(row.win_rate)}{noise}."
        )
        yield _made("sources_disagree", text, row.win_rate.value)
    for pair in report.agreement:
        ends = {(pair.a_by, pair.a), (pair.b_by, pair.b)}
        high = pair.item.high
        if here in ends and "reward" not in (pair.a_by, pair.b_by) and high is not None and high < LITTLE_AGREEMENT:
            by, label = (pair.b_by, pair.b) if (pair.a_by, pair.a) == here else (pair.a_by, pair.a)
            text = f"{_name(by, label)} gives the same verdict on only {percent(pair.item)} of pairs of answers."
            yield _made("sources_disagree", text, pair.item.value)


def _confirmation(answer: Headline, sources: Sources) -> Iterator[Reservation]:
    """Names the sources that compare the winner, and by which no one wins; `_disagreement` names those that prefer
    another."""
    for other in answer.sources:
        comparison = sources.get((other.by, other.source))
        if answer.winner is None or comparison is None or other.winner is not None:
            continue
        compared = {row.entrant for row in comparison.scores if row.mean.value is not None}
        if answer.winner in compared and len(compared) > 1 and other.leader in (None, answer.winner):
            rival = pair_of(comparison, answer.winner, answer.margin.over) if answer.margin else None
            text = f"{_name(other.by, other.source)} does not confirm that {answer.winner} wins. {other.text}"
            yield _made("not_confirmed", text, rival.win_rate.value if rival else None)


def _length(report: EvaluationReport, answer: Headline) -> Iterator[Reservation]:
    if answer.leader is None:
        return
    longest: tuple[float, str] | None = None
    for rival in [answer.margin.over] if answer.margin else answer.over:
        ratio = length_ratio(report, answer.leader, rival)
        if ratio is not None and ratio.value is not None:
            least = ratio.value if ratio.low is None else ratio.low
            if least > LONGER:
                longest = max(longest or (0.0, ""), (ratio.value, rival))
    if longest is not None:
        value, rival = longest
        text = f"The answers of {answer.leader} are {value:.2f} times as long as those of {rival}."
        yield _made("length", text, value)
    for judge in report.judges:
        for row in judge.alpaca_eval if judge.valid else []:
            controlled = row.length_controlled
            if controlled is not None and row.entrant == answer.leader and row.win_rate > 50 >= controlled:
                text = (
                    f"Controlled for length, the win rate of {row.entrant} by judge {judge.judge} "
                    f"is {controlled:.1f}% instead of {row.win_rate:.1f}%."
                )
                yield _made("length", text, controlled)


def _circular(report: EvaluationReport, answer: Headline) -> Iterator[Reservation]:
    juries: list[tuple[By, str, list[str]]] = [("jury", jury.jury, jury.trained) for jury in report.juries]
    judges: list[tuple[By, str, list[str]]] = [("judge", judge.judge, judge.trained) for judge in report.judges]
    rewards: list[tuple[By, str, list[str]]] = [
        ("reward", reward.reward_model, reward.trained) for reward in report.rewards
    ]
    for by, label, names in juries + judges + rewards:
        if (by, label) == (answer.by, answer.source) and names:
            it = "one of its judges" if by == "jury" else "it"
            text = f"{_name(by, label)} is circular: {listed(names)} learned from {it}, or had answers chosen by it."
            yield _made("circular", text)
    for row in report.hacking:
        if row.alarm and row.entrant == answer.leader:
            text = f"Reward hacking is suspected of {row.entrant}: {'; '.join(row.reasons)}."
            yield _made("reward_hacking", text)


def _contamination(report: EvaluationReport) -> Iterator[Reservation]:
    seen = report.contamination
    if seen.seen:
        share = len(seen.seen) / seen.prompts if seen.prompts else None
        text = f"{len(seen.seen)} of {seen.prompts} prompts occur in training data."
        yield _made("contamination", text, share)
    elif not seen.checked:
        text = "The prompts were not checked against training data."
        yield _made("contamination_unchecked", text)


def _held_out_changes(report: EvaluationReport) -> Iterator[Reservation]:
    """Changes of the held-out rows behind its prompts, and behind the accuracy of its judges and reward models."""
    changes = report.held_out_changes
    if changes:
        rows = sum(change.flipped + change.edited + change.dropped for change in changes)
        yield _made("held_out_changed", f"Held-out rows were changed by people: {in_words(changes)}.", rows)


def _made(code: ReservationCode, text: str, value: float | None = None) -> Reservation:
    return Reservation(code=code, text=text, value=value)


def _name(by: By, label: str) -> str:
    words = source_name(by, label)
    return words[0].upper() + words[1:]
