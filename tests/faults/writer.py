"""A store under load, for test_kill.py to kill: eight writers, and one line of output for every acknowledged write.

    python writer.py FILE SEED

Output: `ready REVISION`, then lines `REVISION EXPECTED NAME VALUE`; the value of a delete is `-`. Compaction runs
concurrently.
"""

from __future__ import annotations

import asyncio
import os
import sys
from random import Random

from noxu_storage.sqlite import SqliteStore
from noxu_storage.types import Conflict, Key, KeyValue

WRITERS = 8
KEPT = 300  # revisions of history that compaction keeps


def key(name: str) -> Key:
    return Key("g/things", "p/", name)


def report(*words: object) -> None:
    os.write(
        1, f"{' '.join(map(str, words))}\n".encode()
    )  # one system call: a line is written completely or not at all


async def change(store: SqliteStore, name: str, current: KeyValue | None, random: Random) -> None:
    expected = current.revision if current else 0
    if current is not None and random.random() < 0.3:
        report(await store.delete(key(name), expected=expected), expected, name, "-")
    else:
        value = f"{random.getrandbits(64):x}" * random.choice([1, 20, 200])
        report(await store.put(key(name), value.encode(), expected=expected), expected, name, value)


async def write(store: SqliteStore, writer: int, random: Random) -> None:
    while True:
        name = random.choice(["shared", *(f"{writer}-{number}" for number in range(5))])
        try:
            await change(store, name, await store.get(key(name)), random)
        except Conflict:
            assert name == "shared"


async def compact(store: SqliteStore) -> None:
    while True:
        await store.compact(max(store.revision - KEPT, 0))
        await asyncio.sleep(0.01)


async def main(file: str, seed: int) -> None:
    store = await SqliteStore.open(file)
    report("ready", store.revision)
    await asyncio.gather(
        *(write(store, each, Random(seed * WRITERS + each)) for each in range(WRITERS)), compact(store)
    )


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
