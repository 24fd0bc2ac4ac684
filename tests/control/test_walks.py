"""Whatever happens to a server between a snapshot and its restore, the laws of `walks` hold.

NOXU_RESTORED_STEPS is the number of steps of a long walk, which is taken in walks of 1000 with further seeds: for example 100000.
"""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from noxu.config import Config, Etcd
from tests.control.walks import walk
from tests.etcd_server import EtcdServer

STEPS = int(os.environ.get("NOXU_RESTORED_STEPS", "0"))
WALK = 1000


@pytest.fixture(params=["memory", "sqlite"])
def config(request: pytest.FixtureRequest, tmp_path: Path) -> Config:
    return Config(port=0) if request.param == "memory" else Config(port=0, data=tmp_path, durability="off")


@pytest.mark.slow(every=6)
@pytest.mark.parametrize("seed", [1, 2, 3])
async def test_a_walk_keeps_the_laws(config: Config, seed: int) -> None:
    walked = await walk(config, seed, 250)
    assert walked.restores > 10


@pytest.mark.slow
async def test_a_walk_on_etcd_keeps_the_laws(etcd: EtcdServer) -> None:
    await walk(Config(port=0, etcd=Etcd((etcd.url,), "/walks")), 2, 60)


@pytest.mark.slow
@pytest.mark.skipif(not STEPS, reason="set NOXU_RESTORED_STEPS")
@pytest.mark.parametrize("seed", range(1000, 1000 + STEPS // WALK))
async def test_long_walks_keep_the_laws(seed: int, tmp_path: Path) -> None:
    in_memory = Config(port=0)
    await walk(in_memory if seed % 3 else Config(port=0, data=tmp_path, durability="off"), seed, WALK)
