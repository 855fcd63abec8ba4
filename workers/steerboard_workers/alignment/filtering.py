"""Learning from the better rows alone, whose normalised reward z is above a threshold (arXiv 2308.12050, Eq. 4)."""

from __future__ import annotations

from collections import Counter

from steerboard_workers.alignment.training_method import Row, Selection

NOTHING_LEFT = "Lower the threshold, or give more data."


def above(threshold: float, rows: list[Row]) -> Selection:
    """The selection, with how much of each source was kept."""
    kept = [row for row in rows if row["z"] > threshold]
    of_all, of_kept = _by_source(rows), _by_source(kept)
    metrics = {"kept": len(kept) / len(rows)}
    metrics |= {f"kept.{source}": of_kept[source] / n for source, n in sorted(of_all.items())}
    shares = ", ".join(f"{source} {of_kept[source]} of {n}" for source, n in sorted(of_all.items()))
    note = f"kept {len(kept)} of {len(rows)} rows with z > {threshold:g} ({shares})"
    return Selection(kept, summary=dict(metrics), metrics=metrics, notes=[note])


def _by_source(rows: list[Row]) -> Counter[str]:
    return Counter(str(row.get("source") or "all") for row in rows)
