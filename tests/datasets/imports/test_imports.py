"""The import wizard: a file becomes a draft, then a mapping, a report and a dataset."""

from __future__ import annotations

import csv
import gzip
import io
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from fastapi.testclient import TestClient
from import_requests import BASE, MAPPED, PROJECT, ended, lines, mapped, pairs, post, stored_files, upload, wait
from sqlalchemy import select
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import AuditEntry
from steerboard.datasets.imports.execution import claims
from steerboard.datasets.imports.execution.process import work
from steerboard.datasets.imports.execution.runner import ImportRunner
from steerboard.datasets.imports.files import ImportFiles
from steerboard.platform.database import transaction
from steerboard.platform.events.tables import Event
from steerboard.platform.settings import Settings


def rewardbench(suffix: str) -> bytes:
    """Pairs with the columns that RewardBench's files have."""
    rows = [
        {"id": number, "prompt": f"Hi {number}", "chosen": "a", "chosen_model": "m", "rejected": "b"}
        | {"rejected_model": "n", "subset": ("hep-rust", "math-prm")[number % 2]}
        for number in range(6)
    ]
    if suffix == "jsonl":
        return lines(rows)
    file = io.BytesIO()
    pq.write_table(pa.Table.from_pylist(rows), file)
    return file.getvalue()


@pytest.mark.parametrize("suffix", ["jsonl", pytest.param("parquet", marks=pytest.mark.long)])
def test_a_benchmark_of_pairs_is_recognised_with_its_subsets(
    client: TestClient, runner: ImportRunner, suffix: str
) -> None:
    made = upload(client, rewardbench(suffix), f"rewardbench.{suffix}").json()
    assert made["problem"] is None
    mapping = {"prompt": "prompt", "chosen": "chosen", "rejected": "rejected", "source": "subset"}
    detected = made["detected"]
    assert (detected["kind"], detected["mapping"], detected["form"]) == ("preferences", mapping, "columns")
    assert [column["name"] for column in detected["unused"]] == ["id", "chosen_model", "rejected_model"]
    post(client, made["id"], "start")
    assert wait(client, made["id"], ended)["state"] == "succeeded"
    row = client.get(f"{PROJECT}/datasets/rewardbench/samples", params={"source": "math-prm"}).json()["items"][0]
    assert row["sample"]["source"] == "math-prm"
    assert row["extra"] == {"id": 1, "chosen_model": "m", "rejected_model": "n"}


def test_lists_of_right_and_wrong_answers_become_a_graded_row_each(client: TestClient, runner: ImportRunner) -> None:
    """RewardBench 2 publishes such lists."""
    rows = [
        {"id": "tied:3", "prompt": "Name a colour.", "chosen": ["Red.", "Blue."], "rejected": ["Loud."]}
        | {"subset": "Ties", "num_correct": 2, "models": ["a", "b", "c"]},
        {"id": "7", "prompt": "Hi", "chosen": ["Hello."], "rejected": ["No.", "Why?", "42."], "subset": "Focus"},
        {"id": "8", "prompt": "Many", "chosen": ["a"] * 60, "rejected": ["b"] * 41, "subset": "Focus"},
    ]
    made = upload(client, lines(rows), "rewardbench-2.jsonl").json()
    assert (made["detected"]["kind"], made["problem"]) == ("labelled", None)
    assert {name: made["detected"]["mapping"][name] for name in ("response", "reward", "group", "source", "item")} == {
        "response": "response",
        "reward": "reward",
        "group": "group",
        "source": "subset",
        "item": "item",
    }
    assert client.patch(f"{BASE}/{made['id']}", json={"bad_rows": "skip"}).status_code == 200
    post(client, made["id"], "start")
    ended_as = wait(client, made["id"], ended)
    assert ended_as["state"] == "succeeded"
    (bad,) = client.get(f"{BASE}/{made['id']}/report", params={"format": "json"}).json()
    assert (bad["line"], bad["reason"]) == (3, "has more than 100 answers")
    items = client.get(f"{PROJECT}/datasets/rewardbench-2/samples").json()["items"]
    kept = [
        (*(item["sample"][name] for name in ("response", "group", "candidate", "item", "source")), item["reward"])
        for item in items
    ]
    assert kept == [
        ("Red.", 0, 0, "tied:3", "Ties", 1.0),
        ("Blue.", 0, 1, "tied:3", "Ties", 1.0),
        ("Loud.", 0, 2, "tied:3", "Ties", 0.0),
        ("Hello.", 1, 0, "7", "Focus", 1.0),
        ("No.", 1, 1, "7", "Focus", 0.0),
        ("Why?", 1, 2, "7", "Focus", 0.0),
        ("42.", 1, 3, "7", "Focus", 0.0),
    ]
    assert items[0]["extra"] == {"num_correct": 2, "models": ["a", "b", "c"]}


def test_two_answers_and_the_label_of_the_better_one_become_a_preference(
    client: TestClient, runner: ImportRunner
) -> None:
    """LLMBar publishes such rows."""
    answers = {"output_1": "yes", "output_2": "no"}
    rows = [{"input": f"Question {label}?", **answers, "label": label} for label in (1, 2, "2", 0)]
    made = upload(client, json.dumps(rows, indent=1).encode(), "llmbar.json").json()
    assert (made["detected"]["kind"], made["problem"]) == ("preferences", None)
    assert client.patch(f"{BASE}/{made['id']}", json={"bad_rows": "skip", "clean": False}).status_code == 200
    post(client, made["id"], "start")
    assert wait(client, made["id"], ended)["state"] == "succeeded"
    (bad,) = client.get(f"{BASE}/{made['id']}/report", params={"format": "json"}).json()
    assert (bad["line"], bad["reason"]) == (20, "has '0' in `label`, which is neither 1 nor 2")
    items = client.get(f"{PROJECT}/datasets/llmbar/samples").json()["items"]
    assert [(item["sample"]["chosen"], item["sample"]["rejected"]) for item in items] == [
        ("yes", "no"),
        ("no", "yes"),
        ("no", "yes"),
    ]


def test_the_whole_story_of_a_file_with_bad_rows(
    client: TestClient, runner: ImportRunner, sessions: sessionmaker[Session]
) -> None:
    bad = ["{broken", {"q": "", "good": "=1+1", "poor": "b"}, {"q": "Hi", "good": "same", "poor": "same"}]
    content = lines([*pairs(30), *bad, {"q": "=HYPERLINK()", "good": 5, "poor": "b"}])
    answer = upload(client, content)
    assert answer.status_code == 201, answer.text
    made = answer.json()
    assert (made["name"], made["state"], made["format"], made["size"]) == ("my-pairs", "draft", "jsonl", len(content))
    assert made["detected"] is None
    assert made["problem"]["code"] == "unknown_column"
    assert made["columns"][0] == {"name": "q", "types": ["text"], "examples": ["Hi 0", "Hi 1", "Hi 2"]}
    needed = {kind["kind"]: [f["name"] for f in kind["fields"] if f["required"]] for kind in made["kinds"]}
    assert needed["preferences"] == ["prompt", "chosen", "rejected"]
    url = f"{BASE}/{made['id']}"
    assert client.get(f"{url}/preview").json()["code"] == "unknown_column"
    assert client.post(f"{url}/start").json()["code"] == "unknown_column"

    wrong = client.patch(url, json={"kind": "preferences", "mapping": {"prompt": "nope"}}).json()
    assert wrong["problem"]["code"] == "unknown_column"
    assert client.get(url).json()["options"]["mapping"] == {"prompt": "nope"}
    right = client.patch(url, json=MAPPED).json()
    assert right["problem"] is None
    assert right["effective"]["mapping"] == MAPPED["mapping"]
    shown = client.get(f"{url}/preview", params={"limit": 40}).json()
    assert shown["rows"][0]["sample"] == {
        "prompt": [{"role": "user", "content": "Hi 0"}],
        "chosen": "a0",
        "rejected": "no",
    }
    assert shown["rows"][0]["extra"] == {"note": 0}
    assert shown["rows"][30]["problem"]["code"] == "broken_json"
    assert [row["dropped"] for row in shown["rows"][31:33]] == ["empty_round", "identical_sides"]

    post(client, made["id"], "validate")
    checked = wait(client, made["id"], ended)
    assert (checked["state"], checked["problem"], checked["dataset_id"]) == ("validated", None, None)
    report = checked["report"]
    assert (report["read"], report["rows"], report["bad_rows"]) == (34, 30, 2)
    assert report["cleaned"] == {"empty_round": 1, "identical_sides": 1}
    assert report["bad_counts"] == {"broken_json": 1, "bad_row": 1}
    assert [row["line"] for row in report["bad"]] == [31, 34]
    assert checked["progress"]["bytes"] == checked["progress"]["total_bytes"] == len(content)
    table = list(csv.DictReader(io.StringIO(client.get(f"{url}/report").text)))
    assert [(row["line"], row["code"]) for row in table] == [("31", "broken_json"), ("34", "bad_row")]
    assert [row["line"] for row in client.get(f"{url}/report", params={"format": "json"}).json()] == [31, 34]

    post(client, made["id"], "start")
    refused = wait(client, made["id"], ended)
    assert (refused["state"], refused["problem"]["code"]) == ("failed", "bad_row")
    assert refused["report"] == report
    assert client.get(f"{PROJECT}/datasets").json()["items"] == []
    assert client.patch(url, json={"bad_rows": "skip", "name": "kept"}).json()["state"] == "validated"
    post(client, made["id"], "start")
    done = wait(client, made["id"], ended)
    assert (done["state"], done["problem"]) == ("succeeded", None)
    dataset = client.get(f"{PROJECT}/datasets/kept").json()
    assert (dataset["id"], dataset["rows"], dataset["kind"]) == (done["dataset_id"], 30, "preferences")
    assert client.post(f"{url}/start").json()["code"] == "import_ended"
    with sessions() as session:
        actions = session.scalars(select(AuditEntry.action).order_by(AuditEntry.id)).all()
        assert list(actions) == [
            *["import.create", "import.change", "import.change", "import.validate", "import.start", "import.change"],
            *["import.start", "dataset.import"],
        ]
        ends = session.scalars(select(Event.payload).where(Event.type == "import.ended").order_by(Event.id)).all()
        assert [payload["state"] for payload in ends] == ["validated", "failed", "succeeded"]


def test_a_changed_mapping_drops_the_report_and_a_null_leaves_a_field_out(
    client: TestClient, runner: ImportRunner
) -> None:
    id_ = mapped(client, lines(pairs(5, margin=0.5)))
    post(client, id_, "validate")
    assert wait(client, id_, ended)["report"]["columns"]["margin"] == "margin"
    assert client.patch(f"{BASE}/{id_}", json={"bad_rows": "skip"}).json()["report"] is not None
    without = {**MAPPED["mapping"], "margin": None}  # type: ignore[dict-item]
    changed = client.patch(f"{BASE}/{id_}", json={"mapping": without}).json()
    assert (changed["state"], changed["report"]) == ("draft", None)
    assert changed["effective"]["mapping"] == MAPPED["mapping"]
    assert client.get(f"{BASE}/{id_}/report").status_code == 404
    assert "margin" not in client.get(f"{BASE}/{id_}/preview").json()["rows"][0]["sample"]


def test_cells_of_the_report_are_no_formulas(client: TestClient, runner: ImportRunner) -> None:
    content = "prompt,response\n" + "x,y\n" * 2 + "only one\n"
    made = upload(client, content.encode(), '=cmd|"x".csv').json()
    post(client, made["id"], "validate")
    wait(client, made["id"], ended)
    url = f"{BASE}/{made['id']}/report"
    assert [row["line"] for row in client.get(url, params={"format": "json"}).json()] == [4]
    with_formula = hostile_reason(client, made["id"])
    (row,) = csv.DictReader(io.StringIO(client.get(url).text))
    assert row["reason"] == f"'{with_formula}"


@pytest.mark.parametrize("form", ["jsonl.gz", "csv", "parquet"])
def test_every_format_goes_through(
    client: TestClient, sessions: sessionmaker[Session], files: ImportFiles, form: str
) -> None:
    rows = [{"prompt": f"Hi {i}", "response": f"a{i}"} for i in range(3000)]
    if form == "csv":
        content = ("prompt,response\n" + "".join(f"{r['prompt']},{r['response']}\n" for r in rows)).encode()
    elif form == "parquet":
        out = io.BytesIO()
        pq.write_table(pa.Table.from_pylist(rows), out)
        content = out.getvalue()
    else:
        content = gzip.compress(lines(rows))
    made = upload(client, content, "rows").json()
    assert (made["format"], made["state"], made["detected"]["kind"]) == (form, "draft", "instructions")
    shown = client.get(f"{BASE}/{made['id']}/preview").json()
    assert (len(shown["rows"]), shown["unit"]) == (20, "row" if form == "parquet" else "line")
    post(client, made["id"], "start")
    with transaction(sessions) as session:
        lease = claims.claim_next(session, 30.0, 3)
    assert lease is not None
    work(sessions, files, lease)
    done = client.get(f"{BASE}/{made['id']}").json()
    assert (done["state"], done["report"]["rows"]) == ("succeeded", 3000)


def hostile_reason(client: TestClient, id_: str) -> str:
    """Put a hostile reason where the import keeps its bad rows."""
    settings: Settings = client.app.state.settings  # type: ignore[attr-defined]
    (path,) = (settings.home / "artifacts" / "imports" / id_).glob("bad-*")
    row = json.loads(gzip.decompress(path.read_bytes()))
    path.write_bytes(gzip.compress(json.dumps({**row, "reason": "=1+1"}).encode()))
    return "=1+1"


@pytest.mark.parametrize(
    ("content", "code"),
    [
        (b"", "empty_file"),
        (b"\x1f\x8b\x08\x00\x00broken", "broken_file"),
        (b"PK\x03\x04zip", "wrong_file_type"),
        (b"{broken\n{broken\n", "broken_json"),
    ],
)
def test_of_a_refused_file_nothing_is_kept(client: TestClient, home: Path, content: bytes, code: str) -> None:
    answer = upload(client, content)
    assert (answer.status_code, answer.json()["code"]) == (422, code)
    assert client.get(BASE).json()["items"] == []
    assert stored_files(home) == []


def test_hostile_rows_are_bad_rows_at_every_step(client: TestClient, runner: ImportRunner) -> None:
    deep = ["[" * 900 + "]" * 900, '{"a":' * 900 + "1" + "}" * 900]
    content = lines([*pairs(1), *(f'{{"q": "a", "good": "b", "poor": "c", "x": {x}}}' for x in deep)])
    id_ = mapped(client, content)
    shown = client.get(f"{BASE}/{id_}/preview").json()["rows"]
    assert [row["problem"] and row["problem"]["code"] for row in shown] == [None, "broken_json", "broken_json"]
    post(client, id_, "validate")
    assert wait(client, id_, ended)["report"]["bad_counts"] == {"broken_json": 2}
    no_unicode = upload(client, b'{"q\\ud800": NaN}\n').json()
    assert client.get(f"{BASE}/{no_unicode['id']}/preview").json()["code"] == "unknown_column"


def test_names_are_proposed_free_and_deleting_removes_the_file(client: TestClient, home: Path) -> None:
    content = lines([{"prompt": "a\x00b", "\x00": "c\x00d"}, {"prompt": "Hi"}])
    names = [upload(client, content, "../x/Frägen?.jsonl.gz").json()["name"] for _ in range(2)]
    assert names == ["Fr-gen", "Fr-gen-2"]
    assert upload(client, content, name="no/name").json()["code"] == "invalid_name"
    listed = client.get(BASE, params={"limit": 1}).json()
    assert [item["name"] for item in listed["items"]] == ["Fr-gen-2"]
    assert listed["next"]
    assert len(stored_files(home)) == 2
    for item in client.get(BASE).json()["items"]:
        assert client.delete(f"{BASE}/{item['id']}").status_code == 204
    assert stored_files(home) == []


def test_others_see_nothing_and_a_viewer_changes_nothing(client: TestClient) -> None:
    id_ = mapped(client, lines(pairs(3)))
    client.post("/api/v1/projects", json={"name": "other"})
    tokens = f"{PROJECT}/tokens"
    reader = client.post(tokens, json={"name": "reader", "scopes": ["read"]}).json()["token"]
    headers = {"Authorization": f"Bearer {reader}"}
    for method, path in (
        ("GET", ""),
        ("GET", "/preview"),
        ("GET", "/report"),
        ("PATCH", ""),
        ("DELETE", ""),
        *(("POST", f"/{action}") for action in ("validate", "start", "cancel")),
    ):
        body = {"json": {}} if method == "PATCH" else {}
        elsewhere = client.request(method, f"/api/v1/projects/other/imports/{id_}{path}", **body)  # type: ignore[arg-type]
        assert elsewhere.status_code == 404, (method, path)
        answer = client.request(method, f"{BASE}/{id_}{path}", headers=headers, **body)  # type: ignore[arg-type]
        assert answer.status_code == (403 if method != "GET" else 404 if path == "/report" else 200), (method, path)
    assert client.post(BASE, files={"file": ("x", lines(pairs(1)))}, headers=headers).status_code == 403
