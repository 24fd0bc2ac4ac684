"""What is done with each flag of kube-apiserver, and the help about them."""

from __future__ import annotations

import re

from noxu.envtest.flags import HONOURED, IGNORED, REFUSED, help_text, kind_of


def has_flag(text: str, flag: str) -> bool:
    """How envtest looks for a flag in the help of a program."""
    return re.search(rf"(?m)^\s*--{flag}\b", text) is not None


def test_a_flag_is_in_one_table() -> None:
    assert not HONOURED.keys() & IGNORED.keys()
    assert not HONOURED.keys() & REFUSED.keys()
    assert not IGNORED.keys() & REFUSED.keys()


def test_the_help_has_every_flag_and_no_insecure_port() -> None:
    assert [name for name in (*HONOURED, *IGNORED) if not has_flag(help_text(), name)] == []
    assert not has_flag(help_text(), "insecure-port")


def test_only_flags_of_kube_apiserver_have_a_kind() -> None:
    assert kind_of("secure-port") == "int"
    assert kind_of("allow-privileged") == "bool"
    assert kind_of("insecure-port") == "string"
    assert kind_of("nope") is None
