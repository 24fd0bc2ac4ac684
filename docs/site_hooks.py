"""What ./site changes in the pages, so that they can be read on a code host, too.

Some pages are outside of docs/ (`PAGES`): the site has them beside the others. Links to them, and from them, follow:

    docs/architecture.md   [CONTRIBUTING.md](../CONTRIBUTING.md)         →  [CONTRIBUTING.md](CONTRIBUTING.md)
    CHANGELOG.md           [docs/api.md](docs/api.md)                    →  [docs/api.md](api.md)

The name of a file, which tests read, is a title in the site:

    ```yaml file=crd.yaml                                                →  ```yaml title="crd.yaml"

A link to anything else outside of docs/ (`../conformance/recordings`) becomes its text: the site does not have the target.
ProperDocs calls the functions by their names.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).parents[1]
PAGES: Final = ("CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
_LINK: Final = re.compile(r"\[([^\]]+)\]\(([^)\s:#]+)(#[^)\s]*)?\)")
_NAMED: Final = re.compile(r"^(```\w+) file=(\S+)$", re.MULTILINE)


def moved(text: str, page: str) -> str:
    """The text of a page with the links of the site. `page` is its path in the site: `decisions/6-etcd.md`."""
    folder = posixpath.dirname("" if page in PAGES else f"docs/{page}")

    def link(match: re.Match[str]) -> str:
        shown, target, anchor = match[1], match[2], match[3] or ""
        path = posixpath.normpath(posixpath.join(folder, target))
        if path in PAGES or path.startswith("docs/"):
            target = posixpath.relpath(path.removeprefix("docs/"), posixpath.dirname(page) or ".")
            return f"[{shown}]({target}{anchor})"
        return shown

    return _LINK.sub(link, text)


def titled(text: str) -> str:
    """The text of a page whose blocks have the names of their files as titles."""
    return _NAMED.sub(r'\1 title="\2"', text)


def on_files(files: Any, *, config: Any) -> Any:
    """Add the pages that are outside of docs/."""
    from properdocs.structure.files import File

    for name in PAGES:
        files.append(File.generated(config, name, content=(ROOT / name).read_text()))
    return files


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    return titled(moved(markdown, page.file.src_uri))
