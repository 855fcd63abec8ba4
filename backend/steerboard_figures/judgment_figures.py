"""The figures of judgment files, without a project: what a benchmark's own scripts would print, from the same files."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

from steerboard_contracts.errors import BadInput
from steerboard_figures.benchmark_files import (
    alpaca_eval,
    battles,
    best_of_four,
    games,
    judge_benchmarks,
    leaderboards,
    reviews,
    rewards,
    singles,
)
from steerboard_figures.benchmark_files.judges import by_judge, check_judge, judged_item, labels
from steerboard_figures.benchmark_files.length_control import LengthControl
from steerboard_figures.benchmark_files.reading import Figures, Findings, objects, parsed, source
from steerboard_figures.benchmark_files.repeats import Repeats
from steerboard_figures.benchmark_files.tables import is_table, table
from steerboard_figures.benchmark_files.words import Dialect
from steerboard_figures.formats.alpaca_eval import annotator_of
from steerboard_figures.formats.detection import JUDGMENTS, expect
from steerboard_figures.formats.records import Judgment, Unreadable
from steerboard_figures.formats.rows import read_rows
from steerboard_files.errors import WrongFileType
from steerboard_files.lines import GZIP, GZIP_ERRORS, unpacked
from steerboard_files.records import Problem
from steerboard_statistics.validity import UNUSABLE_THRESHOLD

_OTHERS = ("rewardbench", "rewardbench2", "llmbar", "pandalm", "battles", "leaderboards")
# Formats whose files are results of their own, whatever others hold. Of RewardBench it depends.
_BY_FILE = ("leaderboards", "vicuna_review", "rewardbench")
FORMATS = ("auto", *JUDGMENTS, *_OTHERS)


@dataclass(frozen=True)
class Options:
    """`threshold`: the share of unusable input above which a figure is invalid; `judge`: whose judgments count;
    `crowd`: battles of all voters together, as an arena has them; `baseline`: of Arena-Hard and of AlpacaEval's length
    control; `categories`: of questions, by id; `unparsed_is_tie`: of PandaLM; `verdicts` and
    `reviewers`: see `Dialect`; `repeats`: which of rows in no order of time counts; `columns`: of two leaderboards."""

    threshold: float = UNUSABLE_THRESHOLD
    judge: str | None = None
    crowd: bool = False
    baseline: str | None = None
    control: LengthControl = field(default_factory=LengthControl)
    categories: Mapping[Hashable, str] | None = None
    unparsed_is_tie: bool = True
    verdicts: Mapping[str, str] = field(default_factory=dict)
    reviewers: Mapping[str, str] = field(default_factory=dict)
    repeats: Repeats | None = None
    columns: Sequence[str] = ()


def figures(paths: Sequence[Path], format: str = "auto", options: Options = Options()) -> Figures:
    """The figures of files of one format; `format` auto is that of the first. `valid` is False where any figure is
    invalid.

    Raises the errors of unreadable files, `BadInput`.
    """
    if format not in FORMATS:
        raise BadInput(
            f"there is no format {format!r}", code="invalid_request", hint=f"It is one of {', '.join(FORMATS)}."
        )
    if options.control.gamed is not None and options.control.difficulty is None:
        raise BadInput(
            "the gamed baselines come with difficulties, and there are none for the prompts",
            code="missing_input",
            hint="Give --difficulty too.",
        )
    format_ = _format(paths, format)
    findings = Findings(options.threshold, Dialect(format_, options.verdicts, options.reviewers), options.repeats)
    if format_ not in _BY_FILE:
        _differ(paths)
    if options.judge is not None and format_ == "leaderboards":
        raise BadInput("leaderboards do not name a judge", code="invalid_request", hint="Leave --judge out.")
    if options.repeats == "all" and format_ != "battles":
        raise BadInput(
            "--repeats all applies only to battle files: elsewhere a question has one verdict",
            code="invalid_request",
            hint="Give --repeats first or last.",
        )
    if options.crowd and (format_ != "battles" or options.judge is not None):
        raise BadInput(
            "--crowd applies only to battle files, and not together with --judge",
            code="invalid_request",
            hint="Leave --crowd out.",
        )
    return findings.document(format_, _answers(paths, format_, options, findings))


def _differ(paths: Sequence[Path]) -> None:
    """Rows of a file that is given twice would count twice. Raises `BadInput`."""
    digests: dict[bytes, Path] = {}
    for path in paths if len(paths) > 1 else ():
        digest = _digest(path)
        if digests.setdefault(digest, path) is not path:
            raise BadInput(
                f"{path} has the same content as {digests[digest]}: each of its rows would count twice",
                code="invalid_request",
                hint="Give each file once.",
            )


def _digest(path: Path) -> bytes:
    """The hash of what the file holds unpacked, because a file may be given with its gzipped copy."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        zipped = file.read(2) == GZIP
        file.seek(0)
        stream: BinaryIO = unpacked(file) if zipped else file
        try:
            while block := stream.read(1 << 20):
                digest.update(block)
        except GZIP_ERRORS:
            digest.update(path.name.encode())  # its reader reports what is wrong with it
    return digest.digest()


def _answers(paths: Sequence[Path], format: str, options: Options, findings: Findings) -> Figures:
    match format:
        case "alpaca_eval":
            return _alpaca_eval(paths, options, findings)
        case "rewardbench":
            return _rewards(paths, options.judge, findings)
        case "rewardbench2":
            prompts = parsed(paths, best_of_four.prompt, findings, groups_of=rewards.subset_of)
            rewards.refuse_unread([scored.model for scored in prompts], findings)
            best_of_four.point_out_missing(prompts, findings)
            by_model = by_judge(
                prompts,
                [scored.model for scored in prompts],
                options.judge,
                findings,
                lambda rows: best_of_four.figures(rows, findings),
            )
            return by_model if options.judge is not None else by_model | best_of_four.compared(prompts, findings)
        case "llmbar":
            return judge_benchmarks.llmbar_figures(paths, options.judge, findings)
        case "pandalm":
            return judge_benchmarks.pandalm_figures(
                paths, options.judge, findings, unparsed_is_tie=options.unparsed_is_tie
            )
        case "battles":
            return battles.figures(paths, options.judge, findings, crowd=options.crowd)
        case "leaderboards":
            return leaderboards.correlation(paths, options.columns, findings)
        case "vicuna_review":
            read = [(path, parsed([path], _identified(format), findings, groups_of=_file_of)) for path in paths]
            return {"files": _reviews(read, options.judge, findings)}
    rows = parsed(paths, _identified(format), findings)

    def answer(rows: Sequence[list[Judgment]]) -> Figures:
        if format == "fastchat_pair":
            return games.pairs(rows, findings)
        if format == "arena_hard":
            return games.arena(rows, options.baseline, findings)
        return singles.singles([rating for row in rows for rating in row], options.categories, findings)

    return by_judge(rows, labels([judged_item(row) for row in rows]), options.judge, findings, answer)


def _reviews(
    read: Sequence[tuple[Path, Sequence[list[Judgment]]]], wanted: str | None, findings: Findings
) -> list[Figures]:
    """The figures of each file, and of each of its reviewers where they are not parts of one whole. Raises
    `BadInput`."""
    names = [labels([judged_item(row) for row in rows]) for _, rows in read]
    check_judge(wanted, [reviewer for named in names for reviewer in dict.fromkeys(named) if reviewer is not None])
    figures = []
    for (path, rows), named in zip(read, names, strict=True):
        for name in dict.fromkeys(named) or [None]:
            if wanted in (None, name):
                of_one = [row for row, reviewer in zip(rows, named, strict=True) if reviewer == name]
                figures.append(reviews.reviews(path.name, name, of_one, findings))
    return figures


def _file_of(path: Path, _: object) -> Collection[str]:
    return [path.name]


def _identified(format: str) -> Callable[[Mapping[str, Any]], list[Judgment]]:
    """Rows are about a question by its id, and never by their place, which a shuffled file has lost."""

    def parse(row: Mapping[str, Any]) -> list[Judgment]:
        judgments = JUDGMENTS[format](row)
        if judgments[0].question_id is None:
            raise Unreadable("has no `question_id`, and its position in the file does not identify the question")
        return judgments

    return parse


def _format(paths: Sequence[Path], format: str) -> str:
    if format != "auto":
        return format
    if is_table(paths[0]):
        return _of_table(set(table(paths[0])[0][1]))
    if rewards.results(paths[0]) is not None:
        return "rewardbench"
    first = next((row for _, row in read_rows(source(paths[0])) if not isinstance(row, Problem)), None)
    if first is not None:
        for name, fits in (
            ("rewardbench", rewards.is_pair),
            ("rewardbench2", best_of_four.is_prompt),
            ("llmbar", judge_benchmarks.is_llmbar),
            ("pandalm", judge_benchmarks.is_pandalm),
            ("battles", battles.is_battle),
        ):
            if fits(first):
                return name
    return expect(source(paths[0]), "judgments", format)


def _of_table(columns: set[str]) -> str:
    row = dict.fromkeys(columns)
    if battles.is_battle(row):
        return "battles"
    if rewards.is_pair(row):
        return "rewardbench"
    return "llmbar" if judge_benchmarks.is_llmbar(row) else "alpaca_eval"


def _rewards(paths: Sequence[Path], judge: str | None, findings: Findings) -> Figures:
    documents = [document for path in paths if (document := rewards.results(path)) is not None]
    if documents:
        if len(documents) < len(paths):
            raise BadInput(
                "some of the files are RewardBench's results, and others are not",
                code="invalid_request",
                hint="Give those of one kind.",
            )
        findings.rows += len(documents)
        return by_judge(
            documents,
            rewards.result_names(paths, documents),
            judge,
            findings,
            lambda rows: rewards.of_results(rows[0], findings),
        )
    _differ(paths)
    pairs = parsed(paths, rewards.pair, findings, "subset", groups_of=rewards.subset_of)
    if not pairs:
        raise WrongFileType(
            f"{paths[0].name} has no row of a subset with two rewards", hint="See docs/evaluation.md for the fields."
        )
    rewards.refuse_unread([pair.model for pair in pairs], findings)
    figures = by_judge(
        pairs,
        [pair.model for pair in pairs],
        judge,
        findings,
        lambda rows: rewards.of_pairs(rows, rows[0].model, findings),
    )
    return figures if judge is not None else figures | rewards.compared(pairs, findings)


def _alpaca_eval(paths: Sequence[Path], options: Options, findings: Findings) -> Figures:
    rows = [(path, *row) for path in paths for row in objects(path, findings, "preference")]
    broken = {id(row) for row in rows if isinstance(row[2], Problem)}

    def answer(group: Sequence[tuple[Path, int, Mapping[str, Any] | Problem]]) -> Figures:
        # Lines that no one can read may be anyone's: the prompts of every judge may be shifted by them.
        wanted = broken | {id(row) for row in group}
        files = [(path, [row[1:] for row in rows if row[0] is path and id(row) in wanted]) for path in paths]
        return alpaca_eval.figures(files, options.control, options.baseline, findings)

    readable = [row for row in rows if id(row) not in broken]
    return by_judge(readable, [_judge(row[2]) for row in readable], options.judge, findings, answer)


def _judge(row: Mapping[str, Any] | Problem) -> str | None:
    try:
        return None if isinstance(row, Problem) else annotator_of(row)
    except Unreadable:
        return None
