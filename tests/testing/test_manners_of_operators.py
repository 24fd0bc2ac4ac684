"""A real operator is polite, and does the same work with the least roles."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from noxu import Noxu
from noxu.testing.handle import MakeNoxu
from tests.testing.widgets import DEFINITION, widget
from tests.timing import HANGS_AFTER, eventually

kopf = pytest.importorskip("kopf", reason="package: kopf")
pytestmark = [pytest.mark.noxu(DEFINITION), pytest.mark.slow]
WIDGETS = 10


@contextlib.contextmanager
def operator() -> Iterator[None]:
    """An operator that labels each widget, with the kubeconfig of the environment."""
    registry = kopf.OperatorRegistry()
    kopf.on.login(registry=registry)(kopf.login_with_kubeconfig)

    def label(patch: Any, **_: object) -> None:
        patch.metadata.labels["seen"] = "true"

    kopf.on.create("example.com", "v1", "widgets", registry=registry)(label)
    stop, ready = threading.Event(), threading.Event()

    def run() -> None:
        asyncio.run(
            kopf.operator(registry=registry, clusterwide=True, standalone=True, stop_flag=stop, ready_flag=ready)
        )

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    assert ready.wait(HANGS_AFTER)
    try:
        yield
    finally:
        stop.set()
        thread.join()


def all_seen(noxu: Noxu) -> bool:
    widgets = noxu.list("widgets", namespace="default")
    return len(widgets) == WIDGETS and all(
        each["metadata"].get("labels", {}).get("seen") == "true"
        and "kopf.zalando.org/last-handled-configuration" in each["metadata"].get("annotations", {})
        for each in widgets
    )


def test_an_operator_is_polite_and_works_with_its_least_roles(
    noxu: Noxu, make_noxu: MakeNoxu, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(noxu.kubeconfig))
    with operator():
        for n in range(WIDGETS):
            noxu.create(widget(f"w-{n}"))
        eventually(lambda: all_seen(noxu))
    noxu.report().assert_polite()

    guarded = make_noxu(manifests=DEFINITION, authorization_modes=["RBAC"])
    for role in noxu.rbac(client="kopf/", bind="operator"):
        guarded.apply(role)
    monkeypatch.setenv("KUBECONFIG", str(guarded.user("operator").kubeconfig))
    with operator():
        for n in range(WIDGETS):
            guarded.create(widget(f"w-{n}"))
        eventually(lambda: all_seen(guarded))
    assert [str(request) for request in guarded.requests(code=403)] == []
