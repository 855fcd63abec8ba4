"""`steerboard gate` and the REST call give the same verdict; exit codes are exact."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import httpx
import pytest
import yaml
from fastapi.testclient import TestClient
from sqlalchemy import update
from sqlalchemy.orm import Session, sessionmaker

from steerboard.accounts.tables import Project
from steerboard.evaluation.tables import Entrant
from steerboard.platform.database import transaction
from steerboard.registry.tables import Model
from support.processes.command_line import Steerboard
from support.rows.evaluation_rows import Evaluated
from support.servers.other_server import Answer, other_server

PASS = {"metric": "win_rate", "entrant": "dt", "vs": "sft", "by": "judge", "stat": "ci_low", "op": ">", "value": 0.5}
FAIL = {"metric": "length_ratio", "entrant": "dt", "vs": "sft", "op": "<", "value": 0.9}
INVALID = {"metric": "accuracy", "op": ">", "value": 0.6}


@pytest.fixture
def made(sessions: sessionmaker[Session], project: Project) -> Evaluated:
    evaluated = Evaluated(sessions, project, prompts=20)
    evaluated.entrant("sft")
    evaluated.entrant("dt")
    evaluated.scores({"sft": [4] * 20, "dt": [6, 7] * 10})
    return evaluated


def written(folder: Path, document: Any) -> str:
    path = folder / "gate.yaml"
    path.write_text(yaml.safe_dump(document))
    return str(path)


@pytest.mark.usefixtures("made")
def test_the_command_exits_as_the_verdict_and_the_api_say(
    steerboard: Steerboard, url: str, token: str, tmp_path: Path
) -> None:
    bearer = {"Authorization": f"Bearer {token}"}
    for rules, verdict, code in (
        ([PASS], "pass", 0),
        ([PASS, FAIL], "fail", 1),
        ([PASS, FAIL, INVALID], "invalid", 2),
    ):
        junit = tmp_path / f"{verdict}.xml"
        file = written(tmp_path, {"rules": rules})
        done = steerboard(url, token, "gate", "vicuna", "--rules", file, "--json", "--junit", str(junit))
        assert done.returncode == code, done.stderr
        call = f"{url}/api/v1/projects/default/evaluations/vicuna/gate"
        answer = httpx.post(call, headers=bearer, json={"rules": rules}).json()
        assert json.loads(done.stdout) == answer
        assert answer["verdict"] == verdict
        xml = httpx.post(call, headers=bearer, json={"rules": rules}, params={"format": "junit"})
        assert xml.headers["content-type"].startswith("application/xml")
        assert junit.read_text() == xml.text
        assert ElementTree.fromstring(xml.text).get("tests") == str(len(rules))
    plain = steerboard(url, token, "gate", "vicuna", "--rules", written(tmp_path, [PASS]))
    assert plain.returncode == 0
    assert "vicuna: pass" in plain.stdout


@pytest.mark.usefixtures("made")
def test_wrong_usage_exits_64_and_an_unreachable_server_69(
    steerboard: Steerboard, url: str, token: str, tmp_path: Path
) -> None:
    good = written(tmp_path, [PASS])
    broken = tmp_path / "broken.yaml"
    broken.write_text("rules: [")
    unknown = tmp_path / "unknown.yaml"
    unknown.write_text(yaml.safe_dump([{**PASS, "metric": "luck"}]))
    none = tmp_path / "none.yaml"
    none.write_text("other: 1")
    for arguments, words in (
        (("vicuna",), "--rules"),
        (("vicuna", "--rules", good, "--loud"), "--loud"),
        (("vicuna", "--rules", str(tmp_path / "no.yaml")), "No such file"),
        (("vicuna", "--rules", str(broken)), "neither YAML nor JSON"),
        (("vicuna", "--rules", str(none)), "no list of rules"),
        (("vicuna", "--rules", str(unknown)), "rules.0.metric: there is no metric 'luck'"),
        (("nope", "--rules", good), "unknown_evaluation"),
        (("vicuna", "--rules", good, "--junit", str(tmp_path / "no" / "out.xml")), "no folder"),
    ):
        done = steerboard(url, token, "gate", *arguments)
        assert (done.returncode, words in done.stderr) == (64, True), (arguments, done.stderr)
    assert steerboard(url, "nobody", "gate", "vicuna", "--rules", good).returncode == 64
    assert steerboard("http://127.0.0.1:9", token, "gate", "vicuna", "--rules", good).returncode == 69


@pytest.mark.usefixtures("made")
def test_only_a_verdict_exits_as_a_verdict_does(steerboard: Steerboard, url: str, token: str, tmp_path: Path) -> None:
    """1 and 2 are verdicts on the model, so no other failure may exit with them, as a traceback would."""
    good = written(tmp_path, [PASS])
    rules = tmp_path / "odd.yaml"
    for text, words in (
        ("rules: [{metric: n, op: '>', value: .nan}]", "cannot be sent as JSON"),
        ("rules: [{metric: n, op: '>', value: 2024-01-01}]", "cannot be sent as JSON"),
        ("&rules [{metric: n, op: '>', value: *rules}]", "cannot be sent as JSON"),
        ("rules: [{metric: n, op: >, value: 1}]", 'op: ">"'),
        ("[" * 2000, "neither YAML nor JSON"),
    ):
        rules.write_text(text)
        done = steerboard(url, token, "gate", "vicuna", "--rules", str(rules))
        assert (done.returncode, words in done.stderr) == (64, True), (text, done.stderr)
    done = steerboard(url, token, "gate", "vicuna", "--rules", good, "--junit", str(tmp_path))
    assert (done.returncode, "cannot_write" in done.stderr) == (64, True), done.stderr
    for address, given, words in (
        (url.removeprefix("http://"), token, "STEERBOARD_URL"),
        ("http://host:port", token, "STEERBOARD_URL"),
        (url, "t\u00f6ken", "STEERBOARD_TOKEN"),
    ):
        done = steerboard(address, given, "gate", "vicuna", "--rules", good)
        assert (done.returncode, words in done.stderr) == (64, True), (address, done.stderr)
    assert steerboard(url, f"{token}\n", "gate", "vicuna", "--rules", good).returncode == 0


def test_what_is_no_steerboard_is_unreachable(steerboard: Steerboard, tmp_path: Path) -> None:
    good = written(tmp_path, [PASS])
    with other_server() as other:
        for answer, words in (
            (Answer(301, [], {"Location": "https://elsewhere/"}), "redirects to https://elsewhere/"),
            (Answer(200, [b"<html>Welcome</html>"], {"Content-Type": "text/html"}), "not a Steerboard"),
            (Answer.json({"status": "ok"}), "returned no verdict"),
            (Answer(502, [b"<html>Bad gateway</html>"], {"Content-Type": "text/html"}), "answered 502"),
        ):
            other.answer = lambda _, answer=answer: answer  # type: ignore[misc]
            done = steerboard(other.url, "token", "gate", "vicuna", "--rules", good)
            assert (done.returncode, words in done.stderr) == (69, True), done.stderr
            assert "<html>" not in done.stderr


def test_a_baseline_is_pinned_by_model_and_stage(made: Evaluated, client: TestClient) -> None:
    model = made.model("our-sft", role="sft", method="sft")

    def verdict(pin: dict[str, str]) -> str:
        body = {"rules": [PASS], "baselines": {"sft": pin}}
        answer = client.post("/api/v1/projects/default/evaluations/vicuna/gate", json=body)
        return str(answer.json()["verdict"])

    def answered_by(content_hash: str) -> None:
        with transaction(made.sessions) as session:
            session.execute(update(Entrant).where(Entrant.name == "sft").values(content_hash=content_hash))

    assert verdict({"model": "our-sft"}) == "invalid"
    answered_by(model.artifact_hash)
    # The report is kept until the version rises.
    made.changed()
    assert verdict({"model": "our-sft"}) == "pass"
    assert verdict({"content_hash": model.artifact_hash}) == "pass"
    assert verdict({"model": "our-sft@production"}) == "invalid"
    assert verdict({"model": "gone"}) == "invalid"
    with transaction(made.sessions) as session:
        session.execute(update(Model).where(Model.id == model.id).values(stage="production"))
    assert verdict({"model": "our-sft@production"}) == "pass"
    assert verdict({"model": "@production"}) == "pass"


@pytest.mark.usefixtures("made")
def test_evaluations_are_shown_and_their_report_printed_or_written(
    steerboard: Steerboard, url: str, token: str, tmp_path: Path
) -> None:
    assert "vicuna" in steerboard(url, token, "evaluations", "list").stdout
    assert "entrant dt: 20 answers" in steerboard(url, token, "evaluations", "show", "vicuna").stdout
    printed = steerboard(url, token, "evaluations", "report", "vicuna")
    assert "Judge judge: dt is significantly better than its only rival" in printed.stdout, printed.stderr
    assert printed.stdout.splitlines()[1].startswith("dt wins: against sft, its only rival, its win rate is 100.0%")
    path = tmp_path / "report.json"
    assert steerboard(url, token, "evaluations", "report", "vicuna", "--output", str(path)).returncode == 0
    assert json.loads(path.read_text())["judges"][0]["comparison"]["winner"] == "dt"
    for ending, begins in ((".html", b"<!doctype html>"), (".pdf", b"%PDF-")):
        file = tmp_path / f"report{ending}"
        assert steerboard(url, token, "evaluations", "report", "vicuna", "--output", str(file)).returncode == 0
        assert file.read_bytes().startswith(begins)
    unwritable = steerboard(url, token, "evaluations", "report", "vicuna", "--output", str(tmp_path / "no" / "r.json"))
    assert (unwritable.returncode, "cannot_write" in unwritable.stderr) == (1, True)
    unknown = steerboard(url, token, "evaluations", "show", "nope")
    assert (unknown.returncode, "steerboard evaluations list" in unknown.stderr) == (1, True)
    assert steerboard(url, token, "evaluations", "show").returncode == 64
    assert steerboard(url, token, "evaluations", "dance").returncode == 64


@pytest.mark.usefixtures("made")
def test_notices_tell_of_each_verdict_once(client: TestClient) -> None:
    project = "/api/v1/projects/default"
    rule = {"name": "ci", "url": "https://ci.example/", "events": ["gate.passed", "gate.failed"]}
    assert client.post(f"{project}/notice-rules", json=rule).status_code == 201
    for rules in ([PASS], [PASS], [PASS, FAIL], [PASS, FAIL, INVALID], [PASS, FAIL]):
        assert client.post(f"{project}/evaluations/vicuna/gate", json={"rules": rules}).status_code == 200
    told = client.get(f"{project}/notice-rules/ci/deliveries").json()["items"][::-1]
    assert [each["event"] for each in told] == ["gate.passed", "gate.failed"]
    data = told[1]["payload"]["data"]
    assert (data["name"], data["project"], [rule["outcome"] for rule in data["rules"]]) == (
        "vicuna",
        "default",
        ["pass", "fail"],
    )
    assert "length_ratio" in data["reason"]
