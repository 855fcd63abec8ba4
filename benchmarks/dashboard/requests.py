"""What the dashboard's pages ask, with the limits that they ask with: the lists, and what charts are drawn from."""

from __future__ import annotations

from typing import Any

import httpx
from harness.measure import Ask
from harness.running_platform import Bench

from dashboard.fill import SEED_DATASET
from dashboard.samples import DATASET, SOURCES, vocabulary

_VARIANTS = 8
# Places in the vocabulary: in most rows, in about every twentieth, in a few of a million.
_COMMON, _MIDDLE, _RARE = slice(0, 2), slice(150, 158), slice(-8, None)


def list_asks(bench: Bench) -> list[Ask]:
    with bench.client() as client:
        samples = client.get(f"datasets/{DATASET}").raise_for_status().json()["rows"]
        deep_runs = _deep_cursor(client, "runs")
        deep_datasets = _deep_cursor(client, "datasets")
        deep_audit = _deep_cursor(client, "audit")
    with bench.connect(autocommit=True) as connection:
        runs = [str(row[0]) for row in connection.execute("SELECT run_id FROM run_logs GROUP BY 1 LIMIT 8")]
    pipelines = [f"p-{number:04d}" for number in range(_VARIANTS // 2)]
    return [
        Ask("runs", ["runs"], [{"limit": 50}]),
        Ask("runs_by_state", ["runs"], _each("state", "failed", "running", "queued", "succeeded")),
        Ask("runs_by_kind", ["runs"], _each("kind", "train", "evaluate", "generate")),
        Ask("runs_by_pipeline", ["runs"], _each("pipeline", *pipelines)),
        Ask("runs_deep", ["runs"], [{"limit": 50, "cursor": deep_runs}]),
        Ask("runs_pending", ["runs"], [{"limit": 50, "state": "pending"}]),
        *_run_table_asks(),
        *_marked_asks(),
        Ask("run", [f"runs/{run}" for run in runs]),
        Ask("run_logs", [f"runs/{run}/logs" for run in runs], [{"limit": 200}]),
        Ask("pipelines", ["pipelines"], [{"limit": 100}]),
        Ask("datasets", ["datasets"], [{"limit": 200}]),
        Ask("datasets_deep", ["datasets"], [{"limit": 200, "cursor": deep_datasets}]),
        Ask("models", ["models"], [{"limit": 200}]),
        Ask("queues", [f"{bench.url}/api/v1/system/queues"]),
        Ask("queue", [f"{bench.url}/api/v1/system/queues/default"], [{"limit": 200}]),
        Ask("audit", ["audit"], [{"limit": 50}]),
        Ask("audit_deep", ["audit"], [{"limit": 50, "cursor": deep_audit}]),
        Ask("audit_by_action", ["audit"], [{"limit": 50, "action": "dataset"}, {"limit": 50, "actor": "user:ana"}]),
        Ask("waiting", ["waiting"]),
        *_sample_asks(samples),
    ]


def _run_table_asks() -> list[Ask]:
    """The list of runs as people filter, sort and search it."""
    filters = {
        "metric": ["loss < 1.1", "held_out_loss.min < 0.2", "kl > 1.99"],
        "setting": ["lr = 1e-5", "batch > 4"],
        "words": ["nightly train", "spike", "rwr 0.1"],
        "tag": ["tag:keep", "tag:paper -state:failed"],
        "combined": ["(kind:train or kind:generate) loss < 1.5 created > 30d", "tag:baseline loss.min < 0.5"],
        "archived": ["is:archived"],
    }
    columns = {"column": ["loss", "held_out_loss.min", "lr", "batch"]}
    asks = [
        Ask(f"runs_filter_{name}", ["runs"], [{"limit": 50, "filter": text} for text in texts])
        for name, texts in filters.items()
    ]
    sorts = [{"limit": 50, "sort": sort} for sort in ("loss", "-held_out_loss.min", "lr", "-duration", "name")]
    return [
        *asks,
        Ask("runs_sorted", ["runs"], sorts),
        Ask("runs_sorted_filtered", ["runs"], [{"limit": 50, "sort": "loss", "filter": "tag:keep"}]),
        Ask("runs_columns", ["runs"], [{"limit": 50, **columns}]),
        Ask("run_columns_known", ["run-columns"]),
    ]


def _marked_asks() -> list[Ask]:
    """Lists of other things by their marks, and the search of everything."""
    asks = []
    for things in ("pipelines", "datasets", "models"):
        queries = [{"limit": 50, "search": "spike"}, {"limit": 50, "tag": "keep"}, {"limit": 50, "search": "p-01"}]
        asks.append(Ask(f"{things}_marked", [things], queries))
        asks.append(Ask(f"{things}_archived", [things], [{"limit": 50, "archived": True}]))
    parts = [{"q": part} for part in ("spike", "p-0", "rwr", "baseline", "zzz")]
    return [*asks, Ask("search_everything", ["search"], parts)]


def _each(name: str, *values: str) -> list[dict[str, Any]]:
    return [{"limit": 50, name: value} for value in values]


def _sample_asks(rows: int) -> list[Ask]:
    """Pages of 100 samples, and how many there are, with the same filters."""
    path = f"datasets/{DATASET}/samples"
    words = vocabulary()
    deep = [{"from_row": rows * place // 100 // 100 * 100, "limit": 100} for place in (60, 75, 90, 98)]
    filters: dict[str, list[dict[str, Any]]] = {
        "split": [{"split": "held_out"}, {"split": "train"}],
        "rare_word": [{"q": word} for word in words[_RARE]],
        "common_word": [{"q": word} for word in words[_COMMON]],
        "two_words": [{"q": f"{words[3]} {word}"} for word in words[_MIDDLE]],
        "two_rare_words": [{"q": f"{words[200]} {word}"} for word in words[_RARE]],
        "phrase": [{"q": f'"{words[0]} {word}"'} for word in words[2:5]],
        "narrow_reward": [{"reward_min": low, "reward_max": low + 0.002} for low in (-1.5, 0.0, 0.4, 2.0)],
        "wide_reward": [{"reward_min": low, "reward_max": 3.0} for low in (-3.0, -1.0, 0.0)],
        "source": [{"source": source} for source in SOURCES],
        "combined": [
            {"q": word, "source": "generated", "split": "train", "reward_min": 0.5} for word in words[_MIDDLE]
        ],
    }
    return [
        Ask("samples", [path], [{"from_row": 0, "limit": 100}]),
        Ask("samples_deep", [path], deep),
        Ask(
            "samples_by_reward", [path], [{"order": "reward_desc", "limit": 100}, {"order": "reward_asc", "limit": 100}]
        ),
        *(
            Ask(f"samples_{name}", [path], [{**filter_, "limit": 100} for filter_ in queries])
            for name, queries in filters.items()
        ),
        *(Ask(f"count_{name}", [f"{path}/count"], queries) for name, queries in filters.items()),
    ]


def _deep_cursor(client: httpx.Client, path: str) -> str:
    """The cursor of the page past the middle of a list, as someone gets it who scrolls that far."""
    cursors: list[str] = []
    page: dict[str, Any] = {"next": None}
    while page["next"] or not cursors:
        answer = client.get(path, params={"limit": 500} | ({"cursor": page["next"]} if page["next"] else {}))
        page = answer.raise_for_status().json()
        if page["next"] is None:
            break
        cursors.append(page["next"])
    if cursors:
        return cursors[len(cursors) * 3 // 4]
    first = client.get(path, params={"limit": 10}).raise_for_status().json()
    return str(first["next"])


def charted_runs(bench: Bench) -> list[str]:
    """Runs with metrics; the first has by far the most of them."""
    with bench.connect(autocommit=True) as connection:
        rows = connection.execute("SELECT run_id FROM metrics GROUP BY 1 ORDER BY count(*) DESC, 1 LIMIT 24").fetchall()
    return [str(row[0]) for row in rows]


def chart_asks(bench: Bench) -> list[Ask]:
    long, *others = charted_runs(bench)
    compared = others[:4]
    with bench.connect(autocommit=True) as connection:
        rows = connection.execute(
            """SELECT p.name FROM pipelines p JOIN runs r ON r.pipeline_id = p.id AND r.parent_id IS NULL
               GROUP BY p.name HAVING bool_and(r.state = 'succeeded') ORDER BY p.name DESC LIMIT 8"""
        )
        pipelines = [f"pipelines/{row[0]}" for row in rows]
        model = connection.execute("SELECT id FROM models WHERE role = 'sft' ORDER BY id DESC LIMIT 1").fetchone()
    assert model is not None
    points = [{"points": 400}]
    learned = {"model": str(model[0]), "data": DATASET}
    return [
        Ask("run_metrics", [f"runs/{run}/metrics" for run in others], points),
        Ask("run_metrics_long", [f"runs/{long}/metrics"], points),
        *(Ask(f"compare_{place}", [f"runs/{run}/metrics"], points) for place, run in enumerate(compared, 1)),
        Ask(
            "reward_histogram",
            [f"datasets/{DATASET}/rewards/pinned/histogram"],
            [{"bins": bins} for bins in (20, 40, 100)],
        ),
        Ask("statistics", [f"datasets/{DATASET}/statistics"]),
        Ask("statistics_small", [f"datasets/{SEED_DATASET}/statistics"]),
        Ask(
            "preview_mle_filter",
            ["previews/mle-filter"],
            bodies=[{"data": DATASET, "threshold": threshold} for threshold in (-1.0, 0.0, 0.5, 1.5)],
        ),
        Ask("preview_rwr", ["previews/rwr"], bodies=[{"data": DATASET, "beta": beta} for beta in (0.5, 1.0, 5.0)]),
        Ask("pipeline", pipelines),
        Ask("pipeline_report", [f"{pipeline}/report" for pipeline in pipelines]),
        Ask(
            "estimate",
            ["runs/estimate"],
            bodies=[
                {"config": {"run": "train", "method": method}, "inputs": learned} for method in ("mle_filter", "rwr")
            ],
        ),
    ]
