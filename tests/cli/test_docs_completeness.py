"""What the documentation lists is complete: rooms, layers, filters and controllers, as the code has them."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Final

from noxu.config import Requests
from noxu.http.clients import Unsent
from noxu.http.filters import chain
from noxu.registry.access import ALLOWED, ANONYMOUS, User
from noxu.security.audit import AuditLog
from noxu.security.audit_policy import EVERYTHING
from noxu.security.credentials import Credentials
from tests.security.lines import Lines

ROOT: Final = Path(__file__).parents[2]
CONTRACTS: Final = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]["contracts"]


def layers(container: str) -> list[str]:
    """The layers of a package in the contract, top down."""
    [found] = [contract["layers"] for contract in CONTRACTS if contract.get("containers") == [container]]
    return list(found)


def rooms(container: str) -> list[str]:
    return [room for layer in layers(container) for room in layer.split(" | ")]


def section(document: str, heading: str) -> str:
    text = (ROOT / document).read_text()
    return text.split(f"\n## {heading}\n")[1].split("\n## ")[0]


def test_contributing_lists_every_room() -> None:
    first_column = "\n".join(re.findall(r"^\| (.*?) \|", section("CONTRIBUTING.md", "Where things are"), re.MULTILINE))
    listed = re.findall(r"`apiserver/noxu/(\w+)(?:\.py)?`", first_column)
    assert [room for room in rooms("noxu") if room not in listed] == []


def test_the_glossary_is_sorted_and_refers_to_the_code() -> None:
    rows = re.findall(r"^\| (.*?) \| .* \| `(.*?)` \|$", section("CONTRIBUTING.md", "Glossary"), re.MULTILINE)
    terms = [term for term, _ in rows]
    assert len(terms) > 40
    assert terms == sorted(terms, key=str.lower)
    files = {file for _, file in rows if not any((base / file).exists() for base in (ROOT, ROOT / "apiserver/noxu"))}
    assert files == set()


def test_the_architecture_shows_the_layers_of_the_contract() -> None:
    diagram = section("docs/architecture.md", "Rooms and layers").split("```")[1]
    server, _, cel = diagram.partition("\n cel: ")
    shown = re.findall(
        r"[a-z_]+", "\n".join(re.split(r"  +\S", line.strip(" │├└─"))[0] for line in server.splitlines())
    )
    assert [room for room in shown if room in rooms("noxu")] == rooms("noxu")
    assert [layer.strip() for layer in cel.replace("\n", " ").split(" → ")] == [
        " ".join(layer.split()) for layer in layers("noxu.cel")
    ]


class Everyone:
    """Knows no user."""

    allows_anonymous = False

    def authenticate(self, given: Credentials, warnings: list[str]) -> User:
        return ANONYMOUS


def test_the_architecture_shows_the_filters_in_order() -> None:
    diagram = section("docs/architecture.md", "A request").split("```")[1].replace("│", " ")
    shown = max(re.findall(r"\w+(?:\s+→ \w+)+", diagram), key=len)
    audit_log = AuditLog(EVERYTHING, Lines())
    filters = chain(
        own_names=frozenset(),
        authenticator=Everyone(),
        authorize=lambda _: ALLOWED,
        traces=None,
        unsent=Unsent(),
        audit_log=audit_log,
        limits=Requests(cors_allowed_origins=("^https://app$",)),
        shares_store=True,
    )
    assert re.findall(r"\w+", shown) == [type(step).__name__ for step in filters]


def test_the_architecture_lists_every_controller() -> None:
    rows = section("docs/architecture.md", "Controllers").partition("| controller |")[2]
    table = "\n".join(re.findall(r"^\| (.*?) \|", rows, re.MULTILINE))
    is_controller = re.compile(r"^class \w+\(\w*(Controller|Reconciler)\b", re.MULTILINE).search
    files = [path for path in (ROOT / "apiserver/noxu/controllers").glob("*.py") if path.name != "controller.py"]
    modules = [path for path in files if is_controller(path.read_text())]
    assert set(re.findall(r"`(\w+\.py)`", table)) == {path.name for path in modules}
