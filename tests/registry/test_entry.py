"""Keys of objects, and the names in paths that have none."""

from __future__ import annotations

import pytest

from noxu.apiserver.api.errors import ApiError
from noxu.apiserver.registry.entry import check_path_name

NAMES: list[tuple[str, str | None]] = [
    ("a", None),
    ("No Name", None),
    (".", """Name parameter invalid: ".": may not be '.'"""),
    ("..", """Name parameter invalid: "..": may not be '..'"""),
    ("a%", """Name parameter invalid: "a%": may not contain '%'"""),
    ("a/b", """Name parameter invalid: "a/b": may not contain '/'"""),
    ("/%", """Name parameter invalid: "/%": may not contain '/';may not contain '%'"""),
]


@pytest.mark.parametrize(("name", "message"), NAMES)
def test_the_name_in_a_path(name: str, message: str | None) -> None:
    if message is None:
        check_path_name(name)
        return
    with pytest.raises(ApiError) as caught:
        check_path_name(name)
    assert (caught.value.code, caught.value.message) == (400, message)
