"""The figures of judgment files, without a project: what a benchmark's own scripts would print, from the same files."""

from __future__ import annotations

import csv
import gzip
import io
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import orjson

from steerboard.datasets.files.records import Problem, Source
from steerboard.evaluation.formats.detection import JUDGMENTS, expect, read
from steerboard.evaluation.formats.records import Judgment
from steerboard_contracts.errors import BadInput
from steerboard_statistics import alpaca_eval, arena_hard, fastchat, length_controlled, ranks, rewardbench
from steerboard_statistics.length_controlled import CannotFit, Gamed, Weights

_SHOWN_BAD = 20
_GZIP = b"\x1f\x8b"
# What tools call the rewards of the chosen and the rejected side.
_REWARDS = (
    ("chosen_reward", "rejected_reward"),
    ("score_chosen", "score_rejected"),
    ("scores_chosen", "scores_rejected"),
)


@dataclass(frozen=True)
class LengthControl:
    """What length control needs beside the judgments. `difficulty`: of each of the benchmark's prompts by position;
    `weights`: published ones by model, taken instead of a fit; `c`: instead of cross-validation."""

    difficulty: list[float] | None = None
    gamed: Gamed | None = None
    weights: Mapping[str, Weights] = field(default_factory=dict)
    c: float | None = None


@dataclass(frozen=True, slots=True)
class Preference:
    """One row of AlpacaEval. `position`: of its prompt in the benchmark; lengths in characters, None where unknown."""

    model: str
    position: int
    p: float | None
    len_1: float | None
    len_2: float | None


def figures(paths: Sequence[Path], format: str, baseline: str | None, control: LengthControl) -> dict[str, Any]:
    """Of files of one format; `format` auto is that of the first. Raises the errors of unreadable files, `BadInput`."""
    if format in ("auto", "rewardbench") and (document := _results(paths[0])) is not None:
        return {"format": "rewardbench", **_sections(document if len(paths) == 1 else _refuse_several())}
    if format in ("auto", "alpaca_eval") and all(".csv" in path.name for path in paths):
        rows = [row for path in paths for row in _table(path)]
        return {"format": "alpaca_eval", "rows": len(rows), "models": _alpaca(_preferences(rows), control)}
    sources = [Source(path.name, lambda path=path: path.open("rb")) for path in paths]  # type: ignore[misc]
    if format in ("auto", "rewardbench") and (pairs := _reward_pairs(sources[0])) is not None:
        every = [pair for source in sources for pair in _reward_pairs(source) or []]
        return {"format": "rewardbench", "rows": len(every), **_sections(rewardbench.subset_accuracies(every or pairs))}
    found = expect(sources[0], "judgments", format)
    bad: list[str] = []
    rows_read = [list(_rows(source, found, bad)) for source in sources]
    judgments = [one for rows in rows_read for row in rows for one in row]
    answer: dict[str, Any] = {
        "format": found,
        "rows": sum(len(rows) for rows in rows_read),
        "bad_rows": len(bad),
        "bad": bad[:_SHOWN_BAD],
    }
    if found == "alpaca_eval":
        return answer | {"models": _alpaca(_of_annotations(judgments), control)}
    if found in ("fastchat_single", "arena_bench"):
        return answer | _singles(_ratings(judgments))
    if found == "fastchat_pair":
        return answer | {"models": _pairs(rows_read)}
    if found == "vicuna_review":
        reviews = [asdict(fastchat.review_summary(_scores(rows))) for rows in rows_read]
        return answer | {"files": [{"file": path.name, **one} for path, one in zip(paths, reviews, strict=True)]}
    return answer | _arena(judgments, baseline)


def read_difficulty(path: Path) -> list[float]:
    """Column `instruction_difficulty` of a CSV file, a row a prompt. Raises `BadInput`."""
    return [_number(path, row, "instruction_difficulty") for row in _table(path)]


def read_gamed(path: Path) -> Gamed:
    """{preference (p), std_delta_len, instruction_difficulty} of rows of gamed baselines. Raises `BadInput`."""
    rows = _table(path)
    column = {
        name: np.array([_number(path, row, name) for row in rows])
        for name in ("preference", "std_delta_len", "instruction_difficulty")
    }
    p = column["preference"]
    # Some files keep the judge's 1 to 2, some p itself.
    p = p - 1 if len(p) and p.max() > 1 else p
    return Gamed(np.tanh(column["std_delta_len"]), column["instruction_difficulty"], p)


def read_weights(path: Path) -> dict[str, Weights]:
    """Published weights: a model's name and three numbers a row. Raises `BadInput`."""
    found = {}
    for row in _table(path):
        name, *numbers = row.values()
        try:
            found[name] = Weights(*(float(value) for value in numbers[:3]))
        except (TypeError, ValueError) as error:
            raise BadInput(f"{path.name} has no three weights for {name!r}", code="bad_row") from error
    return found


def _alpaca(preferences: Iterable[Preference], control: LengthControl) -> list[dict[str, Any]]:
    by_model: dict[str, dict[int, Preference]] = defaultdict(dict)
    duplicates: dict[str, int] = defaultdict(int)
    for row in preferences:
        duplicates[row.model] += row.position in by_model[row.model]
        by_model[row.model][row.position] = row  # the newest counts
    found = []
    for model, kept in by_model.items():
        rows = [kept[position] for position in sorted(kept)]
        raw = alpaca_eval.of_probabilities([row.p for row in rows])
        found.append({"model": model, **asdict(raw), "superseded": duplicates[model], **_controlled(rows, control)})
    return sorted(found, key=lambda one: -(one["win_rate"] or 0.0))


def _controlled(rows: Sequence[Preference], control: LengthControl) -> dict[str, Any]:
    try:
        hard = None
        if control.difficulty is not None:
            if rows[-1].position >= len(control.difficulty):
                raise CannotFit(f"there are {len(control.difficulty)} difficulties, but a row at {rows[-1].position}")
            hard = [control.difficulty[row.position] for row in rows]
        if (weights := control.weights.get(rows[0].model)) is not None:
            rate = length_controlled.win_rate(weights, hard if hard is not None else [0.0] * len(rows))
            return {"length_controlled": rate, "weights": asdict(weights), "c": None, "fitted": False}
        lengths = [(row.len_1, row.len_2) for row in rows]
        if any(one is None or other is None for one, other in lengths):
            raise CannotFit("the rows have no lengths and no outputs")
        fit = length_controlled.fit(
            [row.p for row in rows],
            [float(one or 0) for one, _ in lengths],
            [float(other or 0) for _, other in lengths],
            hard,
            control.gamed if hard is not None else None,
            c=control.c,
        )
    except CannotFit as error:
        return {"length_controlled": None, "why": str(error)}
    return {"length_controlled": fit.win_rate, "weights": asdict(fit.weights), "c": fit.c, "fitted": True}


def _of_annotations(judgments: Iterable[Judgment]) -> Iterator[Preference]:
    """Annotations have no index: a prompt's position is its row's among the model's distinct prompts."""
    places: dict[str, dict[str | None, int]] = defaultdict(dict)
    for one in judgments:
        mine = places[str(one.model)]
        theirs, baselines = (None if text is None else float(len(text)) for text in one.outputs)
        yield Preference(str(one.model), mine.setdefault(one.prompt, len(mine)), one.value, theirs, baselines)


def _preferences(rows: Iterable[Mapping[str, str]]) -> Iterator[Preference]:
    """Tables without texts: {model, preference, len_1, len_2, instruction_index}."""
    for line, row in enumerate(rows, start=2):
        try:
            text = row["preference"]
            p = alpaca_eval.probability(float(text) if text.strip() else None)
            place = int(row.get("instruction_index") or row.get("index") or row["row"])
            sizes = [float(row[name]) if row.get(name) else None for name in ("len_1", "len_2")]
        except (KeyError, ValueError) as error:
            raise BadInput(f"line {line}: {error}", code="bad_row", hint="See docs/evaluation.md.") from error
        yield Preference(row["model"], place, p, *sizes)


def _ratings(judgments: Iterable[Judgment]) -> list[fastchat.Rating]:
    return [fastchat.Rating(j.question_id, str(j.model), j.turn, j.value, j.at) for j in judgments]


def _singles(ratings: list[fastchat.Rating]) -> dict[str, Any]:
    """Means by turn; and of several models their ranks on the items that all have a score on."""
    summary = fastchat.single_summary(ratings)
    models = [one.model for one in summary]
    found: dict[str, Any] = {
        "models": [
            {
                **asdict(one),
                "turns": {str(turn): mean for turn, mean in one.turns.items()},
                "counts": {str(turn): count for turn, count in one.counts.items()},
            }
            for one in summary
        ]
    }
    items: dict[tuple[Any, int], dict[str, float]] = defaultdict(dict)
    for row in fastchat.newest(ratings)[0]:
        if row.score is not None and row.score != fastchat.UNPARSED:
            items[row.question_id, row.turn][row.model] = row.score
    whole = np.array([[item[model] for model in models] for item in items.values() if len(item) == len(models)])
    if len(models) > 1 and len(whole):
        tested = ranks.friedman(whole)
        found["rank_scores"] = dict(zip(models, ranks.rank_scores(-whole).mean(axis=0).tolist(), strict=True))
        found["items_of_all"] = len(whole)
        found["friedman"] = tested.model_dump() if tested else None
    return found


def _pairs(files: Sequence[Sequence[list[Judgment]]]) -> list[dict[str, Any]]:
    names = {1.0: "model_1", 0.5: "tie", 0.0: "model_2", None: "error"}
    games = []
    for rows in files:
        for row in rows:
            first, second = names[row[0].value], names[row[-1].value]
            games.append(fastchat.Games(str(row[0].model), str(row[0].other), first, second))  # type: ignore[arg-type]
    return [
        {**asdict(one), "n": one.n, "win_rate_adjusted": one.win_rate_adjusted, "flip_rate": one.flip_rate}
        for one in fastchat.pair_summary(games)
    ]


def _scores(rows: Sequence[list[Judgment]]) -> list[list[float] | None]:
    return [None if row[0].value is None or row[1].value is None else [row[0].value, row[1].value] for row in rows]


def _arena(judgments: Sequence[Judgment], baseline: str | None) -> dict[str, Any]:
    chosen = baseline or next((j.other for j in judgments if j.other), None)
    if chosen is None:
        raise BadInput("the file names no baseline", code="missing_input", hint="Give it with --baseline.")
    battles = [
        arena_hard.Battle(str(j.model), j.other or chosen, j.value, j.weight) for j in judgments if j.value is not None
    ]
    try:
        rates = arena_hard.win_rates(battles, chosen)
    except ValueError as error:
        raise BadInput(str(error), code="missing_input", hint="Name another baseline.") from error
    unparsed = sum(j.value is None for j in judgments)
    return {"baseline": chosen, "unparsed": unparsed, "models": [asdict(rate) for rate in rates]}


def _rows(source: Source, format: str, bad: list[str]) -> Iterator[list[Judgment]]:
    for line, row in read(source, JUDGMENTS[format]):
        if isinstance(row, Problem):
            bad.append(f"{source.label}, line {line}: {row.reason}")
        else:
            yield row


def _sections(accuracies: Mapping[str, Any]) -> dict[str, Any]:
    return {"subsets": accuracies, **asdict(rewardbench.sections(accuracies))}


def _results(path: Path) -> dict[str, Any] | None:
    """A RewardBench results file: one object of subsets and accuracies."""
    try:
        document = orjson.loads(_content(path))
    except orjson.JSONDecodeError:
        return None
    known = isinstance(document, dict) and any(name in rewardbench.WEIGHTS for name in document)
    return document if known else None


def _reward_pairs(source: Source) -> list[tuple[str, float, float]] | None:
    """Rows {subset, chosen reward, rejected reward}, under the names that are in use; None of another file."""
    found: list[tuple[str, float, float]] = []
    for line, row in read(source, lambda row: [dict(row)]):
        fields = {} if isinstance(row, Problem) else row[0]
        pair = next((pair for pair in _REWARDS if fields.get(pair[0]) is not None), None)
        if pair is None or "subset" not in fields:
            if not found:
                return None
            raise BadInput(f"{source.label}, line {line}: has no subset with two rewards", code="bad_row")
        try:
            found.append((str(fields["subset"]), _scalar(fields[pair[0]]), _scalar(fields[pair[1]])))
        except (TypeError, ValueError) as error:
            raise BadInput(f"{source.label}, line {line}: {error}", code="bad_row") from error
    return found


def _scalar(value: Any) -> float:
    """A reward, or a list of one."""
    return float(value[0] if isinstance(value, list) and len(value) == 1 else value)


def _refuse_several() -> dict[str, Any]:
    raise BadInput("a RewardBench results file is read alone", code="invalid_request", hint="Give one file.")


def _table(path: Path) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(_content(path).decode("utf-8-sig"))))


def _content(path: Path) -> bytes:
    raw = path.read_bytes()
    return gzip.decompress(raw) if raw.startswith(_GZIP) else raw


def _number(path: Path, row: Mapping[str, str], name: str) -> float:
    try:
        return float(row[name])
    except (KeyError, TypeError, ValueError) as error:
        raise BadInput(f"{path.name} has no number in column {name!r}", code="bad_row") from error
