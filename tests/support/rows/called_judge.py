"""A judge with the verdicts and the answers that its process would have kept, without an endpoint that runs."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from typing import Any

from sqlalchemy import insert

from steerboard.evaluation.judge_tables import Judge, JudgeAnswer, Verdict
from steerboard.evaluation.judges import styles
from steerboard.evaluation.judges.queries import judge_inputs_of
from steerboard.evaluation.judges.requests import Question, key_of, outcomes
from steerboard.evaluation.judges.schemas import JudgeSettings
from steerboard.evaluation.tables import Evaluation
from steerboard.platform.database import new_id, transaction
from steerboard.registry.endpoints.chat import Completion
from steerboard.registry.tables import Endpoint
from support.rows.evaluation_rows import Evaluated


def called_judge(
    made: Evaluated, style: str, answer: Callable[[Question], str], *, name: str = "judge", **settings: Any
) -> uuid.UUID:
    """`answer` writes what the endpoint replies to each question."""
    id_, endpoint, url = new_id(), new_id(), "https://judge.example/v1"
    chosen = JudgeSettings(**settings)
    with transaction(made.sessions) as session:
        session.add(Endpoint(id=endpoint, project_id=made.project.id, name=f"{name}-api", base_url=url, model="gpt-x"))
        session.flush()
        session.add(
            Judge(
                id=id_,
                evaluation_id=made.id,
                name=name,
                style=style,
                model="gpt-x",
                endpoint_id=endpoint,
                settings=chosen.model_dump(mode="json"),
                created_by="test",
            )
        )
        session.flush()
        inputs = judge_inputs_of(session, session.get_one(Evaluation, made.id), chosen)
        for question in styles.questions(style, chosen, "gpt-x", inputs):
            key, said = key_of(url, question.request), Completion(answer(question), "stop", None, 420, 35)
            counts = {"prompt_tokens": said.prompt_tokens, "completion_tokens": said.completion_tokens}
            session.execute(
                insert(JudgeAnswer).values(
                    project_id=made.project.id,
                    key=key,
                    content=said.content,
                    finish_reason="stop",
                    seconds=1.25,
                    attempts=2,
                    judge_id=id_,
                    **counts,
                )
            )
            for verdict in outcomes(question, said):
                session.add(
                    Verdict(
                        judge_id=id_,
                        position=question.position,
                        turn=question.turn,
                        a=verdict.place.a,
                        b=verdict.place.b,
                        a_first=verdict.place.a_first,
                        value=verdict.value,
                        weight=verdict.weight,
                        status=verdict.status,
                        detail=verdict.detail,
                        raw=said.content,
                        answer_key=key,
                        superseded=False,
                    )
                )
    return id_
