"""The sources of the objects of a test: files, directories, texts, objects.

Pytest checks which of them are files before it imports the server, so their readers are imported later.
"""

from __future__ import annotations

import os
import textwrap
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from noxu.manifests.documents import Document, Read

Source: TypeAlias = str | os.PathLike[str] | dict[str, Any]
"""A file or directory of manifests, a text that contains manifests (it may be indented), or an object."""


def several(source: Source | Iterable[Source]) -> tuple[Source, ...]:
    """Sources, of which one may be given by itself."""
    return (source,) if isinstance(source, (dict, str, os.PathLike)) else tuple(source)


def names(listed: str | Iterable[str]) -> tuple[str, ...]:
    """Names, of which one may be given by itself."""
    return (listed,) if isinstance(listed, str) else tuple(listed)


def path_of(source: object) -> Path | None:
    """The path of a source that is a file or a directory; None for an object, and for a text, which has several lines.

    Raises TypeError for what is no source.
    """
    __tracebackhide__ = True
    if not isinstance(source, (dict, str, os.PathLike)):
        kind = f"a {type(source).__name__}"
        advice = ": give its items" if isinstance(source, (list, tuple, set)) else ""
        raise TypeError(f"a source is a dict, a path, or a text with manifests, and not {kind}{advice}")
    if isinstance(source, dict) or (isinstance(source, str) and "\n" in source):
        return None
    return Path(source)


def documents(*sources: Source, read: Read | None = None) -> list[Document]:
    """The objects of sources, in the order in which they have to be created. Raises LoadError, TypeError.

    `read` reads the text of a file, None: as `documents.contents_of`.
    """
    from noxu.api.codec import Decoded
    from noxu.manifests import documents as manifests
    from noxu.manifests import loading

    loaded: list[Document] = []
    for source in sources:
        if isinstance(source, dict):
            loaded += manifests.flatten(Decoded(source), "object")
        elif (path := path_of(source)) is not None:
            loaded += manifests.read_paths([path], read or manifests.contents_of)
        else:
            loaded += manifests.read(text_of(source), "text")
    return loading.ready(manifests.checked(loaded))


def text_of(source: object) -> bytes:
    """A source that is a text, without its indentation."""
    return textwrap.dedent(str(source)).encode()


uses_cache = True
"""Whether what is made of sources may be kept in the user's cache, for later processes. The plugin of pytest sets it."""
