"""Ranking campaigns over HTTP, for those who ask for rankings."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Query
from sqlalchemy import select

from steerboard.accounts.access import Access, AccessTo, Db, SignedIn, audit
from steerboard.accounts.http.routes import Router
from steerboard.evaluation.events import changed
from steerboard.evaluation.lookup import get_evaluation
from steerboard.evaluation.ranking.campaigns import service as campaigns
from steerboard.evaluation.ranking.campaigns.queries import campaign_out, campaigns_out, flags_of, rankings_out
from steerboard.evaluation.ranking.campaigns.schemas import (
    AnnotatorAdd,
    AnnotatorLink,
    CampaignChange,
    CampaignCreate,
    CampaignOut,
    Campaigns,
    Flags,
    GoldItem,
    GoldItems,
    GoldRanks,
    RankingOut,
)
from steerboard.evaluation.ranking.tables import RankingTask
from steerboard.platform.http.errors import problems
from steerboard.platform.http.paging import Page, paginate

router = Router(prefix="/evaluations/{evaluation}", tags=["ranking"])

Read = Annotated[Access, Depends(AccessTo("read"))]
Write = Annotated[Access, Depends(AccessTo("write"))]
Owner = Annotated[Access, Depends(AccessTo("admin"))]


@router.get("/campaigns", responses=problems(404))
def list_campaigns(session: Db, access: Read, evaluation: str) -> Campaigns:
    """Oldest first, with the progress of each and of its annotators."""
    return Campaigns(items=campaigns_out(session, get_evaluation(session, access.project, evaluation)))


@router.post("/campaigns", status_code=201, responses=problems(404, 409))
def create_campaign(session: Db, access: Write, evaluation: str, body: CampaignCreate) -> CampaignOut:
    """Ask people to rank the answers: one item for each prompt that all of the entrants have answered."""
    found = get_evaluation(session, access.project, evaluation)
    campaign = campaigns.create(session, found, body, access.actor)
    audit(session, access, "campaign.create", f"campaign {campaign.name} {campaign.id}", {"evaluation": found.name})
    changed(session, found, "campaign")
    return campaign_out(session, campaign)


@router.get("/campaigns/{campaign}", responses=problems(404))
def get_campaign(session: Db, access: Read, evaluation: str, campaign: str) -> CampaignOut:
    """By id or name."""
    found = get_evaluation(session, access.project, evaluation)
    return campaign_out(session, campaigns.get_campaign(session, found, campaign))


@router.patch("/campaigns/{campaign}", responses=problems(404))
def change_campaign(session: Db, access: Write, evaluation: str, campaign: str, body: CampaignChange) -> CampaignOut:
    """Pause, close or open it again, ask for more rankings of each item, or reword it."""
    found = get_evaluation(session, access.project, evaluation)
    mine = campaigns.get_campaign(session, found, campaign)
    campaigns.change(session, mine, body)
    audit(
        session,
        access,
        "campaign.change",
        f"campaign {mine.name} {mine.id}",
        body.model_dump(exclude_none=True, exclude={"instructions"}),
    )
    changed(session, found, "campaign")
    return campaign_out(session, mine)


@router.get("/campaigns/{campaign}/gold", responses=problems(404))
def list_gold(session: Db, access: Read, evaluation: str, campaign: str) -> GoldItems:
    """The items whose right ranks are known, in the order of their prompts."""
    found = get_evaluation(session, access.project, evaluation)
    return GoldItems(items=campaigns.gold_of(session, campaigns.get_campaign(session, found, campaign)))


@router.put("/campaigns/{campaign}/gold/{position}", responses=problems(404))
def set_gold(session: Db, access: Write, evaluation: str, campaign: str, position: int, body: GoldRanks) -> GoldItem:
    """Give the right ranks of an item. Every annotator gets it, and none sees which items these are."""
    found = get_evaluation(session, access.project, evaluation)
    mine = campaigns.get_campaign(session, found, campaign)
    gold = campaigns.set_gold(session, mine, position, body.ranks)
    audit(session, access, "gold.set", f"campaign {mine.name} {mine.id}", {"position": position})
    changed(session, found, "campaign")
    return gold


@router.delete("/campaigns/{campaign}/gold/{position}", status_code=204, responses=problems(404))
def remove_gold(session: Db, access: Write, evaluation: str, campaign: str, position: int) -> None:
    """It is an item like all others from now on."""
    found = get_evaluation(session, access.project, evaluation)
    mine = campaigns.get_campaign(session, found, campaign)
    campaigns.remove_gold(session, mine, position)
    audit(session, access, "gold.remove", f"campaign {mine.name} {mine.id}", {"position": position})
    changed(session, found, "campaign")


@router.get("/campaigns/{campaign}/rankings", responses=problems(404))
def list_campaign_rankings(
    session: Db,
    access: Read,
    evaluation: str,
    campaign: str,
    cursor: str | None = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> Page[RankingOut]:
    """Everything that was submitted, with names; in no order that means something."""
    found = get_evaluation(session, access.project, evaluation)
    mine = campaigns.get_campaign(session, found, campaign)
    submitted = select(RankingTask).where(RankingTask.campaign_id == mine.id, RankingTask.state == "submitted")
    return paginate(
        session,
        submitted,
        RankingTask.id,
        lambda task: rankings_out(session, mine, [task])[0],
        cursor=cursor,
        limit=limit,
        newest_first=False,
        convert_all=lambda page: rankings_out(session, mine, page),
    )


@router.get("/campaigns/{campaign}/flags", responses=problems(404))
def list_flags(session: Db, access: Read, evaluation: str, campaign: str) -> Flags:
    """What annotators flagged or skipped, and why. Newest first."""
    found = get_evaluation(session, access.project, evaluation)
    return Flags(items=flags_of(session, campaigns.get_campaign(session, found, campaign)))


@router.post("/campaigns/{campaign}/annotators", status_code=201, responses=problems(404, 409))
def add_annotator(
    session: Db, access: Owner, caller: SignedIn, evaluation: str, campaign: str, body: AnnotatorAdd
) -> AnnotatorLink:
    """A link that signs a new annotator in, once. For an annotator that there is: a new one, and all others end."""
    found = get_evaluation(session, access.project, evaluation)
    mine = campaigns.get_campaign(session, found, campaign)
    link = campaigns.add_annotator(session, caller, access.project, mine, body.name)
    audit(session, access, "annotator.add", f"user {link.annotator}", {"campaign": mine.name})
    return link
