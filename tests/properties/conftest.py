"""Laws are tried on some examples in every run, and on many with HYPOTHESIS_PROFILE=nightly."""

from __future__ import annotations

import os

from hypothesis import settings

settings.register_profile("everyday", deadline=None, max_examples=150)
settings.register_profile("nightly", deadline=None, max_examples=5000)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "everyday"))
