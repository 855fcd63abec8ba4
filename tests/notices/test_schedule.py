"""The time at which what happens now goes out."""

from __future__ import annotations

import datetime as dt
from typing import Any

import pytest

from steerboard.notices.schedule import Schedule


@pytest.mark.parametrize(
    ("schedule", "now", "then"),
    [
        ({}, "2026-05-04T10:11:12", "2026-05-04T10:11:12"),
        ({"digest": "hourly"}, "2026-05-04T10:11:12", "2026-05-04T11:00:00"),
        ({"digest": "hourly"}, "2026-05-04T23:00:00", "2026-05-05T00:00:00"),
        ({"digest": "daily", "digest_at": "09:00"}, "2026-05-04T08:59:59", "2026-05-04T09:00:00"),
        ({"digest": "daily", "digest_at": "09:00"}, "2026-05-04T09:00:00", "2026-05-05T09:00:00"),
        # Berlin is two hours ahead in summer, one in winter, and changes on 25 October 2026.
        ({"digest": "daily", "time_zone": "Europe/Berlin"}, "2026-05-04T06:00:00", "2026-05-04T07:00:00"),
        ({"digest": "daily", "time_zone": "Europe/Berlin"}, "2026-10-24T12:00:00", "2026-10-25T08:00:00"),
        ({"quiet_from": "22:00", "quiet_until": "07:00"}, "2026-05-04T21:59:00", "2026-05-04T21:59:00"),
        ({"quiet_from": "22:00", "quiet_until": "07:00"}, "2026-05-04T22:00:00", "2026-05-05T07:00:00"),
        ({"quiet_from": "22:00", "quiet_until": "07:00"}, "2026-05-04T03:00:00", "2026-05-04T07:00:00"),
        ({"quiet_from": "12:00", "quiet_until": "13:00"}, "2026-05-04T12:30:00", "2026-05-04T13:00:00"),
        ({"quiet_from": "12:00", "quiet_until": "13:00"}, "2026-05-04T13:00:00", "2026-05-04T13:00:00"),
        (
            {"digest": "hourly", "quiet_from": "22:00", "quiet_until": "07:30"},
            "2026-05-04T21:30:00",
            "2026-05-05T07:30:00",
        ),
    ],
)
def test_a_notice_waits_for_the_digest_and_for_the_end_of_quiet_hours(
    schedule: dict[str, Any], now: str, then: str
) -> None:
    at = Schedule.model_validate(schedule).earliest(dt.datetime.fromisoformat(f"{now}+00:00"))
    assert at == dt.datetime.fromisoformat(f"{then}+00:00")
