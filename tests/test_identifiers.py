"""Random identifiers are UUIDs, different in each thread and in each process; a hash is that of its data."""

from __future__ import annotations

import os
import subprocess
import sys
import uuid
from concurrent.futures import ThreadPoolExecutor

import pytest

from noxu import identifiers


def test_uuids_are_random_ones() -> None:
    found = [uuid.UUID(identifiers.new_uuid()) for _ in range(200)]
    assert {(each.version, each.variant) for each in found} == {(4, uuid.RFC_4122)}
    assert len(set(found)) == len(found)


def test_threads_do_not_share_a_uuid() -> None:
    with ThreadPoolExecutor(4) as threads:
        parts = list(threads.map(lambda _: [identifiers.new_uuid() for _ in range(500)], range(4)))
    assert len({each for part in parts for each in part}) == 2000


def test_random_digits_are_read_for_many_uuids_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[int] = []
    urandom = os.urandom

    def counted(size: int) -> bytes:
        read.append(size)
        return urandom(size)

    monkeypatch.setattr(os, "urandom", counted)
    for _ in range(640):
        identifiers.new_uuid()
    assert len(read) == 10


COPIED = """
import os
from noxu.identifiers import new_uuid
new_uuid()  # others are prepared
child = os.fork()
if child:
    os.waitpid(child, 0)
print(new_uuid(), flush=True)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="a process cannot be copied here")
def test_a_copy_of_the_process_makes_its_own_uuids() -> None:
    printed = subprocess.run([sys.executable, "-c", COPIED], check=True, capture_output=True, text=True).stdout.split()
    assert len(set(printed)) == 2


@pytest.mark.parametrize(("data", "decimal"), [(b"", "2166136261"), (b"a", "84696446"), (b"foobar", "837857890")])
def test_a_hash_is_fnv_1_in_the_alphabet_of_suffixes(data: bytes, decimal: str) -> None:
    alphabet = "bcdfghjklmnpqrstvwxz2456789"
    assert identifiers.hashed(data) == "".join(alphabet[ord(digit) % 27] for digit in decimal)
