"""Where the objects of a test come from."""

from __future__ import annotations

import textwrap

from noxu.api.codec import Decoded
from noxu.manifests import documents as manifests
from noxu.manifests import loading
from noxu.manifests.documents import Document
from noxu.testing.source_paths import Source as Source
from noxu.testing.source_paths import path_of


def documents(*sources: Source) -> list[Document]:
    """The objects of sources, in the order in which they have to be created. Raises LoadError, TypeError."""
    found: list[Document] = []
    for source in sources:
        if isinstance(source, dict):
            found += manifests.flatten(Decoded(source), "object")
        elif (path := path_of(source)) is not None:
            found += manifests.read_paths([path])
        else:
            found += manifests.read(textwrap.dedent(str(source)).encode(), "text")
    return loading.ready(manifests.checked(found))
