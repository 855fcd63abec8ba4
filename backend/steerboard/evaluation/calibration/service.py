"""A judge on pairs whose better side is known, before its word counts.

The pairs are an evaluation of their own, with the entrants `chosen` and `rejected`, and the judge is asked there as
everywhere else: the same cache, budget, biases, and page. It never sees these names, and the order in which it sees the
answers is drawn (`judges.service.create_judge`). Callers commit.
"""

from __future__ import annotations

from typing import Any

from sqlalchemy import Text, cast, func, insert, literal, select
from sqlalchemy.orm import Session

from steerboard.accounts.tables import Project
from steerboard.datasets.lookup import get_dataset
from steerboard.datasets.tables import Dataset, SampleRow
from steerboard.evaluation.calibration.schemas import CalibrationIn
from steerboard.evaluation.events import changed
from steerboard.evaluation.judge_tables import Judge
from steerboard.evaluation.judges.calibrations import same_judge
from steerboard.evaluation.judges.schemas import JudgeIn, JudgeSettings
from steerboard.evaluation.judges.service import broken, create_judge, judges_of, retry
from steerboard.evaluation.judges.spending.costs import budget_holder
from steerboard.evaluation.tables import CALIBRATION, Entrant, Evaluation, EvaluationPrompt, Response
from steerboard.platform.names import free_name, names_like
from steerboard_contracts.errors import BadInput, EmptySelection
from steerboard_contracts.tools import answer_text, turn_text

CHOSEN, REJECTED = "chosen", "rejected"
_AGAINST_BASELINE = ("alpaca_eval", "arena_hard")


def calibrate(
    session: Session, project: Project, judge: Judge, request: CalibrationIn, actor: str
) -> tuple[Evaluation, Judge]:
    """The judge as it is asked about the pairs: a new one, which spends the budget of the old one, or the one that was
    asked the same before. That one continues where it had failed or was cancelled, such as by a budget that was spent.

    Raises `BadInput` (`imported_judge`, `wrong_kind`), `EmptySelection`, and like `create_judge`.
    """
    if judge.endpoint_id is None and judge.model_id is None:
        raise BadInput(
            f"judge {judge.name!r} has no endpoint or model to call",
            code="imported_judge",
            hint="Add a judge with an endpoint or a preference model.",
        )
    dataset = get_dataset(session, project, request.dataset)
    if dataset.kind != "preferences":
        raise BadInput(
            f"{dataset.name!r} holds {dataset.kind}; only preferences name their better side",
            code="wrong_kind",
            hint="Choose a dataset of preferences.",
        )
    evaluation = _pairs_of(session, project, dataset, request) or _create(session, project, dataset, request, actor)
    for known in judges_of(session, evaluation):
        if same_judge(judge, known):
            if broken(session, known):
                retry(session, project, evaluation, known, actor)
                changed(session, evaluation, "judge")
            return evaluation, known
    settings = JudgeSettings.model_validate(judge.settings).model_copy(
        update={
            "entrants": None,
            "baseline": REJECTED if judge.style in _AGAINST_BASELINE else None,
            "calibration_threshold": None,
        }
    )
    taken = names_like(session, Judge.name, judge.name, Judge.evaluation_id == evaluation.id)
    body = JudgeIn.model_validate(
        {
            "name": free_name(judge.name, taken),
            "style": judge.style,
            "endpoint": str(judge.endpoint_id) if judge.endpoint_id else None,
            "model": str(judge.model_id) if judge.model_id else None,
            "family": judge.family,
            "settings": settings.model_dump(mode="json"),
        }
    )
    made = create_judge(session, project, evaluation, body, actor, calibrates=budget_holder(session, judge))
    changed(session, evaluation, "judge")
    return evaluation, made


def _pairs_of(session: Session, project: Project, dataset: Dataset, request: CalibrationIn) -> Evaluation | None:
    query = select(Evaluation).where(
        Evaluation.project_id == project.id, Evaluation.prompts_from == _origin(dataset, request)
    )
    return session.scalars(query.order_by(Evaluation.id).limit(1)).first()


def _origin(dataset: Dataset, request: CalibrationIn) -> dict[str, Any]:
    return {
        "kind": CALIBRATION,
        "dataset": dataset.name,
        "dataset_id": str(dataset.id),
        "split": "all",
        "limit": request.limit,
        "seed": request.seed,
    }


def _create(session: Session, project: Project, dataset: Dataset, request: CalibrationIn, actor: str) -> Evaluation:
    order = func.md5(literal(f"{request.seed}:") + cast(SampleRow.row, Text))
    rows = session.execute(
        select(SampleRow.row, SampleRow.sample)
        .where(SampleRow.dataset_id == (dataset.base_dataset_id or dataset.id))
        .order_by(order)
        .limit(request.limit)
    ).all()
    if not rows:
        raise EmptySelection(f"dataset {dataset.name} has no rows", hint="Choose another one.")
    wanted = f"calibration-{dataset.name}"[:120]
    evaluation = Evaluation(
        project_id=project.id,
        name=free_name(wanted, names_like(session, Evaluation.name, wanted, Evaluation.project_id == project.id)),
        description=f"Pairs of {dataset.name}, to see whether judges prefer the side that is known to be better.",
        prompts_from=_origin(dataset, request),
        checked_against=[],
        seed=request.seed,
        version=0,
        created_by=actor,
    )
    session.add(evaluation)
    session.flush()
    rows = sorted(rows, key=lambda row: row.row)
    session.execute(
        insert(EvaluationPrompt),
        [
            {
                "evaluation_id": evaluation.id,
                "position": position,
                "question_id": str(row.row),
                "category": None,
                "messages": [{"role": turn["role"], "content": turn_text(turn)} for turn in row.sample["prompt"]],
                "follow_ups": [],
                "reference": None,
                "seen": None,
            }
            for position, row in enumerate(rows)
        ],
    )
    for place, side in enumerate((CHOSEN, REJECTED)):
        entrant = Entrant(
            evaluation_id=evaluation.id,
            position=place,
            name=side,
            source="import",
            decoding={},
            samples=1,
            imported={"dataset": dataset.name},
        )
        session.add(entrant)
        session.flush()
        session.execute(
            insert(Response),
            [
                {
                    "entrant_id": entrant.id,
                    "position": position,
                    "sample": 0,
                    "turns": [answer_text(row.sample[side])],
                    "tokens": None,
                    "finished": None,
                }
                for position, row in enumerate(rows)
            ],
        )
    changed(session, evaluation, "created")
    return evaluation
