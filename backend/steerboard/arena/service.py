"""Arenas: making, finding and closing them; battles: beginning them and asking further turns."""

from __future__ import annotations

import secrets
import uuid
from collections.abc import Sequence

from sqlalchemy import func, select
from sqlalchemy.orm import Session

from steerboard.accounts.tables import Project
from steerboard.arena import rates
from steerboard.arena.conversations import Conversation, read_conversations
from steerboard.arena.errors import AlreadyVoted, ArenaClosed, BadEntrants
from steerboard.arena.pairing import draw
from steerboard.arena.schemas import ArenaEntrantIn, ArenaIn, BattleIn
from steerboard.arena.tables import Arena, Battle, Turn, Vote
from steerboard.datasets.errors import NameTaken
from steerboard.platform.http.errors import NotFound
from steerboard.platform.names import as_id, check_name, find, free_name
from steerboard.playground import columns
from steerboard.playground.errors import NoScores, WrongRole
from steerboard.playground.schemas import ColumnIn, ComparisonIn
from steerboard.playground.service import create_comparison
from steerboard_contracts.errors import BadInput
from steerboard_contracts.turns import Message

# Who asked is in the battle; a comparison in the database does not name them.
_ACTOR = "arena"


def create(session: Session, project: Project, given: ArenaIn, actor: str) -> Arena:
    """Raises `BadInput` (`invalid_name`), `NameTaken`, `BadEntrants`, and as `columns.resolve`."""
    name = check_name(given.name)
    if session.scalar(select(Arena.id).where(Arena.project_id == project.id, Arena.name == name)) is not None:
        raise NameTaken(f"there is already an arena {name!r}", hint="Choose another name.")
    arena = Arena(
        project_id=project.id,
        name=name,
        entrants=_entrants(session, project, given.entrants),
        sides=given.sides,
        categories=given.categories,
        seed=secrets.randbelow(2**63),
        state="open",
        created_by=actor,
    )
    session.add(arena)
    session.flush()
    session.refresh(arena)
    return arena


def _entrants(session: Session, project: Project, given: Sequence[ArenaEntrantIn]) -> list[dict[str, object]]:
    entrants: list[dict[str, object]] = []
    keys: set[tuple[str, str | None, str]] = set()
    for place, entrant in enumerate(given):
        column = columns.resolve(session, project, entrant, place)
        key = column.source, column.score_text, entrant.decoding.model_dump_json()
        if key in keys:
            raise BadEntrants(
                f"entrants[{place}] is the same as an earlier entrant",
                hint="Give each entrant a different model, score or decoding.",
            )
        keys.add(key)
        taken = [str(entrant["name"]) for entrant in entrants]
        if entrant.name in taken:
            raise BadEntrants(f"two entrants are called {entrant.name!r}", hint="Give each entrant its own name.")
        usual = column.name if column.score_text is None else f"{column.name} at {column.score_text}"
        source = {"model": str(column.model_id)} if column.model_id else {"endpoint": str(column.endpoint_id)}
        score = column.score.plain() if column.score is not None else None
        entrants.append(
            {
                "name": entrant.name or free_name(usual, taken),
                **source,
                "score": score,
                "decoding": entrant.decoding.model_dump(),
            }
        )
    return entrants


def get_arena(session: Session, project: Project, ref: str) -> Arena:
    """The arena by id or name. Raises `NotFound` (`unknown_arena`), also for another project's."""
    arena = find(session, select(Arena).where(Arena.project_id == project.id), Arena.id, Arena.name, ref)
    if arena is None:
        raise NotFound(f"there is no arena {ref!r}", code="unknown_arena", hint="`steerboard arena list` lists them.")
    return arena


def close(arena: Arena) -> bool:
    """No more battles begin; votes on those that have begun are still taken. False where it was closed already."""
    was_open = arena.state == "open"
    arena.state = "closed"
    return was_open


def begin(
    session: Session, project: Project, user_id: uuid.UUID, arena: Arena, given: BattleIn, pairing_key: bytes
) -> Battle:
    """A battle with its first turn. `pairing_key`: as for `pairing.draw`.

    Raises `ArenaClosed`, `TooFast`, `BadEntrants`, `BadInput` (`unknown_category`).
    """
    if given.category is not None and given.category not in arena.categories:
        raise BadInput(
            f"the arena has no category {given.category!r}",
            code="unknown_category",
            hint=f"Its categories: {', '.join(arena.categories) or 'none'}.",
        )
    rates.take_turn(session, user_id)
    # One at a time: the number of a battle decides its entrants.
    session.refresh(arena, with_for_update={"key_share": True})
    if arena.state == "closed":
        raise ArenaClosed("the arena is closed to new battles")
    places = [place for place in range(len(arena.entrants)) if _can_answer(session, project, arena, place)]
    if len(places) < 2:
        raise BadEntrants("fewer than two of its entrants are left", hint="Choose another arena.")
    number = session.scalar(select(func.count()).select_from(Battle).where(Battle.arena_id == arena.id)) or 0
    pairing = draw(session, arena, places, number, pairing_key)
    battle = Battle(
        project_id=project.id,
        arena_id=arena.id,
        user_id=user_id,
        number=number,
        entrants=pairing.entrants,
        seed=pairing.seed,
        category=given.category,
    )
    session.add(battle)
    session.flush()
    _ask(session, project, arena, battle, Conversation(len(pairing.entrants)), given.prompt)
    session.refresh(battle)
    return battle


def get_battle(session: Session, project: Project, user_id: uuid.UUID, ref: str, *, lock: bool = False) -> Battle:
    """A battle of this person, by id. Raises `NotFound` (`unknown_battle`), also for another person's."""
    id_ = as_id(ref)
    query = select(Battle).where(Battle.id == id_, Battle.project_id == project.id, Battle.user_id == user_id)
    battle = session.scalar(query.with_for_update(key_share=True) if lock else query) if id_ is not None else None
    if battle is None:
        raise NotFound(f"you have no battle {ref!r}", code="unknown_battle")
    return battle


def ask_again(session: Session, project: Project, battle: Battle, prompt: str) -> None:
    """A further turn of a locked battle. Each entrant has its own answers before it.

    Raises `AlreadyVoted`, `AnswersMissing`, `AnswerFailed`, `TooFast`.
    """
    if session.get(Vote, battle.id) is not None:
        raise AlreadyVoted("the battle is over: it has a vote", hint="Start another one.")
    rates.take_turn(session, battle.user_id)
    conversation = read_conversations(session, [battle])[battle.id]
    conversation.check_complete()
    arena = session.get_one(Arena, battle.arena_id)
    _ask(session, project, arena, battle, conversation, prompt)


def _ask(session: Session, project: Project, arena: Arena, battle: Battle, so_far: Conversation, prompt: str) -> None:
    prompts = [_messages([*before, {"role": "user", "content": prompt}]) for before in so_far.messages()]
    comparison = ComparisonIn.model_construct(
        prompt=prompts[0],
        columns=[_column(arena, place) for place in battle.entrants],
        reward=None,
        seed=battle.seed,
    )
    try:
        made = create_comparison(session, project, comparison, _ACTOR, blind=True, prompts=prompts)
    except (NotFound, WrongRole, NoScores, BadInput) as error:
        raise BadEntrants("an entrant of this battle has been deleted", hint="Start another battle.") from error
    session.add(Turn(battle_id=battle.id, place=len(so_far.turns), prompt=prompt, comparison_id=made.id))
    session.flush()


def _messages(conversation: list[dict[str, str]]) -> list[Message]:
    # As it was: an empty answer is not a turn of a dataset, but one of this conversation.
    return [Message.model_construct(**message) for message in conversation]  # type: ignore[arg-type]


def _column(arena: Arena, place: int) -> ColumnIn:
    entrant = {key: value for key, value in arena.entrants[place].items() if key != "name"}
    return ColumnIn.model_validate(entrant)


def _can_answer(session: Session, project: Project, arena: Arena, place: int) -> bool:
    try:
        columns.resolve(session, project, _column(arena, place), place)
    except (NotFound, WrongRole, NoScores, BadInput):
        return False
    return True
