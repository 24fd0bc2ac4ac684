"""Pods with metrics, for tables about autoscaling."""

from __future__ import annotations

from datetime import timedelta

from noxu.go.time import format_time
from noxu.values import Object
from tests.workloads.plays import NOW

LONG_AGO = 24 * 3600
JUST_NOW = 5


def measured_pod(
    name: str,
    used: int | None,
    requested: str = "1",
    *,
    ready: bool = True,
    phase: str = "Running",
    started: int = LONG_AGO,
    is_ending: bool = False,
    resource: str = "cpu",
) -> Object:
    """A pod that uses so many thousandths of a CPU (or bytes); None: it has no metric. `started`: seconds ago."""
    start = NOW - timedelta(seconds=started)
    changed = start if ready else start + timedelta(seconds=1)
    unit = "m" if resource == "cpu" else ""
    request = {"resources": {"requests": {resource: requested}}} if requested else {}
    state = {} if used is None or phase == "Pending" else {"running": {}}
    condition = {
        "type": "Ready",
        "status": "True" if ready else "False",
        "lastTransitionTime": format_time(changed),
    }
    return {
        "metadata": {
            "name": name,
            "namespace": "default",
            "labels": {"app": "web"},
            **({} if used is None else {"annotations": {f"noxu.dev/{resource}": f"{used}{unit}"}}),
            **({"deletionTimestamp": format_time(NOW)} if is_ending else {}),
        },
        "spec": {"containers": [{"name": "c", **request}]},
        "status": {
            "phase": phase,
            "startTime": format_time(start),
            "conditions": [condition],
            "containerStatuses": [{"name": "c", "state": state}],
        },
    }
