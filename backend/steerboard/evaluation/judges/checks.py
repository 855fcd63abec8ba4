"""Whether a judge can be started: its settings against its style and the evaluation's entrants."""

from __future__ import annotations

from collections.abc import Iterator

from sqlalchemy import select
from sqlalchemy.orm import Session

from steerboard.evaluation.entrants.responses import entrants_of
from steerboard.evaluation.judges import comparisons, styles
from steerboard.evaluation.judges.schemas import JudgeIn, JudgeSettings
from steerboard.evaluation.judges.spending.budget import Prices
from steerboard.evaluation.tables import Entrant, Evaluation, Response
from steerboard.runs.state.states import ENDED
from steerboard.runs.tables import Run
from steerboard_contracts.errors import BadInput, ErrorLocation

_NEED_BASELINE = ("alpaca_eval", "arena_hard")
_NEED_TWO = ("multi", "pairwise", "alpaca_eval", "arena_hard", comparisons.STYLE)
# What a model that compares is not asked in words, nor by an endpoint.
_OF_ENDPOINTS = (
    *("both_orders", "blind", "temperature", "max_tokens", "requests_per_minute", "concurrency", "reference"),
    *(
        "criteria",
        "rubric",
        "timeout_seconds",
        "attempts",
        "repeat_share",
        "prompt_price",
        "completion_price",
        "budget",
    ),
)


class InvalidJudge(BadInput):
    """The settings do not fit the style or the evaluation; nothing was started."""

    code = "invalid_judge"
    title = "The judge cannot be started"


def checked(session: Session, evaluation: Evaluation, judge: JudgeIn) -> list[Entrant]:
    """The entrants that would be judged. Raises `InvalidJudge` with every fault by field."""
    settings = judge.settings
    everybody = {entrant.name for entrant in entrants_of(session, evaluation)}
    judged = judged_entrants(session, evaluation, settings)
    faults = list(_faults(judge, everybody, judged))
    idle = [entrant.name for entrant in judged if not _will_answer(session, entrant)]
    if idle:
        message = f"no answers of {', '.join(idle)} are there, and no run is making them"
        faults.append(ErrorLocation(location="body.settings.entrants", message=message))
    if faults:
        raise InvalidJudge("the judge cannot be started", errors=faults, hint="Nothing was started.")
    return judged


def check_who(judge: JudgeIn) -> None:
    """Raises `InvalidJudge` unless either an endpoint or a preference model is asked, in a style and with settings of
    its own."""
    faults = list(_faults_of_who(judge))
    if faults:
        raise InvalidJudge("the judge cannot be started", errors=faults, hint="Nothing was started.")


def _faults(judge: JudgeIn, everybody: set[str], judged: list[Entrant]) -> Iterator[ErrorLocation]:
    settings = judge.settings
    unknown = sorted(set(settings.entrants or []) - everybody)
    if unknown:
        yield ErrorLocation(
            location="body.settings.entrants", message=f"the evaluation has no entrant {', '.join(unknown)}"
        )
    if settings.baseline is not None and settings.baseline not in everybody:
        yield ErrorLocation(
            location="body.settings.baseline", message=f"the evaluation has no entrant {settings.baseline}"
        )
    if settings.baseline is None and judge.style in _NEED_BASELINE:
        yield ErrorLocation(location="body.settings.baseline", message=f"is missing: {judge.style} compares with one")
    if len(judged) < 2 and judge.style in _NEED_TWO:
        yield ErrorLocation(location="body.settings.entrants", message=f"{judge.style} compares at least two entrants")
    if not judged:
        yield ErrorLocation(location="body.settings.entrants", message="there are no entrants to judge")
    if settings.budget is not None and Prices.of(settings) is None:
        yield ErrorLocation(location="body.settings.budget", message="needs a `prompt_price` or a `completion_price`")
    if (settings.rubric is None) == (judge.style == "rubric"):
        message = "is missing: these are what a rubric asks" if settings.rubric is None else "is only for style rubric"
        yield ErrorLocation(location="body.settings.rubric", message=message)
    if judge.style == "multi" and len(judged) > styles.MOST_AT_ONCE:
        yield ErrorLocation(
            location="body.settings.entrants", message=f"multi judges at most {styles.MOST_AT_ONCE} entrants at once"
        )


def _faults_of_who(judge: JudgeIn) -> Iterator[ErrorLocation]:
    if (judge.endpoint is None) == (judge.model is None):
        yield ErrorLocation(
            location="body.endpoint", message="give either an endpoint or a preference model as `model`"
        )
    elif (judge.model is not None) != (judge.style == comparisons.STYLE):
        message = f"a preference model of the registry judges in style {comparisons.STYLE}, an endpoint in any other"
        yield ErrorLocation(location="body.style", message=message)
    if judge.style == comparisons.STYLE:
        defaults = JudgeSettings()
        for name in _OF_ENDPOINTS:
            if getattr(judge.settings, name) != getattr(defaults, name):
                message = (
                    "means nothing to a preference model, which is prompted in its own template and in both orders"
                )
                yield ErrorLocation(location=f"body.settings.{name}", message=message)


def judged_entrants(session: Session, evaluation: Evaluation, settings: JudgeSettings) -> list[Entrant]:
    """The entrants in their order: those that are named, or all, and the baseline."""
    return [
        entrant
        for entrant in entrants_of(session, evaluation)
        if settings.entrants is None or entrant.name in settings.entrants or entrant.name == settings.baseline
    ]


def _will_answer(session: Session, entrant: Entrant) -> bool:
    run = session.get(Run, entrant.run_id) if entrant.run_id else None
    if run is not None and run.state not in ENDED:
        return True
    return session.scalar(select(Response.position).where(Response.entrant_id == entrant.id).limit(1)) is not None
