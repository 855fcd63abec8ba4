"""Many annotators who rank at once, as one JSON document: `make bench-ranking`.

Starts `steerboard up` with servers of its own (those of STEERBOARD_DATABASE_URL and STEERBOARD_REDIS_URL where they are
set), makes an evaluation and a campaign, and lets annotators, each signed in by a link and on a connection of its own,
submit a ranking each second and get the next items with the answer (`--apart`: by another call). Some submissions are
sent twice, as after a lost answer. Times are milliseconds from the moment at which a request was due, so a server that
falls behind cannot hide it. Afterwards the database is read: no ranking may be `lost`, `doubled`, `altered`, or of an
item `beyond` the overlap. The bar on two cores: `submit` p95 200 ms; `missed` names what fails.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import multiprocessing
import os
import tempfile
from pathlib import Path
from typing import Any

import httpx
import psutil
from dashboard.evaluation import write_evaluation
from dashboard.ranking_annotators import AnnotatorLoad, Done, rank
from harness.measure import percentile, say
from harness.running_platform import Bench, platform

BAR_P95_MS = 200.0
ENTRANTS, OVERLAP = 5, 2


def main() -> None:
    given = _arguments()
    with tempfile.TemporaryDirectory(prefix="bench-", dir=given.folder) as home:
        print(json.dumps(run(Path(home), given), indent=2))


def run(home: Path, given: argparse.Namespace) -> dict[str, Any]:
    load = [round(value, 2) for value in os.getloadavg()]
    with platform(home) as bench:
        # A tenth more than are ranked, so that the queue never runs dry.
        prompts = int(given.annotators * given.seconds / OVERLAP * 1.1) + 3 * given.annotators
        campaign = _fill(bench, prompts)
        cookies = _sign_in(bench, campaign, given.annotators)
        say(f"{given.annotators} annotators, {prompts} prompts, {given.seconds} s")
        server = psutil.Process(bench.pid)
        before = server.cpu_times()
        done = _load(AnnotatorLoad(bench.url, campaign, cookies, given.seconds, given.apart))
        after = server.cpu_times()
        requests = len(done.submitted) + len(done.next_ms) + done.sent_twice + given.annotators
        document = {
            "cores": len(os.sched_getaffinity(0)),
            "load_before": load,
            "annotators": given.annotators,
            "seconds": given.seconds,
            "submit": _figures([submission.milliseconds for submission in done.submitted]),
            "apart": given.apart,
            "next": _figures(done.next_ms),
            # The API's own, without the database's.
            "cpu_ms_per_request": round((after.user + after.system - before.user - before.system) * 1000 / requests, 2),
            "submitted": len(done.submitted),
            "per_second": round(len(done.submitted) / given.seconds, 1),
            "sent_twice": done.sent_twice,
            "reconnected": done.reconnected,
            "failed": done.failed,
            **_verify(bench, campaign, done),
        }
    p95 = document["submit"]["p95"]
    missed = ["submit"] if p95 is None or p95 > BAR_P95_MS else []
    document["missed"] = missed + [name for name in ("lost", "doubled", "altered", "beyond") if document[name]]
    document["missed"] += ["failed"] if done.failed else []
    return document


def _figures(times: list[float]) -> dict[str, float | None]:
    shares = {"p50": 0.50, "p95": 0.95, "p99": 0.99, "max": 1.0}
    return {name: percentile(times, share) for name, share in shares.items()}


def _load(load: AnnotatorLoad) -> Done:
    """Loads in a process of its own, so that its work is not the server's."""
    context = multiprocessing.get_context("spawn")
    ours, remote = context.Pipe()
    process = context.Process(target=_rank, args=(remote, load), daemon=True)
    process.start()
    remote.close()  # so that an end without an answer is seen
    done: Done = ours.recv()
    process.join()
    return done


def _rank(pipe: Any, load: AnnotatorLoad) -> None:
    pipe.send(asyncio.run(rank(load)))


def _fill(bench: Bench, prompts: int) -> str:
    """An evaluation whose entrants have answered everything; returns the id of its campaign."""
    write_evaluation(bench, prompts, ENTRANTS)
    with bench.client() as client:
        body = {"name": "bench", "overlap": OVERLAP, "gold_every": 10}
        campaign = client.post("evaluations/bench/campaigns", json=body).raise_for_status().json()
        ranks = {f"entrant-{place}": place + 1 for place in range(ENTRANTS)}
        for position in range(3):
            path = f"evaluations/bench/campaigns/bench/gold/{position}"
            client.put(path, json={"ranks": ranks}).raise_for_status()
    return str(campaign["id"])


def _sign_in(bench: Bench, campaign: str, annotators: int) -> list[tuple[str, str]]:
    """(cookie header, CSRF token) of each, by the links that the campaign's owner makes."""
    signed_in = []
    with bench.client() as owner:
        for _ in range(annotators):
            link = owner.post(f"evaluations/bench/campaigns/{campaign}/annotators", json={}).raise_for_status().json()
            with httpx.Client(base_url=bench.url) as browser:
                browser.post(link["link"])
                csrf = browser.get("/api/v1/session").raise_for_status().json()["csrf_token"]
                signed_in.append(("; ".join(f"{name}={value}" for name, value in browser.cookies.items()), csrf))
    return signed_in


def _verify(bench: Bench, campaign: str, done: Done) -> dict[str, int]:
    """The database's rankings against those confirmed to the annotators."""
    with bench.connect() as connection:
        stored = {
            str(id_): ranks
            for id_, ranks in connection.execute(
                "SELECT id, ranks FROM ranking_tasks WHERE campaign_id = %s AND state = 'submitted'", (campaign,)
            )
        }
        rankings = connection.execute(
            """SELECT coalesce(sum(rankings), 0), count(*) FILTER (WHERE gold IS NULL AND rankings > %s)
               FROM ranking_items WHERE campaign_id = %s""",
            (OVERLAP, campaign),
        ).fetchone()
    assert rankings is not None
    confirmed = {submission.task: submission.ranks for submission in done.submitted}
    return {
        "stored": len(stored),
        "lost": len(confirmed.keys() - stored.keys()),
        "doubled": len(done.submitted) - len(confirmed) + abs(int(rankings[0]) - len(stored)),
        "altered": sum(stored.get(task, ranks) != ranks for task, ranks in confirmed.items()),
        "beyond": int(rankings[1]),
    }


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--annotators", type=int, default=100)
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--apart", action="store_true", help="ask for the next items in calls of their own")
    parser.add_argument("--folder", type=Path, help="where the temporary folder is made")
    return parser.parse_args()


if __name__ == "__main__":
    main()
