"""PandaLM's test set: a judge against the majority of three annotators (Wang et al., arXiv 2306.05087)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

TIE = 0


@dataclass(frozen=True, slots=True)
class Agreement:
    """Shares from 0 to 1; precision, recall and F1 are macro means over the classes (0 tie, 1, 2) that occur.

    `split`: rows left out because no two annotators agree; `unparsed`: rows without a verdict.
    """

    accuracy: float
    precision: float
    recall: float
    f1: float
    n: int
    split: int
    unparsed: int


def majority(votes: Sequence[int]) -> int | None:
    """What more annotators say than anything else; None where there is no such thing."""
    ranked = Counter(votes).most_common(2)
    return None if not ranked or (len(ranked) > 1 and ranked[0][1] == ranked[1][1]) else ranked[0][0]


def agreement(rows: Sequence[tuple[Sequence[int], int | None]], *, unparsed_is_tie: bool = True) -> Agreement:
    """The agreement over rows (the annotators' votes, the judge's verdict, None where it was not parsed). As published,
    a verdict that was not parsed is a tie; otherwise it is wrong. Raises `ValueError` where no row has a majority."""
    kept = [(truth, verdict) for votes, verdict in rows if (truth := majority(votes)) is not None]
    if not kept:
        raise ValueError("no row has a majority")
    unparsed = sum(verdict is None for _, verdict in kept)
    if unparsed_is_tie:
        kept = [(truth, TIE if verdict is None else verdict) for truth, verdict in kept]
    classes = {truth for truth, _ in kept} | {verdict for _, verdict in kept if verdict is not None}
    figures = []
    for label in sorted(classes):
        hits = sum(truth == verdict == label for truth, verdict in kept)
        judged = sum(verdict == label for _, verdict in kept)
        true = sum(truth == label for truth, _ in kept)
        # A class that no one names, or that is never right, counts as 0, as in scikit-learn.
        figures.append((hits / judged if judged else 0.0, hits / true if true else 0.0, 2 * hits / (judged + true)))
    precision, recall, f1 = (sum(column) / len(figures) for column in zip(*figures, strict=True))
    return Agreement(
        accuracy=sum(truth == verdict for truth, verdict in kept) / len(kept),
        precision=precision,
        recall=recall,
        f1=f1,
        n=len(kept),
        split=len(rows) - len(kept),
        unparsed=unparsed,
    )
