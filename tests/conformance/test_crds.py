"""Some of the real-life CRDs, used with kubectl. Skipped where there is no kubectl, or where they are not beside us."""

from __future__ import annotations

import shutil
import sys
from pathlib import Path

import pytest

from apiserver.testing.handle import Noxu
from conformance import corpus, crds
from conformance.corpus import Definition
from conformance.crds import Kubectl, Outcome

EVERY = 25  # all of them take minutes: that is `python -m conformance.crds`
DEFINITIONS = list(corpus.definitions())[::EVERY] if corpus.FOLDER.exists() else []
PROGRAM = shutil.which(Path(sys.executable).with_name("kubectl")) or shutil.which("kubectl") or ""


@pytest.fixture(scope="module")
def kubectl(noxu_session: Noxu, tmp_path_factory: pytest.TempPathFactory) -> Kubectl:
    if not PROGRAM:
        pytest.skip("there is no kubectl here")
    return Kubectl(PROGRAM, noxu_session.url, tmp_path_factory.mktemp("kubectl"))


@pytest.mark.skipif(not DEFINITIONS, reason="the CRDs are not beside the repository")
@pytest.mark.parametrize("definition", DEFINITIONS, ids=lambda definition: definition.name)
def test_a_real_definition_with_kubectl(kubectl: Kubectl, definition: Definition) -> None:
    outcomes = list(crds.use(kubectl, definition))
    assert [outcome for outcome in outcomes if outcome.problem] == []
    assert {"applied", "established", "explain", "deleted"} <= {outcome.step for outcome in outcomes}


def test_the_tally_counts_what_went_well_and_what_did_not() -> None:
    outcomes = [Outcome("applied", "a"), Outcome("applied", "b", "refused"), Outcome("get", "a")]
    lines = crds.tally(outcomes).splitlines()
    assert lines[0] == "applied         1 as expected, 1 not"
    assert "get             1 as expected, 0 not" in lines
