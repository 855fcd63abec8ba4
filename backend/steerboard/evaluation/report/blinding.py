"""A report without names, for readers outside while people still rank: entrants are A, B, C.

A new report is made of what is known to be nameless, so that what is added to the full one stays out of it. Sentences
are made again from renamed figures, since those of the full report name entrants.
"""

from __future__ import annotations

import hashlib
import hmac
import string
import uuid
from collections.abc import Sequence

from sqlalchemy import select
from sqlalchemy.orm import Session

from steerboard.evaluation.ranking.tables import Campaign
from steerboard.evaluation.report.sections.headline import headline
from steerboard.evaluation.report.sections.human import human_label
from steerboard.evaluation.report.sections.methods import methods_rows
from steerboard_contracts.report.evaluation import AgreementRow, EvaluationReport, Unfinished
from steerboard_contracts.report.sections.comparison import By, Comparison, PairRow, turned
from steerboard_contracts.report.sections.entrants import Contamination, EntrantRow, LengthRatio
from steerboard_contracts.report.sections.human import HumanReport
from steerboard_contracts.report.sections.judges import JudgeReport
from steerboard_contracts.report.sections.rewards import RewardReport
from steerboard_statistics.winners import winner_of

Names = dict[str, str]
Labels = dict[tuple[By, str], str]


def blind_salt(session: Session, evaluation_id: uuid.UUID) -> str | None:
    """What shuffles the letters, the same for all links, if a campaign is not closed. It never leaves the server."""
    campaigns = select(Campaign.salt).where(Campaign.evaluation_id == evaluation_id, Campaign.state != "closed")
    return session.scalar(campaigns.order_by(Campaign.id).limit(1))


def blinded(report: EvaluationReport, salt: str) -> EvaluationReport:
    """The report with letters for entrants and numbers for sources.

    Left out are sources that do not compare every two entrants (the one in all of their pairs would be the baseline),
    invalid judges, and everything about models, methods, training and costs.
    """
    names = _letters([entrant.name for entrant in report.entrants], salt)
    labels: Labels = {}
    blind = EvaluationReport(
        evaluation="Evaluation",
        evaluation_id=report.evaluation_id,
        version=report.version,
        computed_at=report.computed_at,
        seconds=report.seconds,
        prompts=report.prompts,
        turns=report.turns,
        finished=report.finished,
        unfinished=[],
        unfinished_parts=[Unfinished(words="") for part in report.unfinished_parts if part.by != "human"],
        baseline=None,
        entrants=sorted((_entrant(row, names) for row in report.entrants), key=lambda row: row.name),
        methods=[],
        ranks=[],
        human=_human(report.human, names, labels),
        judges=_judges(report.judges, names, labels),
        rewards=_rewards(report.rewards, names, labels),
        agreement=_agreement(report.agreement, labels),
        contamination=_contamination(report.contamination),
        hacking=[],
        win_rate_differences=[],
        warnings=[],
        length_ratios=_ratios(report.length_ratios, names),
    )
    blind.methods = methods_rows(blind, None)
    blind.headline = headline(blind)
    return blind


def _letters(names: Sequence[str], salt: str) -> Names:
    """A letter for each, in an order that no one can derive without the salt."""

    def place(name: str) -> bytes:
        return hmac.digest(salt.encode(), name.encode(), hashlib.sha256)

    return {name: _letter(at) for at, name in enumerate(sorted(names, key=place))}


def _letter(at: int) -> str:
    """A to Z, then A2 to Z2."""
    turn, place = divmod(at, len(string.ascii_uppercase))
    return string.ascii_uppercase[place] + (str(turn + 1) if turn else "")


def _entrant(row: EntrantRow, names: Names) -> EntrantRow:
    return EntrantRow(
        name=names[row.name],
        source="import",
        method=None,
        score=None,
        family=None,
        model=None,
        content_hash=None,
        responses=row.responses,
        missing=row.missing,
        length=row.length,
        truncated=row.truncated,
    )


def _comparison(comparison: Comparison, names: Names) -> Comparison | None:
    """The comparison in the order of the letters; None if it does not compare every two entrants."""
    count = len(comparison.scores)
    if len(comparison.pairs) != count * (count - 1) // 2:
        return None
    scores = sorted(
        (row.model_copy(update={"entrant": names[row.entrant]}) for row in comparison.scores),
        key=lambda row: row.entrant,
    )
    pairs = sorted((_pair(row, names) for row in comparison.pairs), key=lambda row: (row.a, row.b))
    winner, why = winner_of(scores, pairs)
    strengths = (row.model_copy(update={"entrant": names[row.entrant]}) for row in comparison.bradley_terry)
    return comparison.model_copy(
        update={
            "scores": scores,
            "pairs": pairs,
            "bradley_terry": sorted(strengths, key=lambda row: row.entrant),
            "winner": winner,
            "why": why,
        }
    )


def _pair(row: PairRow, names: Names) -> PairRow:
    """The order within a pair would show which of the two was entered first."""
    renamed = row.model_copy(update={"a": names[row.a], "b": names[row.b]})
    return renamed if renamed.a < renamed.b else turned(renamed)


def _human(reports: Sequence[HumanReport], names: Names, labels: Labels) -> list[HumanReport]:
    campaigns: Names = {}
    made: list[HumanReport] = []
    for human in reports:
        comparison = _comparison(human.comparison, names)
        if comparison is None:
            continue
        campaign = campaigns.setdefault(human.campaign, str(len(campaigns) + 1))
        made.append(
            HumanReport(
                campaign=campaign,
                criterion=human.criterion,
                state=human.state,
                task_type=human.task_type,
                points=human.points,
                both_bad=human.both_bad,
                adjudicated=human.adjudicated,
                items=human.items,
                done_items=human.done_items,
                overlap=human.overlap,
                rankings=human.rankings,
                comparison=comparison,
                alpha=human.alpha,
                annotators=[],
                kappas=[],
                warnings=[],
            )
        )
        labels["human", human_label(human.campaign, human.criterion)] = human_label(campaign, human.criterion)
    return made


def _judges(reports: Sequence[JudgeReport], names: Names, labels: Labels) -> list[JudgeReport]:
    made: list[JudgeReport] = []
    for judge in reports:
        comparison = _comparison(judge.comparison, names) if judge.valid and not judge.invalid_entrants else None
        if comparison is None:
            continue
        label = labels["judge", judge.judge] = str(len(made) + 1)
        made.append(
            JudgeReport(
                judge=label,
                style=judge.style,
                model="",
                imported=judge.imported,
                state=judge.state,
                verdicts=judge.verdicts,
                ok=judge.ok,
                unparsed=judge.unparsed,
                refused=judge.refused,
                errors=judge.errors,
                superseded=judge.superseded,
                unparsed_rate=judge.unparsed_rate,
                unparsed_threshold=judge.unparsed_threshold,
                valid=True,
                prompt_tokens=None,
                completion_tokens=None,
                comparison=comparison,
                biases=judge.biases.model_copy(update={"self_preference": None}),
                warnings=[],
            )
        )
    return made


def _rewards(reports: Sequence[RewardReport], names: Names, labels: Labels) -> list[RewardReport]:
    made: list[RewardReport] = []
    for reward in reports:
        comparison = _comparison(reward.comparison, names)
        if comparison is None:
            continue
        label = labels["reward", reward.reward_model] = str(len(made) + 1)
        made.append(
            RewardReport(
                reward_model=label,
                content_hash="",
                state=reward.state,
                trained=[],
                comparison=comparison,
                units=reward.units,
                accuracy=reward.accuracy,
                calibration=None,
                histogram_raw={},
                histogram_z={},
                length_correlation=[],
                best_of_n=[],
                warnings=[],
            )
        )
    return made


def _agreement(rows: Sequence[AgreementRow], labels: Labels) -> list[AgreementRow]:
    return [
        row.model_copy(update={"a": labels[row.a_by, row.a], "b": labels[row.b_by, row.b]})
        for row in rows
        if (row.a_by, row.a) in labels and (row.b_by, row.b) in labels
    ]


def _contamination(contamination: Contamination) -> Contamination:
    """How many prompts, and not in whose data."""
    nameless = {"question_id": "", "dataset": "", "row": 0}
    seen = [seen_prompt.model_copy(update=nameless) for seen_prompt in contamination.seen]
    return contamination.model_copy(update={"checked": [""] if contamination.checked else [], "seen": seen})


def _ratios(rows: Sequence[LengthRatio], names: Names) -> list[LengthRatio]:
    return [row.model_copy(update={"a": names[row.a], "b": names[row.b]}) for row in rows]
