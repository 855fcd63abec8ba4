"""How often a judge prefers the side that is known to be better, and whether that is enough for its word to count."""

from __future__ import annotations

import uuid
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from steerboard.evaluation.judge_tables import Judge, Verdict
from steerboard.evaluation.judges.both_orders import PAIR_STYLES, OrderedVerdict, together
from steerboard.evaluation.judges.schemas import JudgeSettings
from steerboard.evaluation.tables import CALIBRATION, Entrant, Evaluation, EvaluationPrompt
from steerboard.runs.tables import Run
from steerboard_contracts.report.sections.judges import Calibration
from steerboard_statistics.proportions import win_rate_interval
from steerboard_statistics.validity import UNUSABLE_THRESHOLD, assess

# What does not change what a judge answers. `blind` is not asked for on known pairs, whose names would tell the side.
_INCIDENTAL = frozenset(
    {"entrants", "baseline", "concurrency", "requests_per_minute", "timeout_seconds", "attempts", "repeat_share"}
    | {"prompt_price", "completion_price", "budget", "seed", "unparsed_threshold", "calibration_threshold", "blind"}
)


def same_judge(judge: Judge, known: Judge) -> bool:
    """Whether `known`, which was asked about known pairs, would answer like `judge`: the same model, asked in the same
    way. One that was shown who is `chosen` and who `rejected` has proved nothing."""
    identity = ("style", "model", "endpoint_id", "model_id", "content_hash")
    return (
        all(getattr(judge, name) == getattr(known, name) for name in identity)
        and known.imported is None
        and (known.style != "multi" or JudgeSettings.model_validate(known.settings).blind)
        and _manner(judge) == _manner(known)
    )


def _manner(judge: Judge) -> dict[str, Any]:
    return JudgeSettings.model_validate(judge.settings).model_dump(exclude=set(_INCIDENTAL))


def calibrations_of(
    session: Session, project_id: uuid.UUID, judges: Sequence[Judge]
) -> dict[uuid.UUID, list[Calibration]]:
    """Each judge's finished calibrations in this project, by age. Those of judges that would answer alike are the
    same, and are counted once."""
    own = [judge for judge in judges if judge.imported is None]
    if not own:
        return {}
    rows = session.execute(
        select(Evaluation, Judge)
        .join(Judge, Judge.evaluation_id == Evaluation.id)
        .join(Run, Run.id == Judge.run_id)
        .where(
            Evaluation.project_id == project_id,
            Evaluation.prompts_from["kind"].astext == CALIBRATION,
            Run.state == "succeeded",
        )
        .order_by(Judge.id)
    ).all()
    counted: dict[uuid.UUID, Calibration] = {}
    made: dict[uuid.UUID, list[Calibration]] = {judge.id: [] for judge in own}
    for judge in own:
        for pairs, known in rows:
            if same_judge(judge, known):
                if known.id not in counted:
                    counted[known.id] = _accuracy(session, pairs, known)
                made[judge.id].append(counted[known.id])
    return made


def _accuracy(session: Session, pairs: Evaluation, judge: Judge) -> Calibration:
    """The share of pairs in which the first entrant, `chosen`, is preferred to the second, `rejected`; ties 1/2."""
    entrants = select(Entrant.id).where(Entrant.evaluation_id == pairs.id).order_by(Entrant.position, Entrant.id)
    chosen, rejected = session.scalars(entrants.limit(2))
    verdicts: dict[int, list[Verdict]] = defaultdict(list)
    for verdict in session.scalars(select(Verdict).where(Verdict.judge_id == judge.id, ~Verdict.superseded)):
        verdicts[verdict.position].append(verdict)
    preferred = [_preferred(item, judge.style, chosen, rejected) for item in verdicts.values()]
    prompts = select(func.count()).select_from(EvaluationPrompt).where(EvaluationPrompt.evaluation_id == pairs.id)
    return Calibration(
        dataset=str(pairs.prompts_from["dataset"]),
        evaluation=pairs.name,
        pairs=session.scalar(prompts) or 0,
        accuracy=win_rate_interval(preferred.count(1), preferred.count(0), preferred.count(-1)),
    )


def _preferred(verdicts: Sequence[Verdict], style: str, chosen: uuid.UUID, rejected: uuid.UUID) -> int | None:
    """1: the chosen side, -1: the rejected one, 0: a tie; None without a usable verdict."""
    if style not in PAIR_STYLES:
        scores = {verdict.a: verdict.value for verdict in verdicts if verdict.status == "ok"}
        left, right = scores.get(chosen), scores.get(rejected)
        return None if left is None or right is None else (left > right) - (left < right)
    merged = together((in_order(verdict, of=chosen) for verdict in verdicts), style)
    return None if merged is None or merged.half else (merged.value > 0.5) - (merged.value < 0.5)


def in_order(verdict: Verdict, *, of: uuid.UUID) -> OrderedVerdict:
    """A verdict on two answers as one about the first of them, `of`."""
    value = verdict.value if verdict.status == "ok" else None
    if verdict.a == of:
        return OrderedVerdict(value, verdict.a_first is False, verdict.weight)
    return OrderedVerdict(None if value is None else 1 - value, verdict.a_first is True, verdict.weight)


def uncalibrated(settings: Mapping[str, Any], calibrations: Sequence[Calibration]) -> str | None:
    """Why a judge that has to be calibrated first is not valid: on every set that it was calibrated on, the interval of
    its accuracy has to begin at the threshold or above."""
    threshold = settings.get("calibration_threshold")
    given = settings.get("unparsed_threshold")
    allowed = UNUSABLE_THRESHOLD if given is None else float(given)
    if threshold is None:
        return None
    # The first of the largest of each set: neither a few lucky pairs nor another draw replaces it.
    of_set: dict[str, Calibration] = {}
    for calibration in calibrations:
        if calibration.dataset not in of_set or calibration.pairs > of_set[calibration.dataset].pairs:
            of_set[calibration.dataset] = calibration
    if not of_set:
        return f"it has not been calibrated, and needs an accuracy of at least {threshold:.0%} on known pairs first"
    for name, calibration in of_set.items():
        accuracy = calibration.accuracy
        lost = assess(
            accuracy.n, {"without a usable verdict": calibration.pairs - accuracy.n}, allowed, what=f"pairs of {name}"
        )
        if lost.reason is not None:
            return lost.reason
        if accuracy.value is None or accuracy.low is None or accuracy.low < threshold:
            low = "" if accuracy.low is None else f" (95% interval from {accuracy.low:.1%})"
            right = "no" if accuracy.value is None else f"{accuracy.value:.1%}"
            on = f"{accuracy.n} known pairs of {name}"
            return f"accuracy on {on} is {right}{low}, and has to be at least {threshold:.0%}"
    return None
