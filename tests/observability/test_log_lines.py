"""One JSON object a line, whatever is logged, with what the thread or task is busy with."""

from __future__ import annotations

import io
import json
import logging
import threading
from collections.abc import Iterator
from contextvars import copy_context
from typing import Any

import pytest

from steerboard.platform.telemetry import logs


@pytest.fixture
def written() -> Iterator[io.StringIO]:
    out = io.StringIO()
    handler = logging.StreamHandler(out)
    handler.setFormatter(logs.JsonLines())
    LOG.addHandler(handler)
    yield out
    LOG.removeHandler(handler)


# A logger outside the tree of loggers: what is not valid Unicode must not reach the test run's own log, which cannot
# carry it.
LOG = logging.Logger("steerboard.test-lines")


def lines(out: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in out.getvalue().splitlines()]


def test_a_line_says_when_what_and_what_it_is_about(written: io.StringIO) -> None:
    with logs.bound(run_id="r1", attempt=2):
        LOG.info("loss %.1f", 0.5, extra=logs.fields(step=7))
    (line,) = lines(written)
    assert line.pop("time").endswith("+00:00")
    assert line == {
        "level": "INFO",
        "logger": "steerboard.test-lines",
        "message": "loss 0.5",
        "run_id": "r1",
        "attempt": 2,
        "step": 7,
    }


def test_what_is_bound_ends_with_its_block_also_by_an_error(written: io.StringIO) -> None:
    def fail() -> None:
        with logs.bound(run_id="r1"), logs.bound(attempt=1):
            LOG.info("both")
            raise ValueError("inside")

    with pytest.raises(ValueError, match="inside"):
        fail()
    LOG.info("none")
    both, none = lines(written)
    assert (both["run_id"], both["attempt"]) == ("r1", 1)
    assert not {"run_id", "attempt"} & set(none)


def test_a_thread_is_about_what_it_was_started_for_and_others_are_not(written: io.StringIO) -> None:
    with logs.bound(run_id="r1"):
        threads = [
            threading.Thread(target=copy_context().run, args=(LOG.info, "mine")),
            threading.Thread(target=LOG.info, args=("foreign",)),
        ]
        for thread in threads:
            thread.start()
            thread.join()
    mine, foreign = lines(written)
    assert mine["run_id"] == "r1"
    assert "run_id" not in foreign


def test_tracebacks_line_ends_and_text_that_is_no_unicode_stay_on_one_line(written: io.StringIO) -> None:
    try:
        raise RuntimeError("first\nsecond")
    except RuntimeError:
        LOG.exception("a name\nin two lines, and \ud800")
    (line,) = lines(written)
    assert line["message"] == "a name\nin two lines, and ?"
    assert "RuntimeError: first\nsecond" in line["exception"]
