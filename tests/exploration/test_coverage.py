"""What an exploration has tried is a table: for each resource how many of its writes, views and fields."""

from __future__ import annotations

import json
from xml.etree import ElementTree as ET

from noxu.exploration import coverage, masks, report
from noxu.exploration.attempts import Confirmed, Judged, Learnt
from noxu.exploration.exploring import Explored
from noxu.exploration.findings import RunFinding
from noxu.exploration.judging import clean_runs
from noxu.exploration.plans import RunPlan
from noxu.exploration.run_programs import KnownTimes
from tests.exploration import recordings

CONFIGS, SECRETS, WIDGETS = recordings.CONFIGS, recordings.SECRETS, recordings.WIDGETS
PLANS = (
    ("crash", ("create", CONFIGS, ""), True),
    ("crash", ("create", SECRETS, ""), False),
    ("ambiguous", ("patch", WIDGETS, "status"), True),
    ("refused", ("create", CONFIGS, "", "Conflict", "1"), True),
    ("refused", ("create", CONFIGS, "", "Conflict", "3"), True),
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


def test_reports_for_machines() -> None:
    found = outcome()
    finding = RunFinding("missing", "secrets a", "secrets <a> is missing \x1b[0m", (12,), ("it was there",))
    judged = found.judged[0]._replace(findings=[finding])
    found.judged[0] = judged
    assert judged.recording is not None
    found.add(Confirmed(1, finding, (), judged.plan, judged.recording, is_stable=True))
    found.finish([judged.plan], 10.0)
    suite = ET.fromstring(report.as_junit(found))[0]
    assert (suite.get("tests"), suite.get("failures")) == (str(len(PLANS)), "1")
    assert [(case.get("classname"), len(case)) for case in suite][:2] == [("crash", 1), ("crash", 0)]
    value = json.loads(json.dumps(report.as_value(found, {1: ["explore-1.yaml"]})))
    assert [each["files"] for each in value["findings"]] == [["explore-1.yaml"]]
    assert value["coverage"][0] == {
        "resource": CONFIGS, "writes": 1, "crash": 1, "lost": 0, "refused": 1, "views": 0, "drift": 2, "fields": 0,
    }  # fmt: skip
    unusable = Explored(unusable=[finding])
    assert 'failures="1"' in report.as_junit(unusable)
    assert report.as_value(unusable, {})["cleanRuns"] == [{"kind": "missing", "sentence": finding.sentence}]
