"""What an exploration has tried is a table: for each resource how many of its writes, views and fields."""

from __future__ import annotations

from noxu.exploration import coverage, masks, report
from noxu.exploration.exploring import Explored, Judged, Learnt
from noxu.exploration.judging import clean_runs
from noxu.exploration.plans import RunPlan
from noxu.exploration.runs import KnownTimes
from tests.exploration import recordings

CONFIGS, SECRETS, WIDGETS = recordings.CONFIGS, recordings.SECRETS, recordings.WIDGETS
PLANS = (
    ("crash", ("create", CONFIGS, ""), True),
    ("crash", ("create", SECRETS, ""), False),
    ("ambiguous", ("patch", WIDGETS, "status"), True),
    ("refused", ("create", CONFIGS, "Conflict", "1"), True),
    ("refused", ("create", CONFIGS, "Conflict", "3"), True),
    ("stale", (WIDGETS, "before", "after", "False"), True),
    ("order", ("late", WIDGETS), True),
    ("drift", (CONFIGS, "deleted"), True),
    ("drift", (CONFIGS, "data.size"), True),
    ("spec", (WIDGETS, "spec.size"), True),
)


def outcome() -> Explored:
    recording = recordings.clean().recording()
    mask = masks.learn([recording, recording])
    learnt = Learnt([recording], mask, clean_runs([recording], mask), KnownTimes(), ())
    judged = [
        Judged(RunPlan(klass, klass, about=(klass, *about)), (), recording, 1.0, had_effect=had_effect)
        for klass, about, had_effect in PLANS
    ]
    return Explored(learnt, judged)


def test_a_row_for_each_resource() -> None:
    assert list(coverage.lines(outcome())) == [
        "                      writes    crash     lost  refused    views    drift   fields",
        "configmaps                 1        1        0        1        0        2        0",
        "secrets                    1        0        0        0        0        0        0",
        "widgets.example.com        1        0        1        0        2        0        1",
    ]


def test_progress_says_what_is_found_and_left() -> None:
    found = outcome()
    assert report.progress_note(found, 20, 10.0, 600.0) == "10 s left"
    assert report.progress_note(found, 1000, 10.0, 600.0) == "10 min left"
    assert report.progress_note(found, 10, 10.0, 600.0) == ""
    assert report.progress_note(Explored(), 10, 1.0, 600.0) == ""
