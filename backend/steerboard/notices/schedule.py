"""When a notice may go out: quiet hours, and digests."""

from __future__ import annotations

import datetime as dt
import zoneinfo
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field, field_validator, model_validator

Digest = Literal["each", "hourly", "daily"]


class Schedule(BaseModel):
    """`digest`: one message for each event, or one an hour or a day with all events since the last. From `quiet_from`
    to `quiet_until` nothing is sent; what happens meanwhile is sent afterwards. Times are those of `time_zone`."""

    model_config = ConfigDict(extra="forbid")

    digest: Digest = "each"
    digest_at: dt.time = Field(default=dt.time(9), description="When the daily digest is sent.")
    quiet_from: dt.time | None = None
    quiet_until: dt.time | None = None
    time_zone: str = Field(default="UTC", description="An IANA name, such as Europe/Berlin.")

    @field_validator("digest_at", "quiet_from", "quiet_until")
    @classmethod
    def _without_zone(cls, value: dt.time | None) -> dt.time | None:
        if value is not None and value.tzinfo is not None:
            raise ValueError("give the time alone, such as 22:00; its zone is `time_zone`")
        return value

    @field_validator("time_zone")
    @classmethod
    def _known_zone(cls, value: str) -> str:
        if value not in zoneinfo.available_timezones():
            raise ValueError(f"{value[:60]!r} is no time zone; they are named like Europe/Berlin")
        return value

    @model_validator(mode="after")
    def _hours(self) -> Schedule:
        if (self.quiet_from is None) != (self.quiet_until is None):
            raise ValueError("give both `quiet_from` and `quiet_until`, or neither")
        if self.quiet_from is not None and self.quiet_from == self.quiet_until:
            raise ValueError("`quiet_from` and `quiet_until` are the same time, so nothing could ever be sent")
        return self

    @property
    def is_plain(self) -> bool:
        """Whether everything goes out at once."""
        return self.digest == "each" and self.quiet_from is None

    def earliest(self, now: dt.datetime) -> dt.datetime:
        """When what happens `now` goes out."""
        local = now.astimezone(zoneinfo.ZoneInfo(self.time_zone))
        if self.digest == "hourly":
            local = local.replace(minute=0, second=0, microsecond=0) + dt.timedelta(hours=1)
        elif self.digest == "daily":
            local = _next(local, self.digest_at)
        if self.quiet_from is not None and self.quiet_until is not None and self._is_quiet(local.time()):
            local = _next(local, self.quiet_until)
        return local.astimezone(dt.UTC)

    def _is_quiet(self, time: dt.time) -> bool:
        begin, end = self.quiet_from, self.quiet_until
        if begin is None or end is None:
            return False
        return begin <= time < end if begin < end else time >= begin or time < end


def _next(local: dt.datetime, time: dt.time) -> dt.datetime:
    """The next moment at which clocks show `time`."""
    then = local.replace(hour=time.hour, minute=time.minute, second=time.second, microsecond=0)
    return then if then > local else then + dt.timedelta(days=1)
