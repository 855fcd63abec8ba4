"""Figures of what measures judges: LLMBar's verdicts, and PandaLM's test set."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from steerboard_contracts.errors import BadInput
from steerboard_figures.benchmark_files.judges import check_judge
from steerboard_figures.benchmark_files.reading import Fields, Figures, Findings, models_of, objects, parsed
from steerboard_figures.benchmark_files.repeats import UNORDERED, settled
from steerboard_figures.benchmark_files.words import meaning
from steerboard_figures.formats.records import Unreadable, identifier, number
from steerboard_files.records import Problem
from steerboard_statistics.benchmarks import llmbar, pandalm
from steerboard_statistics.proportions import proportion_interval

_LLMBAR = ("correct_average", "low", "high", "correct_12", "correct_21", "correct_both", "equal")
_LLMBAR_KAPPAS = ("kappa_12", "kappa_21", "kappa_between")
_PANDALM = ("accuracy", "low", "high", "precision", "recall", "f1")
_ANNOTATORS = ("annotator1", "annotator2", "annotator3")
_RESULT = "_result"
_CLASSES = {"tie": pandalm.TIE, "a": 1, "b": 2}
_BETWEEN = ": "
# A whole number, also as tables write it whose column has gaps.
_NUMBER = re.compile(r"\d+(?:\.0*)?")
_EVALUATORS = ("evaluator", "judge", "annotator")


def is_llmbar(row: Fields) -> bool:
    return "label" in row and ("winner_order12" in row or "results" in row)


def is_pandalm(row: Fields) -> bool:
    return "idx" in row and (_ANNOTATORS[0] in row or any(name.endswith(_RESULT) for name in row))


@dataclass(frozen=True, slots=True)
class Instance:
    """One instance of LLMBar and one evaluator's verdicts in both orders."""

    group: tuple[str, str]
    key: str | None
    row: llmbar.Row


def llmbar_figures(paths: Sequence[Path], judge: str | None, findings: Findings) -> Figures:
    """Figures by data set and evaluator of `result.json` files, or of tables {dataset, evaluator, idx, label,
    winner_order12, winner_order21}. The newest of equal instances counts. `judge`: this one's. Raises `BadInput`."""
    groups: dict[tuple[str, str], list[Instance]] = {}
    for path in paths:
        names_of = partial(_names_of, paths=paths)
        for instance in parsed([path], partial(_instance, path=path, paths=paths), findings, groups_of=names_of):
            groups.setdefault(instance.group, []).append(instance)
    for label in findings.of_group:
        dataset, _, evaluator = label.partition(_BETWEEN)
        groups.setdefault((dataset, evaluator), [])
    check_judge(judge, list(dict.fromkeys(evaluator for _, evaluator in groups)))
    evaluators = []
    keys: dict[str, set[str]] = {}
    for (dataset, _), instances in groups.items():
        keys.setdefault(dataset, set()).update(instance.key for instance in instances if instance.key is not None)
    for (dataset, evaluator), instances in groups.items():
        if judge not in (None, evaluator):
            continue
        settled_ = settled(
            list(enumerate(instances)),
            lambda placed: placed[0] if placed[1].key is None else placed[1].key,
            lambda _: None,
            lambda placed: placed[1].row if None not in placed[1].row[1:] else None,
            findings.repeats,
        )
        kept = [instance for _, instance in settled_.kept]
        label = f"{dataset}{_BETWEEN}{evaluator}"
        if not kept:
            nothing = {"dataset": dataset, "evaluator": evaluator, "n": 0, **dict.fromkeys(_LLMBAR)}
            evaluators.append(findings.marked(nothing, _LLMBAR, 0, {}, what="verdicts", group=label))
            continue
        findings.repeated(label, settled_.superseded, len(instances))
        if all(instance.key is not None for instance in instances):
            findings.lacking(
                label, len(keys[dataset] - {instance.key for instance in kept}), len(keys[dataset]), "instances"
            )
        figures = asdict(llmbar.agreement([instance.row for instance in kept]))
        verdicts = 2 * figures["n"]
        right = figures["correct_12"] + figures["correct_21"]
        # Both orders of an instance are one item.
        interval = proportion_interval(right / 2, figures["n"])
        figures |= {"correct_average": right / verdicts, "low": interval.low, "high": interval.high}
        named = {"dataset": dataset, "evaluator": evaluator, "superseded": settled_.superseded}
        made = findings.marked(
            {**named, **figures},
            (*_LLMBAR, *_LLMBAR_KAPPAS),
            verdicts - figures["unparsed"] - 2 * len(settled_.unordered),
            {"unparsed": figures["unparsed"], UNORDERED: 2 * len(settled_.unordered)},
            what="verdicts",
            group=label,
        )
        evaluators.append(made)
    return {"evaluators": evaluators}


def _instance(row: Fields, path: Path, paths: Sequence[Path]) -> Instance:
    """Raises `Unreadable`."""
    label = _choice(row, "label")
    if label is None:
        raise Unreadable("has no 1 or 2 in `label`")
    results = row.get("results")
    if results is None:
        first, second = _choice(row, "winner_order12"), _choice(row, "winner_order21")
        return Instance(_group(row, path, paths), identifier(row, "idx"), (label, first, second))
    orders = results[0] if isinstance(results, list) and results else None
    if not isinstance(orders, Mapping):
        raise Unreadable("has no verdicts in `results`")
    winners = []
    for name in ("swap = False", "swap = True"):
        order = orders.get(name)
        if not isinstance(order, Mapping):
            raise Unreadable(f"has no `{name}` in `results`")
        winners.append(_choice({"winner": order.get("winner")}, "winner"))
    text = "\n".join(str(row.get(name)) for name in ("input", "output_1", "output_2"))
    return Instance(_group(row, path, paths), text, (label, winners[0], winners[1]))


def _group(row: Fields, path: Path, paths: Sequence[Path]) -> tuple[str, str]:
    """(data set, evaluator). Evaluators that no row names are told apart by their files: by folder and name, and by the
    whole path where another file has these too."""
    if row.get("results") is not None:
        group = path.parent.parent.name or path.stem, path.parent.name or path.stem
        alike = [other for other in paths if other.parts[-3:-1] == path.parts[-3:-1]]
        return group if len(alike) < 2 else (group[0], str(path))
    dataset = str(row.get("dataset") or path.parent.name)
    evaluator = next((str(row[name]).strip() for name in _EVALUATORS if str(row.get(name) or "").strip()), None)
    alike = [other for other in paths if other.stem == path.stem]
    return dataset, evaluator or (path.stem if len(alike) < 2 else str(path))


def _names_of(path: Path, row: Fields | None, paths: Sequence[Path]) -> Collection[str]:
    return [] if row is None else [_BETWEEN.join(_group(row, path, paths))]


def _choice(row: Fields, name: str) -> int | None:
    """1 or 2; None for a verdict that was not parsed. Raises `Unreadable` for another number."""
    return _whole(row, name, (1, 2))


def _whole(row: Fields, name: str, choices: Sequence[int]) -> int | None:
    """One of these numbers; None for a text, which is not a verdict. Raises `Unreadable` for another number."""
    value = row.get(name)
    if isinstance(value, str) and not _NUMBER.fullmatch(value.strip()):
        return None
    value_read = number(row, name)
    if value_read is not None and value_read not in choices:
        *others, last = choices
        raise Unreadable(f"has {value_read:g} in `{name}`, not {', '.join(map(str, others))} or {last}")
    return None if value_read is None else int(value_read)


@dataclass
class _Rows:
    """What the rows have, in their order: the annotators' votes, and the verdicts of each judge."""

    votes: list[tuple[str, tuple[int, ...]]] = field(default_factory=list)
    verdicts: dict[str, list[tuple[str, int | None]]] = field(default_factory=dict)


def pandalm_figures(paths: Sequence[Path], judge: str | None, findings: Findings, *, unparsed_is_tie: bool) -> Figures:
    """Every judge of the files (a field `..._result`: 0 a tie, 1 or 2) against the majority of three annotators, joined
    by `idx`; `judge`: only this one. Raises `BadInput` for another one, and where the annotators or the verdicts are
    in none of the files."""
    rows = _Rows()
    for path in paths:
        for line, row in objects(path, findings):
            if isinstance(row, Problem):
                continue
            try:
                _pandalm_row(row, rows)
            except Unreadable as error:
                findings.unreadable(path, line, str(error), models_of(path, row))
    by_judge = {
        name: settled(
            verdicts,
            lambda judged: judged[0],
            lambda _: None,
            lambda judged: judged[1],
            findings.repeats,
        )
        for name, verdicts in rows.verdicts.items()
    }
    # Several votes on one row are the truth that no one knows: the last ones count, and are pointed out.
    votes = dict(rows.votes)
    if not votes or not by_judge:
        missing = "annotators (`annotator1` to `annotator3`)" if not votes else "verdicts (`pandalm_result`)"
        raise BadInput(
            f"the files have no {missing}",
            code="missing_input",
            hint="Give the test set and the file of verdicts together.",
        )
    check_judge(judge, list(by_judge))
    wanted = {name: verdicts for name, verdicts in by_judge.items() if judge in (None, name)}
    findings.repeated("annotators", len(rows.votes) - len(votes), len(rows.votes))
    for name, judged in wanted.items():
        findings.repeated(name, judged.superseded, len(rows.verdicts[name]))
    return {
        "models": [
            _judge(name, dict(judged.kept), votes, len(judged.unordered), findings, unparsed_is_tie)
            for name, judged in wanted.items()
        ]
    }


def _judge(
    name: str,
    verdicts: Mapping[str, int | None],
    votes: Mapping[str, Sequence[int]],
    unordered: int,
    findings: Findings,
    unparsed_is_tie: bool,
) -> Figures:
    rows = [(of, verdicts[key]) for key, of in votes.items() if key in verdicts]
    missing = len(votes) - len(rows)
    counts: dict[str, Any] = {"model": name, "missing": missing, "unmatched": len(verdicts.keys() - votes.keys())}
    try:
        figures = asdict(pandalm.agreement(rows, unparsed_is_tie=unparsed_is_tie))
    except ValueError:
        figures = {**dict.fromkeys(_PANDALM), "n": 0, "unparsed": 0}
    else:
        interval = proportion_interval(round(figures["accuracy"] * figures["n"]), figures["n"])
        figures |= {"low": interval.low, "high": interval.high}
    lost = {
        "unparsed": figures["unparsed"],
        "without a verdict": missing,
        "without the annotators' votes": counts["unmatched"],
        UNORDERED: unordered,
    }
    usable = max(figures["n"] - figures["unparsed"] - unordered, 0)
    return findings.marked(counts | figures, _PANDALM, usable, lost, what="items")


def _pandalm_row(row: Fields, rows: _Rows) -> None:
    """Adds the annotators' votes and each judge's verdict. Raises `Unreadable`."""
    key = identifier(row, "idx")
    if key is None:
        raise Unreadable("has no `idx`")
    if _ANNOTATORS[0] in row:
        given = [_vote(row, name) for name in _ANNOTATORS]
        if None in given:
            raise Unreadable("has an annotator without a vote")
        rows.votes.append((key, tuple(vote for vote in given if vote is not None)))
    for name in row:
        if name.endswith(_RESULT):
            rows.verdicts.setdefault(name.removesuffix(_RESULT), []).append((key, _verdict(row, name)))


def _verdict(row: Fields, name: str) -> int | None:
    """A number that is not a verdict was not parsed: it takes nothing from the other judges of the row."""
    try:
        return _vote(row, name)
    except Unreadable:
        return None


def _vote(row: Fields, name: str) -> int | None:
    """0, also as the word `tie`, 1 or 2; None for another text or null, which is not a verdict. Raises `Unreadable` for
    another number."""
    verdict = meaning("pandalm", row.get(name))
    return _whole(row, name, (0, 1, 2)) if verdict is None else _CLASSES[verdict]
