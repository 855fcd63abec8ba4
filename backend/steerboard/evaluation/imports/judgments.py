"""Judgments made elsewhere become a judge with verdicts: read twice, first to see which rows count."""

from __future__ import annotations

import datetime as dt
import uuid
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

from sqlalchemy import select
from sqlalchemy.orm import Session

from steerboard.datasets.errors import NameTaken, RowsRefused
from steerboard.datasets.rows.row_writer import copy_in
from steerboard.evaluation.entrants.service import family_of
from steerboard.evaluation.events import changed
from steerboard.evaluation.imports.answers import add_response
from steerboard.evaluation.imports.schemas import JudgmentsForm
from steerboard.evaluation.imports.verdict_resolver import ImportedVerdicts, Item, Resolved
from steerboard.evaluation.judge_tables import Judge
from steerboard.evaluation.tables import Evaluation
from steerboard.evaluation.unmatched import LeftOut
from steerboard.platform.names import check_name, free_name, valid_name
from steerboard_contracts.errors import BadInput
from steerboard_figures.benchmark_files.repeats import Repeats, Settled, settled
from steerboard_figures.formats.detection import expect
from steerboard_figures.formats.turns import TurnVerdict, unknown_turns
from steerboard_files.records import Source
from steerboard_statistics.validity import UNUSABLE_THRESHOLD

STYLES = {
    "fastchat_single": "single",
    "arena_bench": "single",
    "fastchat_pair": "pairwise",
    "alpaca_eval": "alpaca_eval",
    "arena_hard": "arena_hard",
    "vicuna_review": "multi",
}
_UNKNOWN_JUDGE = "unknown"
_ELSEWHERE = (
    "Import the entrants' answers first, under the names of this file; or let it enter its models itself with"
    " --add-entrants (add_entrants=true)."
)
_COPY = (
    "COPY evaluation_verdicts (judge_id, position, turn, a, b, a_first, value, weight, status, raw, detail,"
    " superseded, created_at) FROM STDIN"
)


@dataclass(frozen=True, slots=True)
class _Given:
    """A verdict of the file by its place; `of` as in `Resolved.value`."""

    ordinal: int
    item: Item
    at: float | None
    of: Hashable


@dataclass
class JudgmentsRead:
    """What a file had. `kept`: the ordinals of the verdicts that count; `statuses` of those. `unordered`: items with
    several verdicts that no time orders. `unknown_turns`: verdicts that may be of another turn."""

    format: str
    kept: set[int] = field(default_factory=set)
    unordered: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    others: Counter[str] = field(default_factory=Counter)
    rows: int = 0
    verdicts: int = 0
    unknown_turns: int = 0
    added: list[str] = field(default_factory=list)


def import_judgments(
    session: Session, evaluation: Evaluation, source: Source, form: JudgmentsForm, actor: str, left_out: LeftOut
) -> tuple[Judge, JudgmentsRead]:
    """All or nothing is stored; of several verdicts on an item the newest counts and the others are superseded. Where
    no time orders them, the file's last one counts, and the report warns.

    Raises `RowsRefused`, `NothingMatches`, `NameTaken`, `BadInput` (`several_judges`, `several_pairs`), and what
    reading raises.
    """
    read = JudgmentsRead(expect(source, "judgments", form.format))
    imported = ImportedVerdicts(session, evaluation, source, read.format, form)
    _look(imported, read, left_out)
    left_out.refuse_bad(form.bad_rows, read.rows)
    if read.unknown_turns > UNUSABLE_THRESHOLD * read.verdicts and form.bad_rows == "refuse":
        raise RowsRefused(
            f"{read.unknown_turns:,} of {read.verdicts:,} verdicts of {source.label} may be of another turn than the "
            "one that they count for: their rows have no `turn`, or that of another row",
            hint="Give each row its `turn`; or leave these out (bad_rows=skip), and they count as unreadable.",
        )
    left_out.refuse_nothing(source.label, read.verdicts, _ELSEWHERE)
    model = _judge_model(imported, form)
    style = STYLES[read.format]
    judge = Judge(
        evaluation_id=evaluation.id,
        name=_judge_name(session, evaluation, form.name, valid_name(f"{model}-{style}")),
        style=style,
        model=model,
        family=form.family or family_of(model),
        settings=_settings(style, read),
        imported={
            "file": source.label,
            "format": read.format,
            "rows": read.rows,
            "unmatched": left_out.unmatched_rows,
            "skipped": left_out.bad.total + read.unknown_turns,
            "unordered": read.unordered,
        },
        created_by=actor,
    )
    session.add(judge)
    session.flush()
    _store(session, imported, judge, read)
    changed(session, evaluation, "judge")
    return judge, read


def _look(imported: ImportedVerdicts, read: JudgmentsRead, left_out: LeftOut) -> None:
    given: list[_Given] = []
    read.unknown_turns = unknown_turns(_turn_verdicts(_counted(imported, read, given, left_out))).total()
    read.kept = {verdict.ordinal for verdict in _settled(given, "last").kept}
    read.unordered = len(_settled(given, None).unordered)
    read.rows = imported.rows
    read.added = [entrant.name for entrant in imported.added]


def _settled(given: Sequence[_Given], repeats: Repeats | None) -> Settled[_Given, Item]:
    return settled(given, lambda verdict: verdict.item, lambda verdict: verdict.at, lambda verdict: verdict.of, repeats)


def _counted(
    imported: ImportedVerdicts, read: JudgmentsRead, given: list[_Given], left_out: LeftOut
) -> Iterator[Resolved]:
    for verdict in imported.verdicts(left_out):
        given.append(_Given(read.verdicts, verdict.item, verdict.judgment.at, verdict.value))
        if verdict.b is not None:
            read.others[verdict.b.name] += 1
        read.verdicts += 1
        yield verdict


def _turn_verdicts(verdicts: Iterable[Resolved]) -> Iterator[TurnVerdict[Hashable]]:
    for verdict in verdicts:
        judgment, (position, turn, *entrants) = verdict.judgment, verdict.item
        raw = None if judgment.raw is None else hash(judgment.raw)
        yield TurnVerdict(tuple(entrants), position, turn, judgment.turn_given, judgment.value, raw, judgment.at)


def _store(session: Session, imported: ImportedVerdicts, judge: Judge, read: JudgmentsRead) -> None:
    now = dt.datetime.now(dt.UTC)
    added = {entrant.id: entrant for entrant in imported.added}
    outputs: dict[tuple[uuid.UUID, int], str] = {}
    with copy_in(session, _COPY) as copy:
        for ordinal, verdict in enumerate(imported.verdicts(LeftOut())):
            judgment, b = verdict.judgment, verdict.b.id if verdict.b else None
            counts = ordinal in read.kept
            read.statuses[judgment.status] += counts
            at = dt.datetime.fromtimestamp(judgment.at, dt.UTC) if judgment.at is not None else now
            copy.write_row(
                (
                    *(judge.id, verdict.position, judgment.turn, verdict.a.id, b, judgment.a_first, judgment.value),
                    *(judgment.weight, judgment.status, judgment.raw, judgment.detail, not counts, at),
                )
            )
            for id_, output in zip((verdict.a.id, b), judgment.outputs, strict=True):
                if id_ in added and output is not None:
                    outputs.setdefault((id_, verdict.position), output)
    for (id_, position), output in outputs.items():
        add_response(session, added[id_], position, output)
    for id_, entrant in added.items():
        entrant.imported = {**(entrant.imported or {}), "answers": sum(entrant_id == id_ for entrant_id, _ in outputs)}
    session.flush()


def _judge_model(imported: ImportedVerdicts, form: JudgmentsForm) -> str:
    """Raises `BadInput` (`several_judges`) where the file has the judgments of several, some of whom it may not name,
    and none was chosen."""
    chosen = {name: imported.judges[name] for name in imported.chosen}
    if len(chosen) > 1:
        counted = sorted(chosen.items(), key=lambda model_count: -model_count[1])[:5]
        named = ", ".join(f"{'not named' if name is None else name} ({rows:,} rows)" for name, rows in counted)
        raise BadInput(
            f"the file has judgments of several judges: {named}",
            code="several_judges",
            hint="Choose one with `model`, and import the file once for each.",
        )
    return form.model or next((name for name in chosen if name is not None), _UNKNOWN_JUDGE)


def _settings(style: str, read: JudgmentsRead) -> dict[str, str]:
    """The baseline is whom most verdicts compare with."""
    if style not in ("alpaca_eval", "arena_hard") or not read.others:
        return {}
    return {"baseline": read.others.most_common(1)[0][0]}


def _judge_name(session: Session, evaluation: Evaluation, wanted: str | None, otherwise: str) -> str:
    """Raises `NameTaken` for a name that was asked for; others get a number."""
    taken = set(session.scalars(select(Judge.name).where(Judge.evaluation_id == evaluation.id)))
    if wanted is not None:
        if check_name(wanted) in taken:
            raise NameTaken(f"there is already a judge {wanted!r}", hint="Give it another `name`.")
        return wanted
    return free_name(otherwise, taken)
