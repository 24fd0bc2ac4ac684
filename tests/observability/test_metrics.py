"""The text of metrics: what Prometheus reads is what was counted."""

from __future__ import annotations

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_open_metrics
from prometheus_client.parser import text_string_to_metric_families as parse

from noxu.instruments import Family
from noxu.observability.metrics import CONTENT_TYPE, STARTED, build_info, render

NOTHING = "none_of_the_process"


def text(*families: Family, accept: str = "") -> str:
    return render(families, accept, NOTHING).body.decode()


def samples(text: str) -> list[tuple[str, str, dict[str, str], float]]:
    return [
        (family.type, sample.name, sample.labels, sample.value) for family in parse(text) for sample in family.samples
    ]


HELP = 'back\\slash, "quotes"\nand a second line'
# a family, its samples as Prometheus reads them: (type, name, labels, value)
FAMILIES = {
    "a counter": (
        Family("calls_total", "counter", HELP, ("name",), [(("a",), 3)]),
        [("counter", "calls_total", {"name": "a"}, 3)],
    ),
    "a counter with another name": (
        Family("rejection_count", "counter", "", ("name",), [(("a",), 3)]),
        [("counter", "rejection_count_total", {"name": "a"}, 3)],  # so the library's parser calls it
    ),
    "a gauge": (Family("now", "gauge", "", (), [((), 0.5)]), [("gauge", "now", {}, 0.5)]),
    "label values are escaped": (
        Family("now", "gauge", "", ("name",), [(('"\\\n€',), 1)]),
        [("gauge", "now", {"name": '"\\\n€'}, 1)],
    ),
    "a histogram": (
        Family("sizes", "histogram", "", ("name",), [(("a",), [2, 1, 4, 99.5])], (0.005, 1)),
        [
            ("histogram", "sizes_bucket", {"name": "a", "le": "0.005"}, 2),
            ("histogram", "sizes_bucket", {"name": "a", "le": "1.0"}, 3),
            ("histogram", "sizes_bucket", {"name": "a", "le": "+Inf"}, 7),
            ("histogram", "sizes_count", {"name": "a"}, 7),
            ("histogram", "sizes_sum", {"name": "a"}, 99.5),
        ],
    ),
    "nothing yet": (Family("sizes", "histogram", "", ("name",), [], (1,)), []),
}


@pytest.mark.parametrize(("family", "expected"), FAMILIES.values(), ids=FAMILIES)
def test_the_text_of(family: Family, expected: list[object]) -> None:
    assert samples(text(family)) == expected


def test_the_text_has_the_names_of_upstream() -> None:
    assert text(FAMILIES["a counter with another name"][0]).splitlines()[1:] == [
        "# TYPE rejection_count counter",
        'rejection_count{name="a"} 3.0',
    ]


@pytest.mark.parametrize(("family", "expected"), FAMILIES.values(), ids=FAMILIES)
def test_the_open_metrics_of(family: Family, expected: list[tuple[str, str, dict[str, str], float]]) -> None:
    found = list(parse_open_metrics(text(family, accept="application/openmetrics-text;version=1.0.0")))
    names = [(sample.name, sample.labels, sample.value) for one in found for sample in one.samples]
    assert names == [(row[1].replace("count_total", "count"), *row[2:]) for row in expected]


# Accept, Content-Type
ACCEPTED = [
    ("", CONTENT_TYPE),
    ("*/*", CONTENT_TYPE),
    ("application/json", CONTENT_TYPE),
    ("text/plain;version=0.0.4;q=0.5", CONTENT_TYPE),
    ("text/plain;version=1.0.0", CONTENT_TYPE),
    ("application/openmetrics-text", "application/openmetrics-text; version=1.0.0; charset=utf-8"),
    (
        "text/plain, application/openmetrics-text;version=x;q=0.5",
        "application/openmetrics-text; version=1.0.0; charset=utf-8",
    ),
]


@pytest.mark.parametrize(("accept", "content_type"), ACCEPTED)
def test_the_format(accept: str, content_type: str) -> None:
    assert render((), accept, NOTHING).content_type == content_type


def test_the_process_is_measured() -> None:
    assert {"process_resident_memory_bytes", "process_cpu_seconds_total", "process_open_fds", STARTED} <= {
        sample[1] for sample in samples(render((), "", "process_").body.decode())
    }
    assert [sample[1] for sample in samples(render((), "", STARTED).body.decode())] == [STARTED]


def test_the_build_is_that_of_version() -> None:
    labels = dict(samples(text(build_info("1.2.3")))[0][2])
    assert labels["git_version"].endswith("+noxu.1.2.3")
    assert list(labels) == sorted(
        (
            "major",
            "minor",
            "git_version",
            "git_commit",
            "git_tree_state",
            "build_date",
            "go_version",
            "compiler",
            "platform",
        )
    )
