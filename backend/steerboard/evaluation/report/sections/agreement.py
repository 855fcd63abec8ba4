"""Whether people, judges and reward models say the same of the same items."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations

from steerboard.evaluation.report.sources import Source
from steerboard_contracts.report.evaluation import AgreementRow
from steerboard_statistics.agreement import source_agreement


def agreement_rows(sources: Sequence[Source], *, seed: int) -> list[AgreementRow]:
    """Every two sources that share an item."""
    made = []
    for one, other in combinations(sources, 2):
        found = source_agreement(one.scores, other.scores, a_signs=one.signs, b_signs=other.signs, seed=seed)
        if not found.items:
            continue
        made.append(
            AgreementRow(
                a_by=one.by,
                a=one.label,
                b_by=other.by,
                b=other.label,
                entrants=found.entrants,
                items=found.items,
                spearman=found.spearman,
                kendall=found.kendall,
                item=found.item,
            )
        )
    return made
