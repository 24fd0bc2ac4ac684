"""Off means off: a server without nodes imports nothing of workloads, and reads no collection for them."""

from __future__ import annotations

import json
import subprocess
import sys

READ = """
import asyncio, json, sys
from noxu.config import Config
from noxu.process.server import Server

async def main():
    async with Server(Config(port=0)) as server:
        imported = [name for name in sys.modules if name.startswith("noxu.workloads") or name.startswith("noxu.http.simulated")]
        print(json.dumps([imported, sorted(server.plane.cache.collections), sorted(c.name for c in server.plane.all_controllers)]))

asyncio.run(main())
"""
ONLY_OF_WORKLOADS = {
    "/endpoints",
    "/nodes",
    "/replicationcontrollers",
    "apps/daemonsets",
    "apps/deployments",
    "apps/replicasets",
    "apps/statefulsets",
    "batch/cronjobs",
    "batch/jobs",
    "coordination.k8s.io/leases",
    "discovery.k8s.io/endpointslices",
    "policy/poddisruptionbudgets",
}


def test_a_server_without_nodes_knows_nothing_of_them() -> None:
    ran = subprocess.run([sys.executable, "-c", READ], capture_output=True, text=True, check=True, timeout=60)
    imported, collections, controllers = json.loads(ran.stdout)
    assert imported == []
    assert ONLY_OF_WORKLOADS.intersection(collections) == set()
    assert not {"deployment-controller", "kubelet", "workload-informer"}.intersection(controllers)
