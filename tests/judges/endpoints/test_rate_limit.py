from __future__ import annotations

import threading

import pytest

from steerboard.registry.endpoints.rate_limit import Pace, backoff


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def sent_within(pace: Pace, clock: Clock, seconds: float) -> int:
    """Requests that a client sends as fast as it may."""
    end, sent = clock.now + seconds, 0
    while clock.now < end:
        rest = pace.take()
        if rest <= 0:
            sent += 1
        clock.now += max(rest, 1e-6)
    return sent


@pytest.mark.parametrize("rate", [1.0, 30.0, 600.0])
def test_no_more_requests_go_than_the_rate_allows(rate: float) -> None:
    clock = Clock()
    pace = Pace(rate, threading.Event(), clock)
    sent = sent_within(pace, clock, 600)
    assert rate * 10 <= sent <= rate * 10 + max(1.0, rate / 60) + 1


def test_a_rest_does_not_save_up_requests() -> None:
    clock = Clock()
    pace = Pace(60.0, threading.Event(), clock)
    clock.now += 3600
    assert sent_within(pace, clock, 0.5) == 1


def test_everybody_waits_when_the_endpoint_asked_for_it() -> None:
    clock = Clock()
    pace = Pace(None, threading.Event(), clock)
    assert pace.take() == 0
    pace.pause(5)
    pace.pause(2)
    assert pace.take() == pytest.approx(5)
    clock.now += 5
    assert pace.take() == 0


def test_waiting_ends_when_the_work_is_given_up() -> None:
    stopping = threading.Event()
    pace = Pace(None, stopping)
    pace.pause(3600)
    threading.Timer(0.05, stopping.set).start()
    assert not pace.wait()


def test_backoff_doubles_up_to_a_bound_and_is_drawn_from_all_of_it() -> None:
    assert [backoff(attempt, lambda: 1.0) for attempt in (1, 2, 3, 4)] == [0.5, 1.0, 2.0, 4.0]
    assert backoff(500, lambda: 1.0) == 30.0
    assert backoff(4, lambda: 0.0) == 0.0
    assert len({backoff(6) for _ in range(10)}) > 1
