"""Random identifiers: uids, audit ids, the suffixes of generated names. They are arguments, so that tests can set them."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from typing import Final, NamedTuple

_SUFFIX_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"  # upstream's: no vowels, no look-alikes
_SYSTEM: Final = random.SystemRandom()


def new_uuid() -> str:
    """A random UUID (version 4). Three times as fast as `str(uuid.uuid4())`, which makes an object first."""
    digits = os.urandom(16).hex()
    variant = "89ab"[int(digits[16], 16) & 3]
    return f"{digits[:8]}-{digits[8:12]}-4{digits[13:16]}-{variant}{digits[17:20]}-{digits[20:]}"


def new_suffix() -> str:
    """What generateName appends: five characters (upstream's names.SimpleNameGenerator)."""
    return "".join(_SYSTEM.choices(_SUFFIX_ALPHABET, k=5))


class Identifiers(NamedTuple):
    """Where identifiers of objects come from."""

    new_uid: Callable[[], str] = new_uuid
    new_suffix: Callable[[], str] = new_suffix


SYSTEM_IDENTIFIERS: Final = Identifiers()
