"""The arena over HTTP. Making one needs `run`, since it lets others ask models; to ask and to vote needs `rank`, and a
person. No answer about a battle names an entrant before its vote, and no one sees another person's battles."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Query, Request
from fastapi.responses import StreamingResponse
from sqlalchemy import select

from steerboard.accounts.access import Access, AccessTo, Credentials, Db, audit
from steerboard.accounts.http.event_stream import may_read
from steerboard.accounts.http.routes import Router
from steerboard.arena import battle_rows, preferences, service, votes
from steerboard.arena.conversations import read_conversations
from steerboard.arena.dependencies import Voting
from steerboard.arena.presenters import arenas_out, battle_out, side_change
from steerboard.arena.schemas import ArenaIn, ArenaLeaderboard, ArenaOut, BattleIn, BattleOut, PairsIn, TurnIn, VoteIn
from steerboard.arena.tables import Arena
from steerboard.datasets.queries import dataset_out
from steerboard.datasets.schemas import DatasetOut
from steerboard.platform.http import downloads
from steerboard.platform.http.downloads import Download
from steerboard.platform.http.errors import problems
from steerboard.platform.http.paging import Page, paginate
from steerboard.playground import stream

router = Router(tags=["arena"])

Anybody = Annotated[Access, Depends(AccessTo())]
Reader = Annotated[Access, Depends(AccessTo("read"))]
Writer = Annotated[Access, Depends(AccessTo("write"))]
Runner = Annotated[Access, Depends(AccessTo("run"))]
Limit = Annotated[int, Query(ge=1, le=200)]
TurnNumber = Annotated[int | None, Query(ge=1, description="Turn, from 1; null is the last one.")]


def _lease(request: Request) -> float:
    return float(request.app.state.settings.lease_seconds)


Lease = Annotated[float, Depends(_lease)]


@router.post("/arenas", status_code=201, responses=problems(404, 409, 422))
def create_arena(body: ArenaIn, session: Db, access: Runner) -> ArenaOut:
    """Create an arena in which policies compete. Everyone with the scope `rank` may ask them and vote."""
    made = service.create(session, access.project, body, access.actor)
    audit(session, access, "arena.create", made.name, {"entrants": [entrant["name"] for entrant in made.entrants]})
    return arenas_out(session, [made])[0]


@router.get("/arenas", responses=problems(404, 422))
def list_arenas(session: Db, access: Anybody, cursor: str | None = None, limit: Limit = 50) -> Page[ArenaOut]:
    """Newest first."""
    return paginate(
        session,
        select(Arena).where(Arena.project_id == access.project.id),
        Arena.id,
        lambda arena: arenas_out(session, [arena])[0],
        cursor=cursor,
        limit=limit,
        convert_all=lambda page: arenas_out(session, page),
    )


@router.get("/arenas/{arena}", responses=problems(404))
def get_arena(arena: str, session: Db, access: Anybody) -> ArenaOut:
    return arenas_out(session, [service.get_arena(session, access.project, arena)])[0]


@router.post("/arenas/{arena}/close", responses=problems(404))
def close_arena(arena: str, session: Db, access: Runner) -> ArenaOut:
    """Close an arena to new battles. Votes on existing ones are still accepted: they may be waiting in a browser."""
    row = service.get_arena(session, access.project, arena)
    if service.close(row):
        audit(session, access, "arena.close", row.name)
    return arenas_out(session, [row])[0]


@router.get("/arenas/{arena}/leaderboard", responses=problems(404))
def arena_leaderboard(
    arena: str,
    session: Db,
    access: Reader,
    category: Annotated[str | None, Query(description="Battles of this category only.")] = None,
) -> ArenaLeaderboard:
    """Bradley-Terry ratings with bootstrap intervals, and with control for style. Repeats do not count."""
    return battle_rows.leaderboard(session, service.get_arena(session, access.project, arena), category)


@router.get("/arenas/{arena}/export", response_class=Download, responses=problems(404))
def export_battles(arena: str, session: Db, access: Reader) -> Download:
    """Every valid vote, one line per pair of entrants that it decides between, as `steerboard figures FILE` reads
    it."""
    row = service.get_arena(session, access.project, arena)
    return downloads.made(
        lambda file: battle_rows.write(session, row, file), f"{row.name}.battles.jsonl", "application/x-ndjson"
    )


@router.post("/arenas/{arena}/preferences", status_code=201, responses=problems(404, 409, 422))
def create_arena_preferences(arena: str, body: PairsIn, session: Db, access: Writer) -> DatasetOut:
    """Turn votes for one side into a preference dataset, that side over each other one; ties and battles that are all
    bad are left out, and counted in its origin."""
    row = service.get_arena(session, access.project, arena)
    dataset = preferences.create(session, access.project, row, body, access.actor)
    detail = {"arena": row.name, "rows": dataset.rows, "split": body.split}
    audit(session, access, "dataset.prefer", dataset.name, detail)
    return dataset_out(session, dataset)


@router.post("/arenas/{arena}/battles", status_code=201, responses=problems(404, 409, 422, 429))
def begin_battle(arena: str, body: BattleIn, session: Db, voter: Voting, lease: Lease, request: Request) -> BattleOut:
    """Ask the entrants that the server draws; follow their answers at `battles/{battle}/stream`."""
    row = service.get_arena(session, voter.project, arena)
    key = request.app.state.secrets.derived("arena pairing")
    battle = service.begin(session, voter.project, voter.user_id, row, body, key)
    audit(session, voter.access, "arena.battle", f"battle {battle.id}", {"arena": row.name})
    return battle_out(session, battle, lease)


@router.get("/battles/{battle}", responses=problems(404))
def get_battle(battle: str, session: Db, voter: Voting, lease: Lease) -> BattleOut:
    """The caller's battle in its current state."""
    row = service.get_battle(session, voter.project, voter.user_id, battle)
    return battle_out(session, row, lease)


@router.post("/battles/{battle}/turns", status_code=201, responses=problems(404, 409, 422, 429))
def ask_again(battle: str, body: TurnIn, session: Db, voter: Voting, lease: Lease) -> BattleOut:
    """Ask the same entrants again, each after its own answers so far."""
    row = service.get_battle(session, voter.project, voter.user_id, battle, lock=True)
    service.ask_again(session, voter.project, row, body.prompt)
    audit(session, voter.access, "arena.turn", f"battle {row.id}")
    return battle_out(session, row, lease)


@router.get("/battles/{battle}/stream", response_class=StreamingResponse, responses=problems(404, 422))
def stream_battle(
    request: Request, battle: str, session: Db, voter: Voting, credentials: Credentials, turn: TurnNumber = None
) -> StreamingResponse:
    """Server-sent events of a turn: `answer` with a side's text as it grows, `end` when all have ended. A reader that
    connects gets everything so far."""
    row = service.get_battle(session, voter.project, voter.user_id, battle)
    id_ = read_conversations(session, [row])[row.id].first(turn).turns[-1].comparison_id
    project_id = voter.project.id
    body = stream.follow(request.app, id_, lambda: may_read(request, credentials, project_id, "rank"), side_change)
    return StreamingResponse(body, media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})


@router.post("/battles/{battle}/vote", responses=problems(404, 409, 422, 429))
def vote(battle: str, body: VoteIn, session: Db, voter: Voting, lease: Lease) -> BattleOut:
    """Vote on a battle; the response names its entrants. The same vote again changes nothing; another one is
    refused."""
    row = service.get_battle(session, voter.project, voter.user_id, battle, lock=True)
    if votes.give(session, row, body):
        audit(session, voter.access, "arena.vote", f"battle {row.id}", {"verdict": body.verdict})
    return battle_out(session, row, lease)
