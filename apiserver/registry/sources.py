"""Where time and randomness come from: handed in, so that tests decide."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final, NamedTuple

_SUFFIX_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"  # upstream's: no vowels, no look-alikes
_SYSTEM: Final = random.SystemRandom()


def new_uuid() -> str:
    """A random UUID. The standard library makes an object first, which takes three times as long."""
    digits = os.urandom(16).hex()
    variant = "89ab"[int(digits[16], 16) & 3]
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"


class Sources(NamedTuple):
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    new_uid: Callable[[], str] = new_uuid
    new_suffix: Callable[[], str] = lambda: "".join(_SYSTEM.choices(_SUFFIX_ALPHABET, k=5))
