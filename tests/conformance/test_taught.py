"""The outcomes of explorations are kept in a file, and count when the command is run again."""

from __future__ import annotations

from pathlib import Path

from conformance.taught import Line, Outcome, Shown, keep, read_kept

FOUND = Outcome([Shown(["missing", "differs"], "configmaps a is missing", "the controller is killed")], [], 4, 2.5)
ACCUSED = Outcome([], [Shown(["busy"], "it goes on", "a plan")], 3, 1.5, "it ended")


def lines() -> tuple[Line, Line]:
    bug, twin = (Line("crash", "crash", "go", is_twin, [], ("differs",)) for is_twin in (False, True))
    return bug, twin


def test_what_is_kept_counts_again(tmp_path: Path) -> None:
    file, (bug, twin) = tmp_path / "kept", lines()
    read_kept(file, [bug, twin])  # there is none yet
    for line, outcome in ((bug, FOUND), (twin, ACCUSED), (bug, FOUND)):
        line.outcomes.append(outcome)
        keep(file, line)
    with file.open("a") as end:
        end.write('[["crash", "crash", "go", false], [')  # the command was killed
    bug_again, twin_again = lines()
    read_kept(file, [bug_again, twin_again])
    assert (str(bug_again), str(twin_again)) == (str(bug), str(twin))
    assert (bug_again.hits, len(bug_again.outcomes), twin_again.hits) == (2, 2, 1)
