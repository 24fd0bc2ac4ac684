"""The answer of a handler: plain data, which `sending` sends."""

from __future__ import annotations

from collections.abc import AsyncIterable, Callable
from dataclasses import dataclass
from typing import Final

from noxu.http.clients import Part

JSON: Final = "application/json"
TEXT: Final = "text/plain; charset=utf-8"

Headers = tuple[tuple[str, str], ...]
NOT_CACHED: Final[Headers] = (("Cache-Control", "no-cache, private"),)
_OF_TEXT: Final[Headers] = (*NOT_CACHED, ("X-Content-Type-Options", "nosniff"))


@dataclass(slots=True)
class Answer:
    """`body` is the whole body, or its parts, or an iterator that makes its chunks while they are sent.

    `content_type` is "" if there is no body. `compress` makes the body with gzip, in a thread; None: as of any body.
    """

    body: bytes | tuple[Part, ...] | AsyncIterable[bytes]  # bytes that other answers may share: they do not change
    status: int = 200
    content_type: str = JSON
    headers: Headers = NOT_CACHED
    compress: Callable[[], bytes] | None = None


class Answered(Exception):
    """A filter has the answer: later filters and the handler are not asked."""

    def __init__(self, answer: Answer) -> None:
        super().__init__()  # without arguments: the body would be part of its text
        self.answer = answer


def text_answer(text: str, status: int = 200, headers: Headers = ()) -> Answer:
    """Go's http.Error and the health checks: plain text whose type browsers do not guess."""
    return Answer(text.encode(), status, TEXT, (*_OF_TEXT, *headers) if headers else _OF_TEXT)
