"""The card of a dataset: what its rows are, where they are from, and how they are split."""

from __future__ import annotations

from typing import Any

from sqlalchemy.orm import Session

from steerboard.datasets.tables import Dataset
from steerboard.publishing.cards.facts import Ancestry, ancestry_of, devices_of
from steerboard.publishing.cards.markdown import TAG, code, front_matter, sections, table
from steerboard.publishing.cards.origins import hub_dataset, origin_words
from steerboard.runs.ledger import summed
from steerboard_contracts.prompts import Normaliser
from steerboard_contracts.wording import counted, listed

_SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))
_KINDS = {
    "instructions": "prompts with one response each",
    "preferences": "prompts with a chosen and a rejected response each",
    "prompts": "prompts without responses",
    "labelled": "prompts with one response each and its reward",
    "stepwise": "prompts with one answer each, divided into steps that are marked as right or wrong",
    "unpaired": "prompts with one response each that is marked as good or bad",
}


def dataset_card(session: Session, dataset: Dataset, repo: str, licence: str | None) -> str:
    ancestry = ancestry_of(session, dataset)
    train = dataset.rows - dataset.held_out_rows
    splits = [("train", train), ("held_out", dataset.held_out_rows)]
    head: dict[str, Any] = {
        "license": licence,
        "tags": [TAG, "rlhf", dataset.kind],
        "size_categories": [next((name for most, name in _SIZES if dataset.rows < most), "n>1M")],
        "source_datasets": sorted({name for row in ancestry.datasets if (name := hub_dataset(row)) and name != repo}),
        "configs": [
            {
                "config_name": "default",
                "data_files": [{"split": name, "path": f"data/{name}-*"} for name, rows in splits if rows],
            }
        ],
    }
    parts = [
        ("Rows", _rows(dataset, splits, repo)),
        ("Origin", _origin(ancestry)),
        ("Costs", _costs(session, ancestry)),
        ("Licence", _licence(ancestry, licence)),
        ("Limits", _LIMITS),
    ]
    what = (
        f"{code(dataset.name)} holds {counted(dataset.rows, 'row')}: {_KINDS[dataset.kind]}. Content hash: "
        f"{code(dataset.content_hash)}."
    )
    return f"{front_matter(head)}\n# {dataset.name}\n\n{what}\n{sections(parts)}"


_LIMITS = """\
- Steerboard checked the form of every row, not its truth.
- Names, addresses and harmful text are not filtered out.
"""


def _rows(dataset: Dataset, splits: list[tuple[str, int]], repo: str) -> str:
    text = table(("Split", "Rows"), [(name, f"{rows:,}") for name, rows in splits if rows])
    text += "\n\nA prompt is in one split only: which one depends on its text. Models of the same project were never"
    text += f" trained on `held_out`.\n\nRead all of it into Steerboard: `steerboard datasets import hub:{repo}:data`."
    if dataset.normaliser is not None:
        by = Normaliser.model_validate(dataset.normaliser)
        text += (
            f"\n\n`reward` is raw, by {code(by.reward_source)}: mean {by.mean:.4g}, standard deviation {by.sd:.4g} "
            f"over {by.n:,} rows."
        )
    return text


def _origin(ancestry: Ancestry) -> str:
    rows = [
        (code(row.name), row.kind, f"{row.rows:,}", origin_words(row), code(row.content_hash[:16]))
        for row in ancestry.datasets
    ]
    models = [f"- {code(model.name)} ({model.method or model.role})" for model in ancestry.models]
    text = table(("Dataset", "Kind", "Rows", "From", "Content hash"), rows)
    return text + ("\n\nModels that took part:\n\n" + "\n".join(models) if models else "")


def _costs(session: Session, ancestry: Ancestry) -> str:
    if not ancestry.runs:
        return ""
    costs, devices = summed(session, ancestry.runs), devices_of(session, ancestry.runs)
    on = f" on {listed(devices)}" if devices else ""
    return f"{costs.device_seconds / 3600:.3f} device-hours{on} for {counted(len(ancestry.runs), 'run')}."


def _licence(ancestry: Ancestry, licence: str | None) -> str:
    lines = [f"- These rows: {licence or 'not stated by those who pushed them'}."]
    names = sorted({name for row in ancestry.datasets if (name := hub_dataset(row))})
    return "\n".join([*lines, *(f"- Made from {code(name)}: see its page on the hub." for name in names)])
