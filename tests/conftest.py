"""Plugins and Hypothesis profiles of all tests.

Properties are tested with different examples in every run, with more of them if HYPOTHESIS_PROFILE=nightly, and with the
same ones every time if HYPOTHESIS_PROFILE=gate, so that the gate fails only because of a change.
"""

import os

import yaml  # noqa: F401 - pytester forgets what was imported inside it first, and PyYAML cannot be imported twice
from hypothesis import HealthCheck, settings

pytest_plugins = ["pytester", "tests.quick", "tests.skip_summary"]

# Neither running an example nor generating it has a deadline: the machine may be busy.
TIMELESS = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("everyday", TIMELESS, max_examples=150)
settings.register_profile("nightly", TIMELESS, max_examples=5000)
settings.register_profile("gate", TIMELESS, max_examples=150, derandomize=True)
settings.register_profile("quick", TIMELESS, max_examples=10, derandomize=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "everyday"))
