"""Ranking campaigns over HTTP, for those who ask for rankings."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Query
from sqlalchemy import select

from steerboard.accounts.access import Access, AccessTo, Db, SignedIn, audit
from steerboard.accounts.http.routes import Router
from steerboard.datasets.queries import dataset_out
from steerboard.datasets.schemas import DatasetOut
from steerboard.evaluation.events import changed
from steerboard.evaluation.lookup import get_evaluation
from steerboard.evaluation.ranking.campaigns import corrections
from steerboard.evaluation.ranking.campaigns import service as campaigns
from steerboard.evaluation.ranking.campaigns.quality import quality
from steerboard.evaluation.ranking.campaigns.quality_schemas import CampaignQuality
from steerboard.evaluation.ranking.campaigns.queries import (
    campaign_out,
    campaigns_out,
    flags_of,
    rankings_out,
    write_rankings,
)
from steerboard.evaluation.ranking.campaigns.schemas import (
    AnnotatorAdd,
    AnnotatorLink,
    CampaignChange,
    CampaignCreate,
    CampaignOut,
    Campaigns,
    CorrectionsCreate,
    Flags,
    GoldItem,
    GoldItems,
    GoldRanks,
    RankingOut,
    SpanFlagRow,
    Standing,
    StandingRow,
)
from steerboard.evaluation.ranking.campaigns.span_rows import span_rows, spans_of
from steerboard.evaluation.ranking.tables import RankingSpan, RankingTask
from steerboard.evaluation.standing import best_first
from steerboard.platform.http import downloads
from steerboard.platform.http.downloads import Download
from steerboard.platform.http.errors import problems
from steerboard.platform.http.paging import Page, paginate

router = Router(prefix="/evaluations/{evaluation}", tags=["ranking"])

Read = Annotated[Access, Depends(AccessTo("read"))]
Write = Annotated[Access, Depends(AccessTo("write"))]
Owner = Annotated[Access, Depends(AccessTo("admin"))]


@router.get("/standing", responses=problems(404))
def get_standing(session: Db, access: Read, evaluation: str) -> Standing:
    """The entrants, best first, by people, judges and reward models so far: whom a campaign asks about by default."""
    stored = get_evaluation(session, access.project, evaluation)
    standings = best_first(session, stored)
    return Standing(items=[StandingRow(entrant=entrant.name, standing=share) for entrant, share in standings])


@router.get("/campaigns", responses=problems(404))
def list_campaigns(session: Db, access: Read, evaluation: str) -> Campaigns:
    """Oldest first, with the progress of each and of its annotators."""
    return Campaigns(items=campaigns_out(session, get_evaluation(session, access.project, evaluation)))


@router.post("/campaigns", status_code=201, responses=problems(404, 409))
def create_campaign(session: Db, access: Write, evaluation: str, body: CampaignCreate) -> CampaignOut:
    """Ask people to rank the answers: one item for each prompt that all of the entrants have answered."""
    stored = get_evaluation(session, access.project, evaluation)
    campaign = campaigns.create(session, stored, body, access.actor)
    audit(
        session,
        access,
        "campaign.create",
        f"campaign {campaign.name} {campaign.id}",
        {"evaluation": stored.name},
    )
    changed(session, stored, "campaign")
    return campaign_out(session, campaign)


@router.get("/campaigns/{campaign}", responses=problems(404))
def get_campaign(session: Db, access: Read, evaluation: str, campaign: str) -> CampaignOut:
    """A campaign by id or name."""
    stored = get_evaluation(session, access.project, evaluation)
    return campaign_out(session, campaigns.get_campaign(session, stored, campaign))


@router.patch("/campaigns/{campaign}", responses=problems(404))
def change_campaign(session: Db, access: Write, evaluation: str, campaign: str, body: CampaignChange) -> CampaignOut:
    """Pause, close or reopen a campaign, ask for more rankings of each item, or reword it."""
    stored = get_evaluation(session, access.project, evaluation)
    row = campaigns.get_campaign(session, stored, campaign)
    campaigns.change(session, row, body)
    audit(
        session,
        access,
        "campaign.change",
        f"campaign {row.name} {row.id}",
        body.model_dump(exclude_none=True, exclude={"instructions"}),
    )
    changed(session, stored, "campaign")
    return campaign_out(session, row)


@router.get("/campaigns/{campaign}/gold", responses=problems(404))
def list_gold(session: Db, access: Read, evaluation: str, campaign: str) -> GoldItems:
    """The items whose correct ranks are known, in the order of their prompts."""
    stored = get_evaluation(session, access.project, evaluation)
    return GoldItems(items=campaigns.gold_of(session, campaigns.get_campaign(session, stored, campaign)))


@router.put("/campaigns/{campaign}/gold/{position}", responses=problems(404))
def set_gold(session: Db, access: Write, evaluation: str, campaign: str, position: int, body: GoldRanks) -> GoldItem:
    """Set the correct ranks of an item. Every annotator gets it, and none sees which items these are."""
    stored = get_evaluation(session, access.project, evaluation)
    row = campaigns.get_campaign(session, stored, campaign)
    gold = campaigns.set_gold(session, row, position, body.ranks)
    audit(session, access, "gold.set", f"campaign {row.name} {row.id}", {"position": position})
    changed(session, stored, "campaign")
    return gold


@router.delete("/campaigns/{campaign}/gold/{position}", status_code=204, responses=problems(404))
def remove_gold(session: Db, access: Write, evaluation: str, campaign: str, position: int) -> None:
    """Make a gold item an ordinary one again."""
    stored = get_evaluation(session, access.project, evaluation)
    row = campaigns.get_campaign(session, stored, campaign)
    campaigns.remove_gold(session, row, position)
    audit(session, access, "gold.remove", f"campaign {row.name} {row.id}", {"position": position})
    changed(session, stored, "campaign")


@router.get("/campaigns/{campaign}/rankings", responses=problems(404))
def list_campaign_rankings(
    session: Db,
    access: Read,
    evaluation: str,
    campaign: str,
    cursor: str | None = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> Page[RankingOut]:
    """Every submission, with names, in no meaningful order."""
    stored = get_evaluation(session, access.project, evaluation)
    row = campaigns.get_campaign(session, stored, campaign)
    submitted = select(RankingTask).where(RankingTask.campaign_id == row.id, RankingTask.state == "submitted")
    return paginate(
        session,
        submitted,
        RankingTask.id,
        lambda task: rankings_out(session, row, [task])[0],
        cursor=cursor,
        limit=limit,
        newest_first=False,
        convert_all=lambda page: rankings_out(session, row, page),
    )


@router.get("/campaigns/{campaign}/rankings/export", response_class=Download, responses=problems(404))
def export_campaign_rankings(session: Db, access: Read, evaluation: str, campaign: str) -> Download:
    """Every submission, with names and replies to the campaign's questions, as JSON lines by prompt and annotator."""
    stored = get_evaluation(session, access.project, evaluation)
    row = campaigns.get_campaign(session, stored, campaign)
    return downloads.made(
        lambda file: write_rankings(session, row, file),
        f"{stored.name}.{row.name}.rankings.jsonl",
        "application/x-ndjson",
    )


@router.post("/campaigns/{campaign}/corrections", status_code=201, responses=problems(404, 409))
def create_corrections(
    session: Db, access: Write, evaluation: str, campaign: str, body: CorrectionsCreate
) -> DatasetOut:
    """Turn the corrected answers into a dataset of instructions, ready to fine-tune on."""
    stored = get_evaluation(session, access.project, evaluation)
    row = campaigns.get_campaign(session, stored, campaign)
    dataset = corrections.create(session, access.project, stored, row, body, access.actor)
    detail = {"evaluation": stored.name, "campaign": row.name, "rows": dataset.rows, "split": body.split}
    audit(session, access, "dataset.correct", dataset.name, detail)
    return dataset_out(session, dataset)


@router.get("/campaigns/{campaign}/quality", responses=problems(404))
def get_quality(session: Db, access: Read, evaluation: str, campaign: str) -> CampaignQuality:
    """How fast and how well each annotator works, and how much is done each day."""
    stored = get_evaluation(session, access.project, evaluation)
    return quality(session, campaigns.get_campaign(session, stored, campaign))


@router.get("/campaigns/{campaign}/flags", responses=problems(404))
def list_flags(session: Db, access: Read, evaluation: str, campaign: str) -> Flags:
    """What annotators flagged or skipped, and why. Newest first."""
    stored = get_evaluation(session, access.project, evaluation)
    return Flags(items=flags_of(session, campaigns.get_campaign(session, stored, campaign)))


@router.get("/campaigns/{campaign}/spans", responses=problems(404))
def list_span_flags(
    session: Db,
    access: Read,
    evaluation: str,
    campaign: str,
    cursor: str | None = None,
    limit: Annotated[int, Query(ge=1, le=1000)] = 100,
) -> Page[SpanFlagRow]:
    """Passages of answers that annotators flagged, with names. Newest first."""
    stored = get_evaluation(session, access.project, evaluation)
    row = campaigns.get_campaign(session, stored, campaign)
    return paginate(
        session,
        spans_of(row),
        RankingSpan.id,
        lambda span: span_rows(session, [span])[0],
        cursor=cursor,
        limit=limit,
        convert_all=lambda page: span_rows(session, page),
    )


@router.post("/campaigns/{campaign}/annotators", status_code=201, responses=problems(404, 409))
def add_annotator(
    session: Db, access: Owner, caller: SignedIn, evaluation: str, campaign: str, body: AnnotatorAdd
) -> AnnotatorLink:
    """Create a link that signs a new annotator in once. For an existing annotator, it replaces all former links."""
    stored = get_evaluation(session, access.project, evaluation)
    row = campaigns.get_campaign(session, stored, campaign)
    link = campaigns.add_annotator(session, caller, access.project, row, body.name)
    audit(session, access, "annotator.add", f"user {link.annotator}", {"campaign": row.name})
    return link
