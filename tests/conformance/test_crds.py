"""Every 25th CRD of other projects, used with kubectl."""

from __future__ import annotations

import pytest

from conformance import corpus, crds
from conformance.corpus import Definition
from conformance.crds import Kubectl, Outcome
from noxu.testing.handle import Noxu
from tests.optional import needs_data, require_program

STEP = 25  # all of them take minutes: `python -m conformance.crds`
DEFINITIONS = list(corpus.definitions())[::STEP] if corpus.FOLDER.exists() else []


@pytest.fixture(scope="module")
def kubectl(noxu_session: Noxu, tmp_path_factory: pytest.TempPathFactory) -> Kubectl:
    return Kubectl(require_program("kubectl"), noxu_session.url, tmp_path_factory.mktemp("kubectl"))


@pytest.mark.slow
@needs_data("crds")
@pytest.mark.parametrize("definition", DEFINITIONS, ids=lambda definition: definition.name)
def test_kubectl_works_with_the_definition_and_its_objects(kubectl: Kubectl, definition: Definition) -> None:
    outcomes = list(crds.use(kubectl, definition))
    assert [outcome for outcome in outcomes if outcome.problem] == []
    assert {"applied", "established", "explain", "deleted"} <= {outcome.step for outcome in outcomes}


def test_the_tally_counts_expected_and_unexpected_outcomes() -> None:
    outcomes = [Outcome("applied", "a"), Outcome("applied", "b", "refused"), Outcome("get", "a")]
    lines = crds.tally(outcomes).splitlines()
    assert lines[0] == "applied         1 as expected, 1 not"
    assert "get             1 as expected, 0 not" in lines
