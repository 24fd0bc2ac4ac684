"""libyaml's own limit of nested collections, which is lifted when a document needs it.

libyaml 0.2.6, which PyYAML contains since 6.0.4, stops at 1000 levels; go-yaml stops at 10,000, and so does `yaml`. The limit
is a variable of the process, which PyYAML does not show, but libyaml has a function that sets it.
"""

from __future__ import annotations

from typing import Final

TOO_DEEP: Final = "exceeded maximum nesting depth"  # its error
_NONE: Final = 2**31 - 1


def lift_limit() -> bool:
    """Returns whether there was a limit that is gone now. PyYAML's wheels for Windows do not export the function."""
    try:
        import ctypes

        from yaml import _yaml

        libyaml = ctypes.CDLL(_yaml.__file__)
        lifted: bool = libyaml.yaml_get_max_nest_level() == _NONE
        libyaml.yaml_set_max_nest_level(_NONE)
    except (ImportError, AttributeError, OSError):
        return False
    return not lifted
