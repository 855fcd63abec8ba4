"""RewardBench's figures, of a results file or of the rewards of each pair."""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from steerboard_contracts.errors import BadInput
from steerboard_figures.benchmark_files.paired_models import comparisons
from steerboard_figures.benchmark_files.reading import Figures, Findings
from steerboard_figures.benchmark_files.repeats import UNORDERED, Settled, settled
from steerboard_figures.benchmark_files.tables import content
from steerboard_figures.formats.records import Unreadable, identifier, number
from steerboard_files.jsonl import repeated_name
from steerboard_files.texts import storable
from steerboard_statistics.benchmarks import rewardbench

# What tools call the rewards of the chosen and the rejected side.
_REWARDS = (
    ("chosen_reward", "rejected_reward"),
    ("score_chosen", "score_rejected"),
    ("scores_chosen", "scores_rejected"),
)
_MOST_RESULTS = 1 << 20

_FIGURES = ("subsets", "sections", "overall")
UNNAMED = "the model without a name"


@dataclass(frozen=True, slots=True)
class RewardPair:
    """Rewards are NaN where they are missing. `key`: equal of equal pairs, None where the row does not tell."""

    subset: str
    chosen: float
    rejected: float
    key: Hashable
    model: str | None = None

    @property
    def missing(self) -> bool:
        return math.isnan(self.chosen) or math.isnan(self.rejected)


def results(path: Path) -> dict[str, Any] | None:
    """A results file: one object of subsets and accuracies. None for any other file. Raises `BadInput`."""
    text = content(path, _MOST_RESULTS)
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        return None
    has_subsets = isinstance(document, dict) and any(name in rewardbench.WEIGHTS for name in document)
    if has_subsets and (twice := repeated_name(text, document)) is not None:
        raise BadInput(f"{path.name} has {twice[:100]!r} twice", code="bad_row", hint="Leave one of them out.")
    return document if has_subsets else None


def result_names(paths: Sequence[Path], documents: Sequence[Mapping[str, Any]]) -> list[str | None]:
    """The model of each results file; of one that names none, or the same as another, its own name."""
    models = [model_of(document) for document in documents]
    if len(models) == 1:
        return list(models)
    files = [path.name for path in paths]
    return [
        (path.name if files.count(path.name) == 1 else str(path)) if model is None or models.count(model) > 1 else model
        for path, model in zip(paths, models, strict=True)
    ]


def of_results(document: Mapping[str, Any], findings: Findings) -> Figures:
    """The figures of the subsets, without the fields that describe the model. Raises `BadInput`."""
    subsets = rewardbench.WEIGHTS
    accuracies = {name: value for name, value in document.items() if name in subsets or _is_number(value)}
    for name, value in accuracies.items():
        if name in subsets and not _is_accuracy(name, value):
            raise BadInput(
                f"{name} has {value!r}, not an accuracy"[:200],
                code="bad_row",
                hint="Give accuracies as numbers, and leave out subsets without one.",
            )
    return sections(accuracies, findings, model_of(document))


def is_pair(row: Mapping[str, Any]) -> bool:
    return "subset" in row and any(chosen in row and rejected in row for chosen, rejected in _REWARDS)


def pair(row: Mapping[str, Any]) -> RewardPair:
    """{subset, chosen reward, rejected reward}, under the names that are in use. Raises `Unreadable`."""
    names = next(((chosen, rejected) for chosen, rejected in _REWARDS if chosen in row and rejected in row), None)
    if names is None or not isinstance(row.get("subset"), str):
        raise Unreadable("has no subset with two rewards")
    chosen, rejected = (_reward(row, name) for name in names)
    key = identifier(row, "id") if not isinstance(row.get("prompt"), str) else _texts(row)
    return RewardPair(storable(row["subset"]), chosen, rejected, key, model_of(row))


def subset_of(_: Path, row: Mapping[str, Any] | None) -> Collection[str]:
    subset, model = (row or {}).get("subset"), model_of(row or {})
    groups = [] if model is None else [model]
    return [*groups, labelled(storable(subset), model)] if isinstance(subset, str) and subset else groups


def model_of(row: Mapping[str, Any]) -> str | None:
    """The reward model that a row is of."""
    name = row.get("model")
    return storable(name.strip()) if isinstance(name, str) and name.strip() else None


def refuse_unread(models: Collection[str | None], findings: Findings) -> None:
    """A model of which no row can be read has no result, and is not passed over."""
    for name, rows in findings.of_group.items():
        if name not in models and any(other.startswith(labelled("", name)) for other in findings.of_group):
            findings.invalid(name, f"none of its {rows:,} rows can be used")


def labelled(subset: str, model: str | None) -> str:
    return subset if model is None else f"{model}: {subset}"


def lost_subsets(findings: Findings, model: str | None) -> list[str]:
    """The subsets of which some row of this model cannot be read."""
    before = labelled("", model)
    return sorted(name.removeprefix(before) for name in findings.of_group if name.startswith(before))


def _texts(row: Mapping[str, Any]) -> Hashable:
    """Prompt, chosen and rejected answer, and the id where there is one."""
    return tuple(str(row.get(name)) for name in ("prompt", "chosen", "rejected", "id"))


def sections(accuracies: Mapping[str, Any], findings: Findings, model: str | None = None) -> Figures:
    """The sections from subsets, numbers or texts of numbers, and whatever else a results file has. Raises
    `BadInput`."""
    subsets = {name: _accuracy(name, value) for name, value in accuracies.items()}
    try:
        sectioned = rewardbench.sections(subsets)
    except ValueError as error:
        raise BadInput(str(error), code="bad_row", hint="Give accuracies as shares, not in percent.") from error
    if sectioned.incomplete:
        missing = [name for names in sectioned.incomplete.values() for name in names]
        of = "" if model is None else f"{model}: "
        findings.warn(
            f"{of}no overall accuracy, since {len(missing)} of {len(rewardbench.WEIGHTS)} subsets are missing: "
            + ", ".join(missing)
        )
    # A section without a subset that is there, but invalid, would have the mean of what is left.
    invalid = [name for name in accuracies if labelled(name, model) in findings.invalid_groups]
    partial = {
        section: value
        for section, value in sectioned.sections.items()
        if any(name in invalid for name in sectioned.incomplete.get(section, ()))
    }
    shown = {**sectioned.sections, **dict.fromkeys(partial)}
    return {
        "subsets": subsets,
        **asdict(sectioned),
        "sections": shown,
        **({"partial": {"sections": partial}} if partial else {}),
    }


def of_pairs(pairs: Sequence[RewardPair], model: str | None, findings: Findings) -> Figures:
    """The figures of one reward model. `without_reward`: pairs with a reward missing, which are lost; where they are
    too many, the subset has no accuracy. The newest of equal pairs counts."""
    settled_ = _settled(pairs, findings)
    kept, superseded = settled_.kept, settled_.superseded
    unordered = Counter(subset for subset, _ in settled_.unordered)
    by_subset: dict[str, list[RewardPair]] = {}
    for _, pair_ in kept:
        by_subset.setdefault(pair_.subset, []).append(pair_)
    accuracies = rewardbench.subset_accuracies((pair.subset, pair.chosen, pair.rejected) for _, pair in kept)
    valid: dict[str, float | None] = {}
    for subset in dict.fromkeys([*by_subset, *lost_subsets(findings, model)]):
        in_subset = by_subset.get(subset, [])
        label = labelled(subset, model)
        missing = sum(rewarded.missing for rewarded in in_subset)
        vague = unordered[subset]
        lost = {"without a reward": missing, UNORDERED: vague}
        reason = findings.lost(label, len(in_subset) - missing - vague, lost, what="pairs")
        valid[subset] = accuracies[subset] if reason is None else None
        if reason is not None:
            findings.invalid(label, reason)
    findings.repeated(model, superseded, len(pairs))
    of = "" if model is None else f"{model}: "
    _warn_of_doubles([rewarded for _, rewarded in kept], of, findings)
    few = [
        f"{subset} {len(in_subset)} of {whole}"
        for subset, in_subset in by_subset.items()
        if (whole := rewardbench.PAIRS.get(subset, 0)) - len(in_subset) > findings.threshold * whole
    ]
    if few:
        findings.warn(f"{of}{len(few)} subsets have fewer pairs than RewardBench: {', '.join(few)}")
    computed = {
        **sections(valid, findings, model),
        "pairs": {subset: len(in_subset) for subset, in_subset in by_subset.items()},
        "without_reward": sum(rewarded.missing for _, rewarded in kept),
        "superseded": superseded,
    }
    return findings.marked(computed, _FIGURES, len(kept), {}, what="pairs", group=model)


def _settled(pairs: Sequence[RewardPair], findings: Findings) -> Settled[tuple[int, RewardPair], tuple[str, Hashable]]:
    return settled(
        list(enumerate(pairs)),
        lambda placed: (placed[1].subset, placed[0] if placed[1].key is None else placed[1].key),
        lambda _: None,
        lambda placed: None if placed[1].missing else placed[1].chosen > placed[1].rejected,
        findings.repeats,
    )


def _warn_of_doubles(pairs: Sequence[RewardPair], of: str, findings: Findings) -> None:
    """Pairs that nothing identifies all count, also where a file holds them twice."""
    unknown = Counter(
        (rewarded.subset, rewarded.chosen, rewarded.rejected)
        for rewarded in pairs
        if rewarded.key is None and not rewarded.missing
    )
    doubled = unknown.total() - len(unknown)
    if doubled > findings.threshold * len(pairs):
        findings.warn(
            f"{of}{doubled:,} of {len(pairs):,} pairs have the two rewards of another pair of their subset, and "
            "neither `id` nor `prompt` to tell them apart, so each of them counts: is the file doubled?"
        )
    counts = Counter(rewarded.subset for rewarded in pairs)
    more = [
        f"{name} {n} of {rewardbench.PAIRS[name]}" for name, n in counts.items() if n > rewardbench.PAIRS.get(name, n)
    ]
    if more:
        findings.warn(f"{of}{len(more)} subsets have more pairs than RewardBench: {', '.join(more)}")


def compared(pairs: Sequence[RewardPair], findings: Findings) -> Figures:
    """The paired tests of every two models, once the figures of each are known: invalid ones are compared with no one.
    A pair is identified by its texts and `id`."""
    models = list(dict.fromkeys(rewarded.model for rewarded in pairs))
    if len(models) < 2:
        return {}
    nameless = sum(rewarded.key is None for rewarded in pairs)
    if nameless:
        return {
            "why": f"{nameless:,} of {len(pairs):,} pairs have neither `id` nor `prompt`, so no two models can be "
            "compared on the same ones"
        }
    right = {
        model or UNNAMED: {
            (rewarded.subset, rewarded.key): float(rewarded.chosen > rewarded.rejected)
            for _, rewarded in _settled([pair for pair in pairs if pair.model == model], findings).kept
        }
        for model in models
        if model not in findings.invalid_groups
    }

    def usable(model: str, subset: str) -> bool:
        return labelled(subset, None if model == UNNAMED else model) not in findings.invalid_groups

    every = set().union(*right.values())
    for model, answered in right.items():
        findings.lacking(model, len(every - answered.keys()), len(every), "pairs")
    return comparisons(right, usable, rewardbench.SECTION_WEIGHTS)


def _reward(row: Mapping[str, Any], name: str) -> float:
    """A reward, or a list of one."""
    value = row[name]
    if isinstance(value, list) and len(value) == 1:
        value = value[0]
    reward = number({name: value}, name)
    return math.nan if reward is None else reward


def _is_accuracy(name: str, value: object) -> bool:
    """Whether the value is an accuracy or missing, as a null and a NaN are."""
    accuracy = _accuracy(name, value)
    return accuracy is None or _is_number(accuracy)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 1e100


def _accuracy(name: str, value: object) -> object:
    if name not in rewardbench.WEIGHTS:
        return value
    try:
        return number({name: value}, name)
    except Unreadable:
        return value
