"""Random identifiers: uids, audit ids, the suffixes of generated names. They are arguments, so that tests can set them."""

from __future__ import annotations

import os
import random
import struct
from collections import deque
from collections.abc import Callable
from typing import Final, NamedTuple

_SUFFIX_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"  # upstream's: no vowels, no look-alikes
_SYSTEM: Final = random.SystemRandom()


_READ_AT_ONCE: Final = 64  # UUIDs, whose random digits are read from the system together
_RANDOM: Final = int("ffffffffffff0fff3fffffffffffffff" * _READ_AT_ONCE, 16)  # the bits that are random
_VERSION_4: Final = int("00000000000040008000000000000000" * _READ_AT_ONCE, 16)
_GROUPS: Final = struct.Struct("8s4s4s4s12s")  # of digits, between which a UUID has hyphens
_unused: Final[deque[str]] = deque()  # those that are still to come; every thread may take one
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_unused.clear)  # a child would return the same ones


def new_uuid() -> str:
    """A random UUID (version 4). Eight times as fast as `str(uuid.uuid4())`, which makes an object first.

    `os.urandom` releases the interpreter's lock, and returns when another thread gives it back: rarely, therefore. The digits
    of all are split together: a request that does nothing takes 7 % less than with one at a time (`benchmarks.http`, `floor`).
    """
    try:
        return _unused.pop()
    except IndexError:
        bits = int.from_bytes(os.urandom(16 * _READ_AT_ONCE), "big") & _RANDOM | _VERSION_4
        digits = bits.to_bytes(16 * _READ_AT_ONCE, "big").hex().encode()
        first, *others = [b"-".join(groups).decode() for groups in _GROUPS.iter_unpack(digits)]
        _unused.extend(others)
        return first


def _uuid(digits: str) -> str:
    """A UUID of version 4 from 32 hexadecimal digits."""
    variant = "89ab"[int(digits[16], 16) & 3]
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"


def new_suffix() -> str:
    """What generateName appends: five characters (upstream's names.SimpleNameGenerator)."""
    return "".join(_SYSTEM.choices(_SUFFIX_ALPHABET, k=5))


_FNV_OFFSET, _FNV_PRIME = 0x811C9DC5, 0x01000193


def hashed(data: bytes) -> str:
    """FNV-1 of 32 bits as the names of ReplicaSets have it: its decimal digits in the alphabet of suffixes (rand.SafeEncodeString)."""
    code = _FNV_OFFSET
    for byte in data:
        code = (code * _FNV_PRIME & 0xFFFFFFFF) ^ byte
    return "".join(_SUFFIX_ALPHABET[ord(digit) % len(_SUFFIX_ALPHABET)] for digit in str(code))


class Identifiers(NamedTuple):
    """Where identifiers of objects come from."""

    new_uid: Callable[[], str] = new_uuid
    new_suffix: Callable[[], str] = new_suffix


SYSTEM_IDENTIFIERS: Final = Identifiers()


def seeded(seed: int) -> Identifiers:
    """Identifiers that repeat from run to run, if the same objects are created in the same order."""
    chance = random.Random(seed)  # noqa: S311 - that they can be foretold is what they are for

    def uid() -> str:
        return _uuid(f"{chance.getrandbits(128):032x}")

    return Identifiers(uid, lambda: "".join(chance.choices(_SUFFIX_ALPHABET, k=5)))
