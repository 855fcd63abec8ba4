"""The rules of ranking campaigns: what is asked, of whom, and which answers are known."""

from __future__ import annotations

import datetime as dt
import random
import re
import secrets
import uuid
from collections.abc import Iterable, Sequence

from sqlalchemy import func, insert, null, select, update
from sqlalchemy.orm import Session

from steerboard.accounts import members, service
from steerboard.accounts.access import Caller
from steerboard.accounts.tables import Membership, Project, User
from steerboard.datasets.errors import NameTaken
from steerboard.evaluation.entrants.responses import entrants_of
from steerboard.evaluation.judges.service import get_judge
from steerboard.evaluation.ranking.campaigns.schemas import AnnotatorLink, CampaignChange, CampaignCreate, GoldItem
from steerboard.evaluation.ranking.tables import Campaign, RankingItem, random_id
from steerboard.evaluation.standing import best_first
from steerboard.evaluation.tables import Entrant, Evaluation, Response
from steerboard.platform.http.errors import Conflict, NotFound
from steerboard.platform.names import check_name, find, names_like, next_name, next_name_of_all
from steerboard.runs.state.states import ENDED
from steerboard.runs.tables import Run
from steerboard_contracts.errors import BadInput

# How few and how many answers an item has, by task.
_ENTRANTS: dict[str, tuple[int, int]] = {
    "ranking": (2, 8),
    "pairwise": (2, 2),
    "likert": (1, 8),
    "correction": (1, 1),
}


def get_campaign(session: Session, evaluation: Evaluation, ref: str) -> Campaign:
    """The campaign by id or name. Raises `NotFound` (`unknown_campaign`)."""
    query = select(Campaign).where(Campaign.evaluation_id == evaluation.id)
    campaign = find(session, query, Campaign.id, Campaign.name, ref)
    if campaign is None:
        raise NotFound(f"{evaluation.name!r} has no campaign {ref!r}", code="unknown_campaign")
    return campaign


def create(session: Session, evaluation: Evaluation, given: CampaignCreate, actor: str) -> Campaign:
    """One item for each prompt that all entrants have answered, with the first sample of each.

    Raises `BadInput` (`invalid_name`, `bad_entrants`), `NameTaken`, `NotFound` (`unknown_entrant`, `unknown_judge`),
    and `Conflict` (`answers_missing`) while an entrant is still answering, or when there is no prompt that all have
    answered.
    """
    entrants = _entrants(session, evaluation, given)
    _refuse_unanswered(session, entrants)
    positions = _answered_by_all(session, entrants)
    if not positions:
        raise Conflict(
            "there is no prompt that all of these entrants have answered",
            code="answers_missing",
            hint="Wait for their runs, or import their answers.",
        )
    campaign = Campaign(
        project_id=evaluation.project_id,
        evaluation_id=evaluation.id,
        name=_campaign_name(session, evaluation, given.name),
        instructions=given.instructions,
        task_type=given.task_type,
        criteria=[criterion.model_dump(exclude_none=True) for criterion in given.criteria],
        entrants=[str(entrant.id) for entrant in entrants],
        overlap=given.overlap,
        lock_seconds=given.lock_seconds,
        gold_every=given.gold_every,
        qualify_items=given.qualify_items,
        qualify_share=given.qualify_share,
        span_labels=given.span_labels,
        questions=[question.model_dump() for question in given.questions],
        judge_id=get_judge(session, evaluation, given.judge).id if given.judge else None,
        state="open",
        salt=secrets.token_hex(16),
        created_by=actor,
    )
    session.add(campaign)
    session.flush()
    random.Random(campaign.salt).shuffle(positions)
    rows = [
        {"id": random_id(), "campaign_id": campaign.id, "position": position, "place": place, "rankings": 0}
        for place, position in enumerate(positions[: given.limit])
    ]
    session.execute(insert(RankingItem), rows)
    session.refresh(campaign)
    return campaign


def _entrants(session: Session, evaluation: Evaluation, given: CampaignCreate) -> list[Entrant]:
    """The entrants that are named, else the best ones, in the evaluation's order."""
    fewest, most = _ENTRANTS[given.task_type]
    known = {entrant.name: entrant for entrant in entrants_of(session, evaluation)}
    if given.entrants is None:
        best = {entrant.name for entrant, _ in best_first(session, evaluation)[:most]}
        chosen = [name for name in known if name in best]
    else:
        chosen = list(dict.fromkeys(given.entrants))
    for name in chosen:
        if name not in known:
            there = ", ".join(known) or "none"
            raise NotFound(f"{evaluation.name!r} has no entrant {name!r}; it has {there}", code="unknown_entrant")
    if not fewest <= len(chosen) <= most:
        number = str(most) if fewest == most else f"{fewest} to {most}"
        raise BadInput(
            f"a {given.task_type} task is about {number} entrants, not {len(chosen)}",
            code="bad_entrants",
            hint=f"Name {number} of the evaluation's.",
        )
    return [known[name] for name in chosen]


def _refuse_unanswered(session: Session, entrants: Sequence[Entrant]) -> None:
    runs = {entrant.run_id: entrant.name for entrant in entrants if entrant.run_id}
    under_way = select(Run.id).where(Run.id.in_(runs), Run.state.not_in(ENDED)).limit(1)
    run = session.scalar(under_way)
    if run is not None:
        raise Conflict(
            f"{runs[run]!r} is still answering",
            code="answers_missing",
            hint="Wait for its run: a campaign covers the answers that exist when it is created.",
        )


def _answered_by_all(session: Session, entrants: Sequence[Entrant]) -> list[int]:
    """Positions, in their order."""
    positions = session.scalars(
        select(Response.position)
        .where(Response.entrant_id.in_([entrant.id for entrant in entrants]), Response.sample == 0)
        .group_by(Response.position)
        .having(func.count() == len(entrants))
        .order_by(Response.position)
    )
    return list(positions)


def _campaign_name(session: Session, evaluation: Evaluation, name: str | None) -> str:
    """One that is made up is free in the whole project: annotators see campaigns without their evaluations."""
    if name is None:
        project = evaluation.project_id
        in_project = select(Evaluation.id).where(Evaluation.project_id == project)
        return next_name_of_all(session, project, Campaign.name, "ranking", Campaign.evaluation_id.in_(in_project))
    check_name(name)
    taken = select(Campaign.id).where(Campaign.evaluation_id == evaluation.id, Campaign.name == name)
    if session.scalar(taken):
        raise NameTaken(f"there is already a campaign {name!r}", hint="Choose another name.")
    return name


def change(session: Session, campaign: Campaign, given: CampaignChange) -> None:
    """Changes only what was given. Raises `BadInput` (`overlap_lowered`, `no_suggestions`), `NotFound`
    (`unknown_judge`)."""
    session.refresh(campaign, with_for_update=True)
    if given.overlap is not None and given.overlap < campaign.overlap:
        raise BadInput(
            f"items are to have {campaign.overlap} rankings, and this number can only be raised",
            code="overlap_lowered",
            hint="To stop earlier, close the campaign.",
        )
    if given.judge is not None:
        campaign.judge_id = _judge(session, campaign, given.judge)
    for field, value in given.model_dump(exclude_none=True, exclude={"judge"}).items():
        setattr(campaign, field, value)
    session.flush()


def _judge(session: Session, campaign: Campaign, ref: str) -> uuid.UUID | None:
    if not ref:
        return None
    if campaign.task_type == "correction":
        raise BadInput(
            "a judge suggests no corrections", code="no_suggestions", hint="Name a campaign of another task."
        )
    return get_judge(session, session.get_one(Evaluation, campaign.evaluation_id), ref).id


def gold_of(session: Session, campaign: Campaign) -> list[GoldItem]:
    names = entrant_names(session, campaign)
    items = session.scalars(
        select(RankingItem)
        .where(RankingItem.campaign_id == campaign.id, RankingItem.gold.is_not(None))
        .order_by(RankingItem.position)
    )
    return [
        GoldItem(position=item.position, ranks={names[id_]: rank for id_, rank in (item.gold or {}).items()})
        for item in items
    ]


def set_gold(session: Session, campaign: Campaign, position: int, ranks: dict[str, int]) -> GoldItem:
    """Raises `NotFound` (`unknown_item`) and `BadInput` (`bad_gold`)."""
    names = entrant_names(session, campaign)
    if set(ranks) != set(names.values()):
        raise BadInput(
            "gold ranks must name every entrant of the campaign exactly once",
            code="bad_gold",
            hint=f"Give one rank each for {', '.join(names.values())}.",
        )
    if len(set(ranks.values())) == 1:
        raise BadInput("gold ranks that are all equal test nothing", code="bad_gold", hint="Choose another item.")
    item = _item(session, campaign, position)
    item.gold = {id_: ranks[name] for id_, name in names.items()}
    session.flush()
    return GoldItem(position=position, ranks=ranks)


def remove_gold(session: Session, campaign: Campaign, position: int) -> None:
    """Raises `NotFound` (`unknown_item`)."""
    item = _item(session, campaign, position)
    session.execute(update(RankingItem).where(RankingItem.id == item.id).values(gold=null()))
    session.expire(item)


def _item(session: Session, campaign: Campaign, position: int) -> RankingItem:
    item = session.scalar(
        select(RankingItem)
        .where(RankingItem.campaign_id == campaign.id, RankingItem.position == position)
        .with_for_update(key_share=True)
    )
    if item is None:
        raise NotFound(f"campaign {campaign.name!r} does not ask about prompt {position}", code="unknown_item")
    return item


def entrant_names(session: Session, campaign: Campaign) -> dict[str, str]:
    """Id to name, in the campaign's order."""
    ids = [uuid.UUID(id_) for id_ in campaign.entrants]
    names = {
        str(id_): name for id_, name in session.execute(select(Entrant.id, Entrant.name).where(Entrant.id.in_(ids)))
    }
    return {id_: names[id_] for id_ in campaign.entrants if id_ in names}


def telling_words(campaign: Campaign, names: Iterable[str]) -> list[str]:
    """Warnings: entrants' names that annotators would read in the campaign's own words."""
    words = {"name": campaign.name, "instructions": campaign.instructions}
    words["criteria"] = " ".join(
        f"{criterion['name']} {criterion.get('description', '')}" for criterion in campaign.criteria
    )
    words["labels"] = " ".join(campaign.span_labels)
    words["questions"] = " ".join(
        " ".join((question["label"], question["help"], *question["choices"])) for question in campaign.questions
    )
    return [
        f"annotators read the name of entrant {name!r} in the campaign's {place}"
        for place, text in words.items()
        for name in names
        if re.search(rf"(?<!\w){re.escape(name)}(?!\w)", text, re.IGNORECASE)
    ]


def add_annotator(
    session: Session, caller: Caller, project: Project, campaign: Campaign, name: str | None
) -> AnnotatorLink:
    """A one-time link to the campaign's page. It ends the links and sessions that the annotator had.

    Raises `Conflict` (`already_member`) for members of another role, `Forbidden` (`not_their_owner`).
    """
    name = name or _free_annotator(session)
    user = session.scalar(select(User).where(User.name == name))
    member = session.get(Membership, (project.id, user.id)) if user else None
    if member is not None and member.role not in ("annotator", "reviewer"):
        raise Conflict(
            f"`{name}` is {member.role} of this project, and may already rank",
            code="already_member",
            hint="They sign in as usual, and open the page Annotate.",
        )
    if member is None:
        _, user, created = members.add(session, project, name, "annotator")
        if created:
            code, expires_at = service.create_sign_in_link(session, user.id, members.INVITATION_LIFE)
            return _link(project, campaign, name, code, expires_at)
    code, expires_at = members.new_link(session, caller, project, name)
    return _link(project, campaign, name, code, expires_at)


def _link(project: Project, campaign: Campaign, name: str, code: str, expires_at: dt.datetime) -> AnnotatorLink:
    page = f"/p/{project.name}/rank/{campaign.id}"
    return AnnotatorLink(annotator=name, link=f"/sign-in/{code}?back={page}", expires_at=expires_at)


def _free_annotator(session: Session) -> str:
    return next_name("annotator", names_like(session, User.name, "annotator-"))
