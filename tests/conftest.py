"""Plugins and Hypothesis profiles of all tests.

Properties are tested with different examples in every run, with more of them if HYPOTHESIS_PROFILE=nightly, and with the
same ones every time if HYPOTHESIS_PROFILE=gate, so that the gate fails only because of a change.
"""

import logging
import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests import etcd_server, optional
from tests.etcd_server import EtcdServer

pytest_plugins = [
    "pytester",
    "tests.cheap_collection",
    "tests.imported_once",
    "tests.quick",
    "tests.rows",
    "tests.skip_summary",
    "tests.unchanged",
]

# Neither running an example nor generating it has a deadline: the machine may be busy.
TIMELESS = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("everyday", TIMELESS, max_examples=150)
settings.register_profile("nightly", TIMELESS, max_examples=5000)
settings.register_profile("gate", TIMELESS, max_examples=150, derandomize=True)
settings.register_profile("quick", TIMELESS, max_examples=10, derandomize=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "everyday"))

# What tests start finds the programs of this environment too, whether or not it is activated.
os.environ["PATH"] = optional.search_path()


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers() -> int | None:
    """Three workers for two processors: a third of the time, a test waits for a timer, a disk or another process."""
    processors = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return None if os.environ.get("PYTEST_XDIST_AUTO_NUM_WORKERS") else processors + processors // 2


@pytest.fixture(autouse=True)
def _log_as_before() -> Iterator[None]:
    """Remove the handlers of servers that ran in this process: pytest closes what they write to after the test."""
    root = logging.getLogger()
    before = root.handlers[:]
    yield
    for handler in root.handlers[:]:
        if type(handler) is logging.StreamHandler and handler not in before:
            root.removeHandler(handler)


@pytest.fixture(scope="session")
def etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdServer]:
    """One etcd for all tests of a process. Each test has a prefix of its own."""
    if reason := etcd_server.lacking():
        pytest.skip(reason)
    with etcd_server.running_etcd(tmp_path_factory.mktemp("etcd")) as server:
        yield server
