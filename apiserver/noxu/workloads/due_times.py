"""When a schedule is due: the first time after another one, as github.com/robfig/cron/v3 finds it (spec.go, constantdelay.go).

A schedule is due at whole minutes of its zone. A time that the clocks skip in spring is not due on that day; one that comes
twice in autumn is due twice. A schedule that is not due within five years is never due.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from typing import Final, NamedTuple
from zoneinfo import ZoneInfo

from noxu.kinds.schedules import Schedule

YEARS: Final = 5
_SECOND: Final = 10**9  # nanoseconds
_MINUTE: Final = timedelta(minutes=1)
_DAY: Final = timedelta(days=1)


class DueTimes(NamedTuple):
    """A schedule in a zone."""

    schedule: Schedule
    zone: tzinfo = UTC

    def after(self, moment: datetime) -> datetime | None:
        """The first time that is later, in UTC; None: never."""
        if self.schedule.every:
            seconds = max(1, self.schedule.every // _SECOND)
            return moment.replace(microsecond=0) + timedelta(seconds=seconds)
        start = moment.replace(second=0, microsecond=0) + _MINUTE
        return next((due for day in self._days(start) if (due := self._within(day, start)) is not None), None)

    def _days(self, start: datetime) -> Iterator[date]:
        """The days that fit, in order."""
        day = start.astimezone(self.zone).date()
        last_year = day.year + YEARS
        while day.year <= last_year:
            if day.month not in self.schedule.months:
                day = (day.replace(day=1) + 31 * _DAY).replace(day=1)
                continue
            if self._fits(day):
                yield day
            day += _DAY

    def _fits(self, day: date) -> bool:
        in_month, in_week = day.day in self.schedule.days, day.isoweekday() % 7 in self.schedule.weekdays
        return (in_month and in_week) if self.schedule.is_any_day else (in_month or in_week)

    def _within(self, day: date, start: datetime) -> datetime | None:
        """The first time on a day, from `start` on."""
        moment = max(start, datetime.combine(day, time(), self.zone).astimezone(UTC))
        while True:
            local = moment.astimezone(self.zone)
            if local.date() != day:
                return None
            if local.hour not in self.schedule.hours:
                moment += (60 - local.minute) * _MINUTE
            elif local.minute in self.schedule.minutes:
                return moment
            else:
                moment += _MINUTE


def due_times(schedule: Schedule, zone: str = "") -> DueTimes:
    """`zone`: for a schedule that names none; "" is UTC."""
    name = schedule.zone or zone
    return DueTimes(schedule, UTC if name in ("", "UTC", "Local") else ZoneInfo(name))
