"""What all tests share.

Laws are tried on other examples in every run; on many with HYPOTHESIS_PROFILE=nightly, and always on the same ones with
HYPOTHESIS_PROFILE=gate, so that a change is judged by what it changes.
"""

import os

import yaml  # noqa: F401 - pytester forgets what was imported inside it first, and PyYAML cannot be imported twice
from hypothesis import settings

pytest_plugins = ["pytester"]

settings.register_profile("everyday", deadline=None, max_examples=150)
settings.register_profile("nightly", deadline=None, max_examples=5000)
settings.register_profile("gate", deadline=None, max_examples=150, derandomize=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "everyday"))
