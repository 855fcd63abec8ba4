"""The figures of `make bench-claim` as tables, and what a reader may and may not conclude from them."""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from typing import Any

LABELS = {"sft": "SFT", "dt": "DT", "dpo": "DPO", "best_of_n": "best of n", "ppo": "PPO", "rloo": "RLOO"}
_ONLINE = ("ppo", "rloo")
_RATIOS = ("occupied", "arithmetic", "arithmetic_one_epoch", "to_equal_score")
_SCORES = ("judge", "quality", "reward", "kl", "sampled_judge", "sampled_quality")
Document = Mapping[str, Any]


def words_of(document: Document) -> list[str]:
    """Lines for people. Each figure is the median over the seeds, with its range."""
    lines = [f"\nDT's cost over that of each method, {_sizes(document)}; below 1: DT is cheaper"]
    lines += [_row("", _RATIOS)]
    lines += [_row(LABELS[name], [figure(of[key]) for key in _RATIOS]) for name, of in document["ratios"].items()]
    lines += [
        "\nHeld-out scores, rewards as their models give them; KL from SFT in nats, and scores of sampled answers"
    ]
    lines += [_row("", _SCORES)]
    lines += [_row(LABELS[name], [figure(of[key]) for key in _SCORES]) for name, of in document["scores"].items()]
    lines += ["\nAt equal samples: device-seconds, and operations a parameter in thousands (k)"]
    costs = document["costs"].items()
    lines += [_row(LABELS[name], [figure(of[key]) for key in ("seconds", "arithmetic")]) for name, of in costs]
    for name in _ONLINE:
        lines += [
            f"\n{LABELS[name]} as it trains: samples, then medians of device-seconds, judge, and KL of its answers"
        ]
        lines += [_row(f"{samples:,}", values) for samples, *values in _along(document, name)]
    sweep = ", ".join(f"{trial['lr']:g}: {trial['judge']:.2f}" for trial in document["sweep"]["tried"])
    lines += [
        f"\nSweep of PPO's learning rate, judge's score of each ({sweep}), took {document['sweep']['seconds']:.0f} s"
    ]
    for title, key in (("What may be concluded", "may"), ("What may not", "may_not")):
        lines += [f"\n{title}:", *(f"- {sentence}" for sentence in document[key])]
    return lines


def may(document: Document) -> list[str]:
    """What the figures say of the runs that were measured."""
    if document["quick"]:
        return ["The benchmark runs. Its sizes were too small for anything else."]
    words = []
    for name, of in document["ratios"].items():
        label = LABELS[name]
        words.append(
            f"At {_samples(document)} samples DT took {figure(of['occupied'])} of the device time of {label}, and "
            f"{figure(of['arithmetic'])} of its arithmetic ({figure(of['arithmetic_one_epoch'])} with one epoch of DT)."
        )
        if name != "best_of_n":
            words.append(_reached(document, name, of["to_equal_score"]))
    return [*words, *_ranks(document)]


def may_not(document: Document) -> list[str]:
    """What the runs cannot tell, whatever their figures are."""
    load = max(document["machine"]["load"][0], document["machine"]["load_after"][0])
    return [
        f"Anything about large models or real text: the model has {document['parameters']:,} parameters and started "
        "from random weights, and prompts, answers and preferences are written by a program.",
        f"A significant difference: medians and ranges are over {_seeds(document)}, and no test.",
        "The paper's 12.3%: it is occupied time of a cluster that mostly waited. "
        f"Here one process at a time had {document['machine']['cores']} cores, with a load of up to {load:g}.",
        "That a method cannot do better: PPO had the best of "
        f"{len(document['sweep']['tried'])} learning rates, at the first seed and by the judge, and the sweep's "
        f"{document['sweep']['seconds']:.0f} s are in no ratio; nothing else was tuned.",
        "That methods saw the same signal: DT, PPO, RLOO and best of n follow the reward model, DPO the preferences.",
        "What best of n costs in use: it costs that at each prompt, the others cost once; its ratios are for as "
        "many sampled answers as the others learned from.",
        "That the judge is right: it learned from the other half of the same preferences, and can share the reward "
        "model's errors. Where judge and known quality disagree, believe the quality.",
    ]


def figure(of: Mapping[str, Any] | None) -> str:
    """`0.62 [0.58, 0.71]`; `-` for none; the seeds that have a figure where some have none."""
    if of is None:
        return "-"
    some = f" in {of['seeds']} of {of['of']}" if of["seeds"] < of["of"] else ""
    return f"{_short(of['median'])} [{_short(of['low'])}, {_short(of['high'])}]{some}"


def _reached(document: Document, name: str, of: Mapping[str, Any] | None) -> str:
    label = LABELS[name]
    tried = f"in {document['sizes']['reach']} times as many samples" if name in _ONLINE else "with as many samples"
    if of is None:
        return f"{label} did not reach DT's held-out score {tried}, at any seed, so there is no ratio to equal score."
    if of["seeds"] < of["of"]:
        return (
            f"{label} reached DT's held-out score at {of['seeds']} of {of['of']} seeds; there DT took {figure(of)} of "
            f"its time. At the others it did not, {tried}, so the median flatters {label}."
        )
    return f"{label} reached DT's held-out score at every seed; DT took {figure(of)} of the time until then."


def _ranks(document: Document) -> list[str]:
    """Which method has the highest score of each seed, by both judges."""
    words = []
    for source in ("judge", "quality"):
        best: dict[str, int] = {}
        for seed in document["by_seed"].values():
            scores = {name: method["scores"][source] for name, method in seed["methods"].items()}
            first = max(scores, key=lambda name: scores[name])
            best[first] = best.get(first, 0) + 1
        by = "the judge" if source == "judge" else "known quality"
        told_ = ", ".join(
            f"{LABELS[name]} at {count}" for name, count in sorted(best.items(), key=lambda item: -item[1])
        )
        words.append(f"By {by}, the highest score was of {told_} of {len(document['by_seed'])} seeds.")
    return words


def _along(document: Document, name: str) -> list[tuple[Any, ...]]:
    """(samples, seconds, judge, kl) of each look, medians over the seeds."""
    curves = [seed["methods"][name]["curve"] for seed in document["by_seed"].values()]
    return [
        (
            looks[0]["samples"],
            *(_short(statistics.median(look[key] for look in looks)) for key in ("seconds", "judge", "kl")),
        )
        for looks in zip(*curves, strict=True)
    ]


def _sizes(document: Document) -> str:
    return f"{_samples(document)} samples, {_seeds(document)}, {document['held_out_prompts']} held-out prompts"


def _seeds(document: Document) -> str:
    count = len(document["by_seed"])
    return f"{count} seed" if count == 1 else f"{count} seeds"


def _samples(document: Document) -> str:
    return f"{document['sizes']['samples']:,}"


def _row(name: str, cells: Any) -> str:
    return f"{name:<10}" + "".join(f"{cell:>28}" for cell in cells)


def _short(value: float) -> str:
    return f"{value / 1000:,.0f}k" if abs(value) >= 10_000 else f"{value:.2f}"
