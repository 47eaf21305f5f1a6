"""The set ``smoke``: the scenarios of each protocol that find most."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from conformance import results
from conformance.results import Results, RowResult, Verdict
from conformance.suite import smoke
from conformance.suite.load import all_scenarios, joined, select, written
from conformance.suite.scenario import Key
from tests.judged import JUDGED

#: Four rows; what they find, in words.
FOUND = {
    ("A-1", "p", ""): {"x", "y"},
    ("A-2", "p", ""): {"x", "y", "z"},
    ("A-3", "p", ""): {"u", "v"},
    ("A-4", "p", ""): {"z"},
    ("A-5", "p", ""): set[str](),
}


@pytest.mark.parametrize(("count", "ids"), [(1, "A-2"), (2, "A-2 A-3"), (3, "A-2 A-3 A-1"), (9, "all")])
def test_each_row_adds_most_to_those_before_it(count: int, ids: str) -> None:
    found = {key: {(word,) for word in words} for key, words in FOUND.items()}
    rows = [key[0] for key in smoke.cover(FOUND, found, count)]
    assert rows == (ids.split() if ids != "all" else ["A-2", "A-3", "A-1", "A-4", "A-5"])


def test_a_row_finds_mutants_and_what_clients_get_wrong() -> None:
    found = smoke.finds({"rbfly": ["rabbitmq-stream"]})
    kinds = Counter(kind for kind, *_ in found["RMQS-3.18", "rabbitmq-stream", ""])
    assert min(kinds["mutant"], kinds["cause"], kinds["finding"]) >= 1
    assert not any(kind == "finding" for kind, *_ in found["NET-1.03", "pzq", ""])  # another protocol's


def test_fifteen_of_each_protocol_none_of_them_slow_and_all_of_the_gate() -> None:
    chosen = select(all_scenarios(), which="smoke")
    judged = [each.name for each in JUDGED]
    assert Counter(item.protocol for item in chosen) == dict.fromkeys(judged, smoke.ROWS)
    assert {item.key for item in chosen} < {item.key for item in select(all_scenarios(), which="gate")}
    assert not {joined(*item.key) for item in chosen} & {*written()["slow"]}
    assert not [item for item in chosen if item.soak or item.alone]


def test_of_one_transporter_its_own_rows() -> None:
    of_redis = select(all_scenarios(), protocol="moleculer", variant="redis", which="smoke")
    assert {item.variant for item in of_redis} == {"redis"} and len(of_redis) > 5
    of_all = select(all_scenarios(), protocol="moleculer", which="smoke")
    assert {item.variant for item in of_all} <= {"", "nats"}  # which every client of Moleculer speaks


def report(folder: Path, seconds: dict[Key, float]) -> str:
    """Of one client, who took so long for these."""
    rows = tuple(RowResult(*key, "MUST", Verdict.PASS, seconds=took) for key, took in seconds.items())
    place = folder / "some-client-pzq" / "results.json"
    place.parent.mkdir(parents=True)
    place.write_bytes(results.dump(Results("c", "1", "1", 0, "2026-11-01T00:00:00Z", 9.0, rows)))
    return str(folder)


def test_what_is_slow_in_all_reports_is_left_out(tmp_path: Path) -> None:
    first, second = (item.key for item in select(all_scenarios(), protocol="pzq", which="smoke")[:2])
    over, below = smoke.SLOW_S + 0.1, smoke.SLOW_S - 0.1
    reports = [
        report(tmp_path / "1", {first: over, second: over}),
        report(tmp_path / "2", {first: over, second: below}),
    ]
    document = smoke.document(map(Path, reports))
    assert document["slow"] == [joined(*first)]
    assert first[0] not in document["rows"]["pzq"] and second[0] in document["rows"]["pzq"]
