"""A server that gets random requests; a 500 because of a bug of ours, or a traceback in the log, is a failure."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from noxu import ApiError, UnknownKind
from noxu.testing.handle import Noxu
from tests.hostile.raw_http import Target, custom_resource, split_answers, status_of
from tests.hostile.requests import DEFINITIONS, Request

BUGS: Final = (b"this is a bug in the server", b"Server got itself in trouble")  # ours, aiohttp's
RENEWED_EVERY: Final = 200  # requests: then definitions that were deleted exist again, and admission is as at first
_ADMISSION: Final = "/apis/admissionregistration.k8s.io/v1"
_CONFIGURATIONS: Final = (
    "validatingwebhookconfigurations", "mutatingwebhookconfigurations", "validatingadmissionpolicies",
    "validatingadmissionpolicybindings", "mutatingadmissionpolicies", "mutatingadmissionpolicybindings",
)  # fmt: skip


class _Records(logging.Handler):
    """Keeps the records of bugs: those with a traceback, and errors of the event loop."""

    def __init__(self) -> None:
        super().__init__(logging.ERROR)
        self.found: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info or record.name in ("asyncio", "aiohttp.server"):
            self.found.append(record)


class Fuzzed:
    """`sent` counts requests, `codes` their answers; the code 0 is a connection that closed without an answer."""

    def __init__(self, noxu: Noxu, records: _Records) -> None:
        self._noxu = noxu
        self._records = records
        self._target = Target(noxu.url)
        self.sent = 0
        self.codes: dict[int, int] = {}

    def send(self, request: Request) -> int:
        """Send a request on a connection of its own, and return the code of the answer. Raises AssertionError for a bug."""
        if self.sent % RENEWED_EVERY == 0:
            self._renew()
        self.sent += 1
        answer = self._exchange(request.encode())
        code = status_of(answer)
        self.codes[code] = self.codes.get(code, 0) + 1
        logged = [logging.Formatter().format(record) for record in self._records.found]
        self._records.found.clear()
        is_bug = logged or [text for text in BUGS if text in answer]
        assert not is_bug, "\n".join([str(request), repr(answer), *logged])
        return code

    def _exchange(self, data: bytes) -> bytes:
        """The answer; of one in chunks, such as a watch, which may last for hours, the first bytes."""
        received = b""
        with self._target.connect() as connection, suppress(ConnectionError):
            connection.sendall(data)
            while piece := connection.recv(65536):
                received += piece
                head, end, _ = received.partition(b"\r\n\r\n")
                is_endless = b"transfer-encoding: chunked" in head.lower() or head.startswith(b"HTTP/1.1 101")
                if end and (is_endless or data.startswith(b"HEAD ") or split_answers(received)):
                    break
        return received

    def _renew(self) -> None:
        for plural in _CONFIGURATIONS:
            self._target.send("DELETE", f"{_ADMISSION}/{plural}")
        with warnings.catch_warnings():  # about what is deprecated, and fields that another schema prunes
            warnings.simplefilter("ignore")
            self._noxu.apply(*DEFINITIONS)
            for stored in (custom_resource("Drop", "a", {"replicas": 1}), custom_resource("Lake", "a")):
                with suppress(
                    ApiError, UnknownKind
                ):  # requests may have changed the schema, or deleted it only in part
                    self._noxu.apply(stored)


@contextmanager
def fuzzed_server(directory: Path, *, cbor: bool = False) -> Iterator[Fuzzed]:
    """A server in this process, with or without CBOR. Its log is observed."""
    records = _Records()
    logging.getLogger().addHandler(records)
    try:
        with Noxu(directory, DEFINITIONS, gates={"CBORServingAndStorage": cbor}) as noxu:
            yield Fuzzed(noxu, records)
    finally:
        logging.getLogger().removeHandler(records)
