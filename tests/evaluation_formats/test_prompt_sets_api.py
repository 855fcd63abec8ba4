"""Prompt sets through the API: files of every project, bad rows by line, known sets from the hub."""

from __future__ import annotations

import hashlib
import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import huggingface_hub.constants
import pytest
from formats_world import ROOT, FormatsWorld, jsonl

COMMIT = "c" * 40
QUESTIONS = jsonl([{"category": "math", "prompt": ["one", "two"], "reference": ["1", "2"], "question_id": 81}])
EIGHTY = jsonl([{"category": "math", "prompt": ["one", "two"], "question_id": 81 + n} for n in range(80)])


def test_benchmarks_are_listed_with_their_figures(world: FormatsWorld, published: Path) -> None:
    for path, name in (
        ("fastchat/mt_bench/question.jsonl", "mt-bench"),
        ("fastchat/vicuna_bench/question.jsonl", "vicuna"),
        ("arena_hard/arena-hard-v2.0/question.jsonl", "arena"),
    ):
        assert world.send("prompt-sets", published / path, name=name).status_code == 201
    items = {prompt_set["name"]: prompt_set for prompt_set in world.client.get(f"{ROOT}/prompt-sets").json()["items"]}
    assert {
        name: (prompt_set["format"], prompt_set["prompts"], prompt_set["turns"], len(prompt_set["categories"]))
        for name, prompt_set in items.items()
    } == {
        "mt-bench": ("fastchat", 80, 2, 8),
        "vicuna": ("fastchat", 80, 1, 9),
        "arena": ("arena_hard", 750, 1, 3),
    }


def test_references_and_messages_reach_the_evaluation(world: FormatsWorld) -> None:
    rows = [
        {"prompt": [{"role": "system", "content": "be brief"}, {"role": "user", "content": "hi"}], "reference": "yo"},
        {"prompt": "plain", "follow_ups": ["more"], "category": "c", "question_id": "q"},
    ]
    world.evaluation(jsonl(rows))
    first, second = world.client.get(f"{ROOT}/evaluations/e/prompts").json()["items"]
    assert (first["question_id"], first["reference"], len(first["messages"])) == ("0", ["yo"], 2)
    assert (second["question_id"], second["follow_ups"], second["category"]) == ("q", ["more"], "c")


def test_alpaca_eval_prompts_are_numbered_by_their_places(world: FormatsWorld) -> None:
    array = json.dumps([{"instruction": f"do {i}", "dataset": "koala"} for i in range(3)], indent=1).encode()
    world.evaluation(array)
    items = world.client.get(f"{ROOT}/evaluations/e/prompts").json()["items"]
    assert [(prompt["question_id"], prompt["category"]) for prompt in items] == [
        ("0", "koala"),
        ("1", "koala"),
        ("2", "koala"),
    ]


def test_bad_rows_are_named_by_line_and_nothing_is_kept(world: FormatsWorld) -> None:
    rows = [
        {"question_id": 1, "turns": ["fine"]},
        {"question_id": 2, "turns": []},
        "not json",
        {"question_id": 1, "turns": ["again"]},
        {"question_id": True, "turns": ["x"]},
    ]
    problem = world.refused("prompt-sets", jsonl(rows), name="mine")
    assert problem["bad_rows"] == 4
    assert [place["location"] for place in problem["errors"]] == ["line 2", "line 3", "line 4", "line 5"]
    assert "line 1" in problem["errors"][2]["message"]
    assert world.client.get(f"{ROOT}/prompt-sets").json()["items"] == []


def test_names_and_formats_are_checked(world: FormatsWorld) -> None:
    assert world.send("prompt-sets", QUESTIONS, name="mine").status_code == 201
    assert world.refused("prompt-sets", QUESTIONS, name="mine")["code"] == "name_taken"
    assert world.refused("prompt-sets", QUESTIONS, name="no name")["code"] == "invalid_name"
    answers = jsonl([{"question_id": 1, "model_id": "m", "text": "t"}])
    assert world.refused("prompt-sets", answers)["code"] == "wrong_file_type"
    assert world.client.post(f"{ROOT}/prompt-sets", json={}).json()["code"] == "invalid_request"
    assert world.client.post(f"{ROOT}/prompt-sets", json={"known": "nothing"}).json()["code"] == "unknown_prompts"


def test_a_set_can_go_while_an_evaluation_keeps_its_prompts(world: FormatsWorld) -> None:
    world.questions(2)
    assert world.client.delete(f"{ROOT}/prompt-sets/e-prompts").status_code == 204
    assert len(world.client.get(f"{ROOT}/evaluations/e/prompts").json()["items"]) == 2
    assert world.client.delete(f"{ROOT}/prompt-sets/e-prompts").status_code == 404


class Hub(BaseHTTPRequestHandler):
    """The two calls that listing and downloading one file make."""

    repo = "HuggingFaceH4/mt_bench_prompts"
    content = EIGHTY

    def do_HEAD(self) -> None:
        self.do_GET()

    def do_GET(self) -> None:
        path = self.path.split("?")[0]
        if path.startswith(f"/api/datasets/{self.repo}"):
            listing = {"id": self.repo, "sha": COMMIT, "siblings": [{"rfilename": "raw/question.jsonl", "size": 9}]}
            self.answer(json.dumps(listing).encode())
        elif path == f"/datasets/{self.repo}/resolve/{COMMIT}/raw/question.jsonl":
            self.answer(self.content)
        else:
            self.send_response(404)
            self.send_header("X-Error-Code", "RepoNotFound")
            self.send_header("Content-Length", "0")
            self.end_headers()

    def answer(self, content: bytes) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(content)))
        self.send_header("ETag", f'"{hashlib.sha1(content).hexdigest()}"')
        self.send_header("X-Repo-Commit", COMMIT)
        self.end_headers()
        if self.command == "GET":
            self.wfile.write(content)

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Hub)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    endpoint = f"http://127.0.0.1:{server.server_port}"
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", endpoint)
    template = endpoint + "/{repo_id}/resolve/{revision}/{filename}"
    monkeypatch.setattr(huggingface_hub.constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)
    yield
    server.shutdown()
    server.server_close()


@pytest.mark.usefixtures("hub")
def test_a_known_set_is_fetched_by_name(world: FormatsWorld) -> None:
    made = world.client.post(f"{ROOT}/prompt-sets", json={"known": "mt-bench-80"})
    assert made.status_code == 201, made.text
    assert (made.json()["name"], made.json()["turns"], made.json()["categories"]) == ("mt-bench-80", 2, ["math"])
    missing = world.client.post(f"{ROOT}/prompt-sets", json={"known": "arena-hard-v0.1"})
    assert missing.json()["code"] == "hub_not_found"
    assert "import-prompts FILE --known arena-hard-v0.1" in missing.json()["hint"]


@pytest.mark.usefixtures("hub")
def test_what_is_fetched_must_be_all_of_it(world: FormatsWorld, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Hub, "content", QUESTIONS)
    refused = world.client.post(f"{ROOT}/prompt-sets", json={"known": "mt-bench-80"})
    assert (refused.status_code, refused.json()["code"]) == (422, "other_prompts")
    assert world.client.get(f"{ROOT}/prompt-sets").json()["items"] == []


def test_known_sets_say_their_licence(world: FormatsWorld) -> None:
    known = {
        prompt_set["name"]: prompt_set["licence"] for prompt_set in world.client.get(f"{ROOT}/prompt-sets/known").json()
    }
    assert known["mt-bench-80"] == "Apache-2.0"
    assert known["alpaca-eval-805"] == "CC-BY-NC-4.0"
