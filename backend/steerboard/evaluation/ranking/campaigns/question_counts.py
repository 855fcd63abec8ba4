"""The replies to a campaign's questions, counted: how often each choice was made, and how far annotators agree."""

from __future__ import annotations

import uuid
from collections import Counter, defaultdict
from itertools import combinations
from statistics import fmean
from typing import Any

import numpy as np
from sqlalchemy import select
from sqlalchemy.orm import Session

from steerboard.evaluation.ranking.campaigns.quality_schemas import ChoiceCount, QuestionCount
from steerboard.evaluation.ranking.campaigns.shares import fields
from steerboard.evaluation.ranking.counted import counted
from steerboard.evaluation.ranking.questions import Question, alike, questions_of
from steerboard.evaluation.ranking.tables import Campaign, RankingTask
from steerboard_statistics.krippendorff import krippendorff_alpha
from steerboard_statistics.proportions import proportion_interval

Reply = str | list[str]


def question_counts(session: Session, campaign: Campaign) -> list[QuestionCount]:
    """One for each question, in their order."""
    questions = questions_of(campaign.questions)
    if not questions:
        return []
    counting = [row.replies or {} for row in counted(session, campaign)]
    by_item: dict[uuid.UUID, list[tuple[uuid.UUID, dict[str, Any]]]] = defaultdict(list)
    for item, user, replies in session.execute(
        select(RankingTask.item_id, RankingTask.user_id, RankingTask.replies).where(
            RankingTask.campaign_id == campaign.id, RankingTask.state == "submitted", RankingTask.replies.is_not(None)
        )
    ):
        by_item[item].append((user, replies))
    made = []
    for question in questions:
        given: list[Reply] = [replies[question.label] for replies in counting if question.label in replies]
        items = [
            {user: replies[question.label] for user, replies in people if question.label in replies}
            for people in by_item.values()
        ]
        made.append(_count(question, given, [replies for replies in items if len(replies) > 1]))
    return made


def _count(question: Question, given: list[Reply], shared: list[dict[uuid.UUID, Reply]]) -> QuestionCount:
    """`shared`: the replies by annotator, of each item with two or more."""
    chosen = Counter(choice for reply in given for choice in ([reply] if isinstance(reply, str) else reply))
    if question.kind == "text":
        shared = []
    agreed = [fmean(alike(one, other) for one, other in combinations(replies.values(), 2)) for replies in shared]
    return QuestionCount(
        label=question.label,
        kind=question.kind,
        replies=len(given),
        choices=[ChoiceCount(choice=choice, replies=chosen[choice]) for choice in question.choices],
        **fields("agreement", proportion_interval(sum(agreed), len(agreed))),
        shared_items=len(shared),
        alpha=_alpha(question, shared) if question.kind == "one_choice" else None,
    )


def _alpha(question: Question, shared: list[dict[uuid.UUID, Reply]]) -> float | None:
    people = sorted({user for replies in shared for user in replies})
    ratings = np.full((len(shared), len(people)), np.nan)
    for row, replies in enumerate(shared):
        for user, reply in replies.items():
            ratings[row, people.index(user)] = question.choices.index(str(reply))
    return krippendorff_alpha(ratings, "nominal")
