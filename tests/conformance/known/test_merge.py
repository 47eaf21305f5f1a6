"""Several files as one: each cause once, and nothing that one of them says is said otherwise."""

from __future__ import annotations

import itertools

import pytest
from msgspec.structs import replace

from conformance.known.defects import Defect, KnownDefects, KnownFinding, KnownRow, Part
from conformance.known.merge import defects_of, id_of, merged, with_results
from conformance.results import Results, RowResult, RuleResult, Verdict
from conformance.rules import Finding
from conformance.run.specs import Spec
from fakebrokers.errors import UsageError

A, B = Defect("", "it forgets"), Defect("", "it crashes")
SWEEP, CHAOS = (Part.SWEEP,), (Part.CHAOS,)
RUN = Spec("toy", "base")


def row(id: str, defect: Defect = A, **more: object) -> KnownRow:
    return KnownRow(defect=defect, protocol="rabbitmq-stream", id=id, **more)  # type: ignore[arg-type]


def found(rule: str, defect: Defect = A, **more: object) -> KnownFinding:
    return KnownFinding(defect=defect, rule=rule, **more)  # type: ignore[arg-type]


def test_a_cause_of_several_files_is_one_defect() -> None:
    suite = KnownDefects(client="toy", rows=(row("RMQS-1.01"), row("RMQS-1.02", B)))
    swept = KnownDefects(client="toy", findings=(found("lives", replace(A, severity="low"), parts=SWEEP),))
    shaken = KnownDefects(findings=(found("lives", replace(A, severity="high"), parts=CHAOS),), seeds=("1",))
    file = merged([suite, swept, shaken])
    assert {each.defect for each in file.shown} == {
        Defect("it-forgets", "it forgets", "high"),
        Defect("it-crashes", "it crashes"),
    }
    assert [(each.rule, each.parts) for each in file.findings] == [("lives", (Part.SWEEP, Part.CHAOS))]
    assert (file.client, file.seeds) == ("toy", ("1",))
    assert merged([file, suite, swept]) == file


def test_the_order_of_each_file_is_kept() -> None:
    swept = KnownDefects(findings=tuple(found(name, parts=SWEEP) for name in "abcd"))
    shaken = KnownDefects(findings=tuple(found(name, parts=CHAOS) for name in "xbyd"))
    for files in ([swept, shaken], [shaken, swept]):
        rules = [each.rule for each in merged(files).findings]
        assert [each for each in rules if each in "abcd"] == [*"abcd"]
        assert [each for each in rules if each in "xbyd"] == [*"xbyd"]


def test_an_id_is_kept_unless_another_cause_has_it() -> None:
    one = KnownDefects(rows=(row("RMQS-1.01", Defect("mine", "it forgets")),))
    other = KnownDefects(rows=(row("RMQS-1.02", Defect("mine", "it crashes")),))
    assert [each.defect.id for each in merged([one, other]).rows] == ["mine", "it-crashes"]


@pytest.mark.parametrize(
    ("cause", "id"),
    [
        ("the reader dies silently (client.py, _listener)", "reader-dies-silently"),
        ("a message of another one is taken: nobody looks at ids", "message-of-another-one-is-taken"),
        ("stop, too, waits for a server that is gone", "stop-too-waits-for-server-that-is-gone"),
        (
            "that heartbeats of the server are missing leads to nothing",
            "that-heartbeats-of-server-are-missing-leads-to",
        ),
        ("é", "defect"),
    ],
)
def test_an_id_is_made_of_the_first_words_of_a_cause(cause: str, id: str) -> None:
    assert id_of(cause) == id
    assert id_of(cause, {id, f"{id}-2"}) == f"{id}-3"


@pytest.mark.parametrize(
    ("one", "other", "problem"),
    [
        ({"client": "a"}, {"client": "b"}, "expected files with one client, got a and b"),
        ({"client_version": "1.*"}, {"client_version": "2.0"}, "one client_version, got 1.* and 2.0"),
        ({"seeds": ("1",), "drawing": 1}, {"seeds": ("1",)}, "seeds of one drawing, got those of [0, 1]"),
    ],
)
def test_files_that_are_not_about_the_same_are_refused(one: dict, other: dict, problem: str) -> None:  # type: ignore[type-arg]
    with pytest.raises(UsageError) as caught:
        merged([KnownDefects(**one), KnownDefects(**other)])
    assert problem in str(caught.value)


def test_a_pattern_of_versions_stands_for_those_that_it_fits() -> None:
    assert (
        merged([KnownDefects(client_version=each) for each in ("1.1.1", "", "1.*")]).client_version == "1.*"
    )


def test_defects_stand_so_that_the_same_row_counts_first() -> None:
    for first, second, third in itertools.permutations(("*", "a*", "*b", "a?b", "ab", "ba"), 3):
        one = (found("lives", A, detail=first), found("lives", B, detail=second))
        other = (found("ends", A, detail=third), found("ends", B, detail=third))
        for known in (KnownDefects(findings=one + other), KnownDefects(findings=one[::-1] + other[::-1])):
            side_by_side = [
                row for defect in defects_of(known) for row in known.findings if row.defect == defect
            ]
            again = KnownDefects(findings=tuple(side_by_side))
            for rule, detail in itertools.product(
                ("lives", "ends"), ("", "a", "b", "ab", "ba", "axb", "aab")
            ):
                shown = Finding(rule, detail)
                before, after = (each.found_in(Part.SWEEP).cause_of(shown, RUN) for each in (known, again))
                assert before == after, (first, second, third, shown)


def test_a_narrower_row_of_the_suite_stays_before_a_wider_one() -> None:
    c = Defect("", "it hangs")
    rows = (
        row("RMQS-1.01", c),
        row("RMQS-1.02", B, criteria=("in-time",)),
        row("RMQS-1.02", A),
        row("RMQS-1.03", A),
        KnownRow(defect=B, protocol="rabbitmq-stream", rule="lives", rows=("RMQS-1.01",)),
    )
    assert defects_of(KnownDefects(rows=rows)) == [c, B, A]
    assert defects_of(KnownDefects(rows=(rows[2], rows[1], rows[0]))) == [A, B, c]


def run(*results: RowResult, rules: tuple[RuleResult, ...] = ()) -> Results:
    return Results("toy", "1.0", "0.3", 0, "2026-01-01T00:00:00Z", 1.0, results, rules=rules)


def result(
    id: str, verdict: Verdict = Verdict.FAIL, criterion: str = "in-time", reason: str = "late"
) -> RowResult:
    return RowResult(id, "rabbitmq-stream", "", "MUST", verdict, criterion=criterion, reason=reason)


def test_the_criteria_of_a_run_are_put_into_rows() -> None:
    rows = (
        row("RMQS-1.01"),
        row("RMQS-1.02", criteria=("works",)),
        row("RMQS-1.03", criteria=("works",), sometimes=True),
        row("RMQS-1.04", verdict=Verdict.INCONCLUSIVE),
    )
    known = with_results(KnownDefects(rows=rows), run(*(result(each.id) for each in rows)))
    assert [each.criteria for each in known.rows] == [("in-time",), ("in-time",), ("works", "in-time"), ()]
    assert (known.client, known.client_version) == ("toy", "1.0")


def test_what_failed_and_is_not_known_is_added_with_what_the_run_says() -> None:
    rule = RuleResult(
        "beats", "rabbitmq-stream", "", "MUST", Verdict.FAIL, ("RMQS-1.01", "RMQS-1.02"), "silent"
    )
    listed = KnownRow(defect=B, protocol="rabbitmq-stream", rule="beats", rows=("RMQS-1.01",))
    shown = run(result("RMQS-1.03", reason="late\nby 3 s"), result("RMQS-1.04", Verdict.PASS), rules=(rule,))
    known = with_results(KnownDefects(rows=(listed,)), shown)
    assert [(each.id or each.rule, each.criteria, each.rows) for each in known.rows[1:]] == [
        ("RMQS-1.03", ("in-time",), ()),
        ("beats", (), ("RMQS-1.02",)),
    ]
    assert known.rows[1].cause == "not looked into: late by 3 s"
    assert with_results(known, shown) == known
