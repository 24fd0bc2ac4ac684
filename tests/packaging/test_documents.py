"""The SBOM and the page of licences are those of the pins, complete and deterministic.

They are generated from the metadata of the installed packages: `python -m requirements document` writes them.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from importlib.metadata import Distribution, PathDistribution
from pathlib import Path
from typing import Any

import pytest
from packaging.licenses import canonicalize_license_expression

from requirements import licences
from requirements.__main__ import RUNTIME, documents, project
from requirements.licences import CONCLUDED, Licence, licence
from requirements.pins import parse
from requirements.vendored import FOLDER, LIBRARIES, Library

ROOT = Path(__file__).parents[2]
PINS = parse((ROOT / RUNTIME).read_text())
SBOM: dict[str, Any] = json.loads((ROOT / "requirements/noxu.cdx.json").read_text())
COMPONENTS = {component["name"]: component for component in SBOM["components"]}


@pytest.mark.parametrize("document", ["requirements/noxu.cdx.json", "docs/licences.md"])
def test_the_documents_are_those_of_the_pins(document: str) -> None:
    assert (ROOT / document).read_text() == documents(project(), PINS)[document], "python -m requirements document"


def test_the_order_of_the_pins_does_not_matter() -> None:
    assert documents(project(), PINS[::-1]) == documents(project(), PINS)


def test_other_contents_have_another_serial_number() -> None:
    other = json.loads(documents({**project(), "version": "9"}, PINS)["requirements/noxu.cdx.json"])
    assert other["serialNumber"] != SBOM["serialNumber"]
    assert re.fullmatch(r"urn:uuid:[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", SBOM["serialNumber"])


def test_the_head_of_the_sbom() -> None:
    assert (SBOM["bomFormat"], SBOM["specVersion"], SBOM["version"]) == ("CycloneDX", "1.6", 1)
    root = SBOM["metadata"]["component"]
    assert (root["type"], root["name"], root["version"]) == ("application", "noxu", project()["version"])


def test_no_package_is_missing_in_the_sbom() -> None:
    assert list(COMPONENTS) == [*sorted(pin.name for pin in PINS), *(each.package for each in LIBRARIES)]
    for pin in PINS:
        component = COMPONENTS[pin.name]
        [reference] = component["externalReferences"]
        assert component["type"] == "library"
        assert component["version"] == pin.version
        assert component["purl"] == component["bom-ref"] == f"pkg:pypi/{pin.name}@{pin.version}"
        assert reference["hashes"] == [{"alg": "SHA-256", "content": digest} for digest in sorted(pin.hashes)]
        markers = [entry["value"] for entry in component.get("properties", [])]
        assert markers == ([pin.marker] if pin.marker else [])


@pytest.mark.parametrize("library", LIBRARIES, ids=[each.file for each in LIBRARIES])
def test_a_library_of_the_page_is_the_file_that_was_compared(library: Library) -> None:
    assert hashlib.sha256((FOLDER / library.file).read_bytes()).hexdigest() == library.sha256
    component = COMPONENTS[library.package]
    assert (component["version"], component["purl"]) == (
        library.version,
        f"pkg:npm/{library.package}@{library.version}",
    )
    assert component["hashes"] == [{"alg": "SHA-256", "content": library.sha256}]
    assert f" {library.version} (" in (FOLDER / "LICENCES.txt").read_text()


def test_no_library_of_the_page_is_missing() -> None:
    assert sorted(file.name for file in FOLDER.glob("*.js")) == sorted(each.file for each in LIBRARIES)
    page = (ROOT / "docs/licences.md").read_text()
    assert [each for each in LIBRARIES if each.sha256 not in page] == []


def test_every_component_has_a_licence() -> None:
    for component in COMPONENTS.values():
        [found] = component["licenses"]
        assert found["expression"] == canonicalize_license_expression(found["expression"])
        assert found["acknowledgement"] == ("concluded" if component["name"] in CONCLUDED else "declared")


def test_the_graph_reaches_every_component() -> None:
    graph = {node["ref"]: node["dependsOn"] for node in SBOM["dependencies"]}
    reached: set[str] = set()
    waiting = [SBOM["metadata"]["component"]["bom-ref"]]
    while waiting:
        reference = waiting.pop()
        if reference not in reached:
            reached.add(reference)
            waiting += graph[reference]
    assert reached == set(graph)
    assert len(reached) == len(PINS) + len(LIBRARIES) + 1


def test_no_package_is_missing_in_the_page_of_licences() -> None:
    page = (ROOT / "docs/licences.md").read_text()
    rows = [
        tuple(cell.strip() for cell in line.strip("|").split("|")[:3])
        for line in page.splitlines()
        if "`" in line and line.startswith("|") and not line.startswith("| `")
    ]
    assert [(name, version) for name, version, _ in rows] == sorted((pin.name, pin.version) for pin in PINS)
    for name, _, shown in rows:
        concluded = " (*)" if name in CONCLUDED else ""
        assert shown == COMPONENTS[name]["licenses"][0]["expression"] + concluded


def test_another_version_than_the_pinned_one_is_refused() -> None:
    with pytest.raises(ValueError, match=r"is installed, and 0\.1 is pinned"):
        documents(project(), [PINS[0]._replace(version="0.1")])


@pytest.fixture
def package(tmp_path: Path) -> Callable[..., Distribution]:
    """An installed package with this metadata, and LICENSE as its only licence file."""

    def install(*metadata: str, text: str = "the text") -> Distribution:
        info = tmp_path / "a-1.dist-info"
        (info / "licenses").mkdir(parents=True)
        (info / "licenses/LICENSE").write_text(text)
        (info / "METADATA").write_text("\n".join(["Metadata-Version: 2.4", "Name: a", "Version: 1", *metadata, "", ""]))
        (info / "RECORD").write_text("a.py,,\na-1.dist-info/licenses/LICENSE,,\n")
        return PathDistribution(info)

    return install


@pytest.mark.parametrize(
    ("metadata", "expression"),
    [
        (["License-Expression: mit and apache-2.0"], "MIT AND Apache-2.0"),
        (["License: BSD-3-Clause"], "BSD-3-Clause"),
        (["License-Expression: MIT", "License: Apache-2.0"], "MIT"),
        (["License: Apache 2.0", "License-Expression: MIT"], "MIT"),
    ],
    ids=["an expression", "an older field with an expression", "both", "an expression and a name"],
)
def test_a_declared_licence(package: Callable[..., Distribution], metadata: list[str], expression: str) -> None:
    assert licence("a", package(*metadata)) == Licence(expression, False, ("licenses/LICENSE",))


@pytest.mark.parametrize(
    "metadata",
    [[], ["License: Apache 2.0"], ["Classifier: License :: OSI Approved :: BSD License"]],
    ids=["nothing", "a name", "a classifier"],
)
def test_a_licence_that_is_not_declared_has_to_be_read(
    package: Callable[..., Distribution], monkeypatch: pytest.MonkeyPatch, metadata: list[str]
) -> None:
    installed = package(*metadata)
    with pytest.raises(ValueError, match=r"a 1 declares no SPDX licence: read licenses/LICENSE, and set") as unknown:
        licence("a", installed)
    digest = str(unknown.value).rsplit("'", 2)[1]
    monkeypatch.setitem(licences.CONCLUDED, "a", ("MIT", digest))
    assert licence("a", installed) == Licence("MIT", True, ("licenses/LICENSE",))


def test_a_licence_whose_text_changed_has_to_be_read_again(
    package: Callable[..., Distribution], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(licences.CONCLUDED, "a", ("MIT", "0123456789abcdef"))
    with pytest.raises(ValueError, match=r"a 1 declares no SPDX licence"):
        licence("a", package(text="another text"))
