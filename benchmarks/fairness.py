"""What everyone else notices of one caller who takes all they can get, as one JSON document: `make bench-fairness`.

Starts `steerboard up` with servers of its own (those of STEERBOARD_DATABASE_URL and STEERBOARD_REDIS_URL where they are
set). Readers, each with a token of their own, ask for lists every few seconds, and as many others follow the live
stream: first `alone`, then next to a greedy caller (`together`), then `alone_again`. The greedy one keeps under way, on
a connection each: previews of cleaning that all differ, PDF reports, and recipes that come to 24,000 stages. Times are
milliseconds from the moment at which a request was due, so a server that falls behind cannot hide it. The bar on two
quiet cores: p95 500 ms `together`; `missed` names what fails.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import uuid
from pathlib import Path
from typing import Any

from dashboard.crowd import Answers, Crowd, Request, ask
from dashboard.evaluation import write_evaluation
from dashboard.readers import reading
from harness.machine import machine
from harness.measure import percentile, say
from harness.running_platform import Bench, platform

from steerboard.platform.security.credentials import secret_hash

BAR_P95_MS = 500.0
_PAIRS = 2000
_PREVIEWS, _REPORTS, _RECIPES = 24, 24, 40
_PROMPTS, _ENTRANTS = 300, 6


def main() -> None:
    given = _arguments()
    with tempfile.TemporaryDirectory(prefix="bench-", dir=given.folder) as home:
        print(json.dumps(run(Path(home), given), indent=2))


def run(home: Path, given: argparse.Namespace) -> dict[str, Any]:
    document: dict[str, Any] = {
        "machine": machine(),
        "readers": given.readers,
        "streams": given.readers,
        "seconds": given.seconds,
        "greedy": {"previews": _PREVIEWS, "reports": _REPORTS, "recipes": _RECIPES},
    }
    with platform(home) as bench:
        _fill(bench, home)
        tokens = _tokens(bench, given.readers + 1)
        crowd = {
            "url": bench.url,
            "readers": tokens[1:],
            "seconds": given.seconds,
            "pause": given.pause,
            "greedy_token": tokens[0],
        }
        with reading(bench, given.readers, 0, 0):
            for phase, greedy in (("alone", []), ("together", _greedy()), ("alone_again", [])):
                answers = ask(Crowd(**crowd, greedy=greedy))
                document[phase] = _figures(answers)
                say(f"{phase}: {document[phase]}")
        document["machine"]["load_after"] = machine()["load"]
    p95 = document["together"]["p95"]
    document["missed"] = ["together"] if p95 is None or p95 > BAR_P95_MS else []
    document["missed"] += [name for name in ("alone", "together", "alone_again") if document[name]["failed"]]
    return document


def _figures(answers: Answers) -> dict[str, Any]:
    shares = {"p50": 0.50, "p95": 0.95, "p99": 0.99, "max": 1.0}
    return {
        "requests": len(answers.times),
        **{name: percentile(answers.times, share) for name, share in shares.items()},
        "failed": dict(answers.failed),
        "greedy_answers": dict(answers.greedy),
    }


def _greedy() -> list[Request]:
    """Previews that differ from each other, so no result is found again; reports and recipes that are all the same."""
    previews = [
        Request("datasets/pairs/cleaning/preview", json.dumps({"min_margin": place / 100}).encode())
        for place in range(_PREVIEWS)
    ]
    stages = "".join(f"    s{i}: {{run: generate, model: previous, data: $p}}\n" for i in range(1200))
    recipe = (
        "name: large\ninputs: {base: {type: model}, p: {type: dataset, kind: prompts}}\n"
        "stages: {sft: {run: train, method: sft, model: $base, data: $p}}\n"
        f"rounds: {{count: 20}}\nround:\n  previous: sft\n  stages:\n{stages}"
    )
    check = Request("recipes/check", json.dumps({"text": recipe}).encode())
    return [*previews, *[Request("evaluations/bench/report.pdf")] * _REPORTS, *[check] * _RECIPES]


def _fill(bench: Bench, home: Path) -> None:
    file = home / "pairs.jsonl"
    words = "some words of a sentence that is as long as sentences are, " * 8
    with file.open("w") as out:
        for row in range(_PAIRS):
            pair = {"prompt": f"What is {row}? {words}", "chosen": f"{row} {words}", "rejected": words, "margin": row}
            out.write(json.dumps(pair) + "\n")
    with bench.client() as client, file.open("rb") as given:
        form = {"name": "pairs", "kind": "preferences", "clean": "false"}
        client.post("datasets/import", data=form, files={"file": (file.name, given)}).raise_for_status()
    write_evaluation(bench, _PROMPTS, _ENTRANTS)


def _tokens(bench: Bench, number: int) -> list[str]:
    """Each of a caller of their own: tokens that one person makes through the API are all that person's."""
    tokens = [uuid.uuid4().hex for _ in range(number)]
    with bench.connect() as connection, connection.cursor() as cursor:
        for place, token in enumerate(tokens):
            cursor.execute(
                """INSERT INTO api_tokens (id, project_id, name, token_hash, hint, scopes)
                   SELECT %s, id, %s, %s, '', '{read}' FROM projects""",
                (uuid.uuid4(), f"reader-{place}", secret_hash(token)),
            )
    return tokens


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--readers", type=int, default=100, help="and as many of the live stream")
    parser.add_argument("--seconds", type=float, default=30.0, help="of each of the three phases")
    parser.add_argument("--pause", type=float, default=3.0, help="from one request of a reader to the next, in seconds")
    parser.add_argument("--folder", type=Path, help="where the temporary folder is made")
    return parser.parse_args()


if __name__ == "__main__":
    main()
