"""Where time and randomness come from: handed in, so that tests decide."""

from __future__ import annotations

import random
import uuid
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Final, NamedTuple

_SUFFIX_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"  # upstream's: no vowels, no look-alikes
_SYSTEM: Final = random.SystemRandom()


class Sources(NamedTuple):
    now: Callable[[], datetime] = lambda: datetime.now(UTC)
    new_uid: Callable[[], str] = lambda: str(uuid.uuid4())
    new_suffix: Callable[[], str] = lambda: "".join(_SYSTEM.choices(_SUFFIX_ALPHABET, k=5))
