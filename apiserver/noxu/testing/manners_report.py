"""The report about manners that a test gets: it prints itself, and fails the test."""

from __future__ import annotations

from noxu.control.manners.page import as_page
from noxu.control.manners.report import impolite
from noxu.control.manners.text import as_text
from noxu.control.manners_calls import report_of
from noxu.control.running import Running
from noxu.testing.errors import hidden
from noxu.values import Object

__tracebackhide__ = hidden


class MannersReport:
    """`value` is the report as `noxu.control.manners.report` describes it. `str()` of it is text for people."""

    def __init__(self, value: Object) -> None:
        self.value = value

    def __str__(self) -> str:
        return as_text(self.value)

    def to_html(self) -> str:
        """One page, which needs no script and no other file."""
        return as_page(self.value)

    def __repr__(self) -> str:
        return f"<report of {self.value['requests']} requests: {', '.join(self.habits) or 'no bad manners'}>"

    @property
    def habits(self) -> dict[str, int]:
        """How often each bad habit was seen, of all clients; those that were not are left out."""
        seen: dict[str, int] = {}
        for client in self.value["clients"]:
            for habit in client["habits"]:
                seen[habit["habit"]] = seen.get(habit["habit"], 0) + habit["count"]
        return seen

    def assert_polite(self, **thresholds: int | None) -> None:
        """Raise AssertionError if a client has a bad habit more often than it is tolerated: what to change, and the requests.

        `thresholds` are numbers per client for habits, by default those of the table in docs/manners.md; None: always
        tolerated. Raises ValueError for an unknown habit.
        """
        sentences = impolite(self.value, thresholds)
        if sentences:
            raise AssertionError("\n".join(["clients have bad manners:", *(f"- {each}" for each in sentences)]))


async def of_server(server: Running, client: str, since: str, after: int) -> MannersReport:
    """Raises ApiError, StoreError."""
    return MannersReport(await report_of(server, client=client, since=since, after=after))
