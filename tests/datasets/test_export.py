"""What was imported comes out again, and stages read exactly the rows that were stored."""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import Project
from steerboard.datasets import service
from steerboard.datasets.imports.loading import import_file
from steerboard.datasets.schemas import ExportFormat, ImportReport
from steerboard.platform.database import transaction
from steerboard_contracts.prompt_split import half_of, prompt_hash
from steerboard_contracts.samples import validate_sample
from steerboard_files.detect import open_reader
from steerboard_files.records import Source

FORMATS: tuple[ExportFormat, ...] = ("jsonl", "jsonl.gz", "parquet")

Write = Callable[..., Path]
Import = Callable[..., ImportReport]


def exported(sessions: sessionmaker[Session], project: Project, name: str, form: ExportFormat) -> bytes:
    out = io.BytesIO()
    with sessions() as session:
        service.write_export(session, service.get_dataset(session, project, name), form, out)
    return out.getvalue()


def records(content: bytes) -> list[Any]:
    return [record for _, record in open_reader(Source("rows", lambda: io.BytesIO(content))).records]


CONVERSATION = [
    {"role": "system", "content": "Be kind."},
    {"role": "user", "content": 'Hi\n"there" \\ ü 🙂'},
    {"role": "assistant", "content": "Yes?"},
    {"role": "user", "content": "How?"},
]
FILES: dict[str, list[dict[str, Any]]] = {
    "grades": [
        {
            "prompt": f"Hi {i}",
            "response": "Hello",
            "source": "imported",
            # Not in the order in which the database would give them back.
            "attributes": {"tone": i + 0.5, "verbosity": 0.0, **({"wit": -1.0} if i != 1 else {})},
            "reward": float(i),
        }
        for i in range(3)
    ],
    "steps": [
        {"prompt": f"Add {i}", "completions": ["1 + 1 = 2", "2 + 2 = 5"], "labels": [True, i > 1]} for i in range(3)
    ],
    "likely_steps": [
        {"prompt": f"Add {i}", "completions": ["1 + 1 = 2", "2 + 2 = 5"], "labels": [1.0, 0.25]} for i in range(2)
    ]
    + [{"prompt": "Add", "completions": ["1 + 1 = 2"], "labels": [True]}],
    "texts": [
        {
            "prompt": f"Hi {i}",
            "response": "Hello",
            "model": "m",
            "turn": i,
            "cost": i + 0.5,
            "ok": True,
            "tags": ["a", i],
        }
        for i in range(3)
    ],
    "messages": [{"prompt": CONVERSATION, "response": "Well.", "source": "generated"}],
    "pairs": [
        {"prompt": "Hi", "chosen": "a", "rejected": "b", "margin": 0.1},
        {"prompt": "Ho", "chosen": "a", "rejected": "c", "margin": -1e-07},
    ],
    "labelled": [{"prompt": f"Hi {i}", "response": "a", "source": "x", "reward": i / 3} for i in range(4)],
    "unpaired": [
        {"prompt": "Hi", "response": "a", "desirable": True},
        {"prompt": "Hi", "response": "b", "desirable": False},
    ],
    "prompts": [{"prompt": "Hi", "reference": "Hello"}, {"prompt": "Ho", "reference": "Hi"}],
    "mixed_numbers": [{"prompt": "Hi", "n": 1, "big": 2**63}, {"prompt": "Ho", "n": 1.5, "big": 1}],
}


@pytest.mark.parametrize("form", FORMATS)
@pytest.mark.parametrize("rows", FILES.values(), ids=FILES)
def test_an_export_gives_back_what_was_imported(
    sessions: sessionmaker[Session],
    project: Project,
    tmp_path: Path,
    write_jsonl: Write,
    import_path: Import,
    form: ExportFormat,
    rows: list[dict[str, Any]],
) -> None:
    first = import_path(write_jsonl(rows), "first")
    content = exported(sessions, project, "first", form)
    assert records(content) == rows
    assert [list(record) for record in records(content)] == [list(row) for row in rows]
    path = tmp_path / "again"
    path.write_bytes(content)
    again = import_path(path, "again")
    assert again.dataset.kind == first.dataset.kind
    assert again.dataset.content_hash == first.dataset.content_hash
    assert again.dataset.normaliser == (
        first.dataset.normaliser.model_copy(update={"reward_source": "again"}) if first.dataset.normaliser else None
    )


text = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), min_size=1, max_size=40).filter(
    str.strip
)
any_json = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | text,
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=4,
)


@settings(max_examples=10, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(
        st.fixed_dictionaries(
            {"prompt": text, "chosen": text, "rejected": text, "margin": st.floats(-1e9, 1e9)},
            optional={"note": any_json},
        ),
        min_size=1,
        max_size=6,
    )
)
def test_any_pairs_survive_the_way_in_and_out(
    sessions: sessionmaker[Session], project: Project, tmp_path: Path, rows: list[dict[str, Any]]
) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    with sessions() as session:  # never committed, so that every example finds an empty database
        first = import_file(session, project, path=path, name="rows", clean=False)
        for form in FORMATS:
            out = io.BytesIO()
            service.write_export(session, service.get_dataset(session, project, "rows"), form, out)
            (tmp_path / "again").write_bytes(out.getvalue())
            again = import_file(session, project, path=tmp_path / "again", name=f"again-{form}", clean=False)
            assert again.dataset.content_hash == first.dataset.content_hash
            if form == "jsonl":
                assert [json.loads(line) for line in out.getvalue().splitlines()] == rows


def test_the_hh_pairs_come_back_to_the_same_hash(
    sessions: sessionmaker[Session], project: Project, shared: Path, tmp_path: Path, import_path: Import
) -> None:
    first = import_path(shared / "hh_rlhf" / "pairs_2000.jsonl.gz", "hh")
    for form in FORMATS:
        (tmp_path / "again").write_bytes(exported(sessions, project, "hh", form))
        assert import_path(tmp_path / "again", f"hh-{form}").dataset.content_hash == first.dataset.content_hash


def test_the_content_hash_depends_on_rows_order_and_rewards_only(write_jsonl: Write, import_path: Import) -> None:
    rows = [{"prompt": f"Hi {i}", "response": "a", "reward": i} for i in range(3)]
    changes: dict[str, list[dict[str, Any]]] = {
        "same": [{**row, "extra": "column"} for row in rows],
        "order": rows[::-1],
        "reward": [*rows[:2], {**rows[2], "reward": 2.0000001}],
        "text": [*rows[:2], {**rows[2], "response": "b"}],
    }
    first = import_path(write_jsonl(rows), "first").dataset.content_hash
    hashes = {name: import_path(write_jsonl(changed), name).dataset.content_hash for name, changed in changes.items()}
    assert hashes.pop("same") == first
    assert len({first, *hashes.values()}) == 4


def test_a_stage_gets_valid_samples_with_row_split_half_and_raw_reward(
    sessions: sessionmaker[Session], project: Project, tmp_path: Path, write_jsonl: Write, import_path: Import
) -> None:
    rows = [{"prompt": f"Hi {i}", "response": "a", "reward": i / 7, "note": "kept out"} for i in range(50)]
    report = import_path(write_jsonl(rows))
    with sessions() as session:
        dataset = service.get_dataset(session, project, "rows")
        given = service.export_for_stage(session, dataset, tmp_path / "data.jsonl")
    lines = [json.loads(line) for line in Path(given.path).read_text().splitlines()]
    assert (given.rows, given.kind, given.content_hash) == (50, "labelled", report.dataset.content_hash)
    assert given.normaliser == report.dataset.normaliser
    assert [line["row"] for line in lines] == list(range(50))
    assert [line["reward"] for line in lines] == [i / 7 for i in range(50)]
    for line in lines:
        place = {key: line.pop(key) for key in ("row", "split", "half")}
        sample = validate_sample("labelled", line, place["row"])
        assert place["half"] == half_of(prompt_hash(sample.prompt, project.split_salt))
    assert list(tmp_path.glob(".*part*")) == []


def test_a_stages_output_becomes_a_dataset_row_for_row(
    sessions: sessionmaker[Session], project: Project, write_jsonl: Write
) -> None:
    rows = [{"prompt": "Hi", "response": "same", "source": "generated", "tokens": 3}] * 3
    path = write_jsonl(rows)
    with transaction(sessions) as session:
        made = service.register_rows(
            session, project, name="p-1.generated", kind="instructions", path=path, run_id=None, origin={"run": "g"}
        )
    assert (made.rows, made.name) == (3, "p-1.generated")
    assert records(exported(sessions, project, "p-1.generated", "jsonl"))[0] == {
        "prompt": [{"role": "user", "content": "Hi"}],
        "response": "same",
        "source": "generated",
        "tokens": 3,
    }
