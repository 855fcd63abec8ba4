"""Figures of a selection among several answers to each prompt."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from steerboard_contracts.report.correlations import Correlations
from steerboard_contracts.report.estimate import Estimate
from steerboard_contracts.report.sections.rewards import RewardBin
from steerboard_contracts.report.selection import BestOfK
from steerboard_statistics.best_of_k import Floats, best_of_k, kl_bound
from steerboard_statistics.bootstrap import Resamples, mean_interval
from steerboard_statistics.correlation import correlations
from steerboard_statistics.rewards import histograms

Ints = NDArray[np.int64]


class AnswerGroups:
    """Answers by the prompt that they answer: groups of two or more, of any sizes.

    `groups` are row numbers; `scores` and every one of `values` (rows,), and so is `texts`, equal for equal texts.
    """

    def __init__(
        self,
        groups: Sequence[Sequence[int]],
        scores: Floats,
        texts: NDArray[np.uint64],
        values: Mapping[str, Floats],
    ) -> None:
        self._scores, self._texts, self._values = scores, texts, values
        by_size: dict[int, list[Sequence[int]]] = {}
        for rows in groups:
            by_size.setdefault(len(rows), []).append(rows)
        # (groups, answers) by the number of answers, so that each is one product.
        self._blocks: dict[int, Ints] = {size: np.array(rows) for size, rows in sorted(by_size.items())}

    def mean(self, name: str) -> Estimate:
        """The mean of a value over a group's answers, averaged over groups."""
        return mean_interval(self._of(lambda block: self._values[name][block].mean(axis=1)))

    def best(self, name: str) -> Estimate:
        """A value of the answer with the best score."""
        return mean_interval(self._of(lambda block: self._values[name][self._best(block)]))

    def gap(self, name: str) -> Estimate:
        """A value of the best answer, less its mean over the group."""

        def gap(block: Ints) -> Floats:
            values = self._values[name]
            gaps: Floats = values[self._best(block)] - values[block].mean(axis=1)
            return gaps

        return mean_interval(self._of(gap))

    def unique_texts(self) -> Estimate:
        """Share of a group's answers that are left when equal ones count once."""

        def share(block: Ints) -> Floats:
            texts = np.sort(self._texts[block], axis=1)
            shares: Floats = (1 + (texts[:, 1:] != texts[:, :-1]).sum(axis=1)) / block.shape[1]
            return shares

        return mean_interval(self._of(share))

    def margins(self) -> list[RewardBin]:
        """Best score less worst, group by group."""

        def margin(block: Ints) -> Floats:
            margins: Floats = np.ptp(self._scores[block], axis=1)
            return margins

        return histograms({"margin": self._of(margin)})["margin"]

    def correlations(self, names: Sequence[str], titles: Sequence[str]) -> Correlations:
        """Correlations of values over all answers of all groups."""
        rows = np.concatenate([block.ravel() for block in self._blocks.values()])
        return correlations(titles, [self._values[name][rows] for name in names])

    def curve(self, rewards: Sequence[str], characters: str) -> tuple[list[BestOfK], int]:
        """The best of k for each k up to the median number of answers. Also the number of groups that it is over.

        All k are over the same groups, those with enough answers for the largest, so the curve cannot fall; an empty
        answer here and there does not shorten it.
        """
        sizes = np.repeat(list(self._blocks), [len(block) for block in self._blocks.values()])
        most = int(np.median(sizes))
        blocks = [block for size, block in self._blocks.items() if size >= most]
        scores = self._scores
        by_score = np.vstack([best_of_k(scores[block], scores[block], most) for block in blocks])
        others = [
            np.vstack([best_of_k(scores[block], self._values[name][block], most) for block in blocks]).mean(axis=0)
            for name in (*rewards, characters)
        ]
        items = len(by_score)
        means = Resamples(items).estimates(by_score)
        return [
            BestOfK(
                k=k,
                kl=kl_bound(k),
                score=means[k - 1],
                rewards=[float(curve[k - 1]) for curve in others[:-1]],
                characters=float(others[-1][k - 1]),
            )
            for k in range(1, most + 1)
        ], items

    def _best(self, block: Ints) -> Ints:
        """The first of the best answers of each group: (groups,)."""
        places = self._scores[block].argmax(axis=1)
        best: Ints = np.take_along_axis(block, places[:, None], axis=1)[:, 0]
        return best

    def _of(self, figure: Callable[[Ints], Floats]) -> Floats:
        return np.concatenate([figure(block) for block in self._blocks.values()])
