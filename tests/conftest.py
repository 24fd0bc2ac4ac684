"""What all tests share."""

import yaml  # noqa: F401 - pytester forgets what was imported inside it first, and PyYAML cannot be imported twice

pytest_plugins = ["pytester"]
