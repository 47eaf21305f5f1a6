"""What two versions do differently: worked out from behaviours, and shown on the page of an upgrade."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest
from rich.console import Console

from conformance.cli.versions import judge_versions
from conformance.results import Results, RowResult, Verdict
from conformance.run.inprocess import client_of, run
from conformance.run.specs import Injection, Spec
from conformance.upgrade import upgrade
from conformance.versions import behaviour as behaviours
from conformance.versions.behaviour import Behaviour, BehaviourOrder, SpecRun, behaviour, sent, took_ms
from conformance.versions.differences import Ask, Changed, Differences, SweepDifference, compared, slower
from fakebrokers.commands import ExitCode

PROTOCOL = "rabbitmq-stream"
SPECS = [Spec(PROTOCOL, f"base{number}") for number in range(3)]


def shown(*findings: dict[str, str], sent: dict[str, str] | None = None) -> Behaviour:
    """A behaviour that has run as many specs as findings are given."""
    runs = tuple(SpecRun(spec, found) for spec, found in zip(SPECS, findings, strict=False))
    return Behaviour(runs, sent or {}, {})


class RealTime:
    """What real time shows of two versions, run after run; `asked` are the questions."""

    def __init__(self, **shows: Sequence[set[str] | None]) -> None:
        self._shows = {version: iter(each) for version, each in shows.items()}
        self.asked: list[Ask] = []

    def __call__(self, asks: Sequence[Ask]) -> list[set[str] | None]:
        self.asked += asks
        return [next(self._shows[version]) for version, _ in asks]


def test_what_one_version_alone_violates_is_asked_of_real_time() -> None:
    older = shown({}, {"op-ends": "late"}, {"close-ends": "open"})
    newer = shown({"comes-back": "it does not"}, {"op-ends": "late"}, {"comes-back": "neither"})
    real = RealTime(
        a=[{"close-ends"}, {"close-ends"}, set(), set()], b=[set(), set(), {"comes-back"}, {"comes-back"}]
    )
    found = compared(("a", older), ("b", newer), real)
    assert found.runs == 3
    assert found.findings == (
        SweepDifference("comes-back", "it does not", "base0: no fault", 2, is_worse=True),
        SweepDifference("close-ends", "open", "base2: no fault", 1, is_worse=False),
    )
    assert {spec.base for _, spec in real.asked} == {"base0", "base2"}, "what both violate is no question"


@pytest.mark.parametrize(
    ("older", "newer"),
    [
        ([set(), set()], [set(), {"op-ends"}]),  # not each time
        ([{"op-ends"}, set()], [{"op-ends"}, {"op-ends"}]),  # the older one as well
        ([None, set()], [{"op-ends"}, {"op-ends"}]),  # the machine was too busy
    ],
)
def test_what_real_time_does_not_show_counts_for_nothing(
    older: list[set[str] | None], newer: list[set[str] | None]
) -> None:
    found = compared(("a", shown({})), ("b", shown({"op-ends": "late"})), RealTime(a=older, b=newer))
    assert (found.findings, found.unconfirmed) == ((), 1)


def test_a_run_that_only_one_of_them_has_says_nothing() -> None:
    real = RealTime()
    found = compared(("a", shown({})), ("b", shown({}, {"op-ends": "late"})), real)
    assert (found.runs, found.findings, found.unconfirmed, real.asked) == (1, (), 0, [])


def test_times_that_are_far_apart() -> None:
    before = {"connect": 100.0, "publish": 1.0, "close": 100.0, "ping": 5.0}
    now = {"connect": 130.0, "publish": 3.0, "close": 50.0, "stats": 9.0}
    assert slower(before, now) == (
        Changed("close", "100 ms", "50 ms"),
        Changed("connect", "100 ms", "130 ms"),
    )


def test_what_a_client_sends_by_itself_and_how_long_it_takes() -> None:
    client = client_of(PROTOCOL)
    cases = [run(client, Spec(PROTOCOL, base)) for base in ("both", "publish")]
    found = sent(cases)
    assert found["SaslAuthenticate mechanism"] == "'PLAIN'"
    assert not any("correlation_id" in name and name.startswith("Publish") for name in found)
    assert sent(cases[:1]) == {}, "a single run does not show what it would send otherwise"
    assert took_ms(cases)["connect"] >= 0.0


def test_another_version_is_given_the_same_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(behaviours, "adapter_class", lambda _: client_of(PROTOCOL))
    monkeypatch.setattr(behaviours, "stock_universe", lambda *_: pytest.fail("nothing is drawn"))
    spec = Spec(PROTOCOL, "publish", (Injection("c1", "out", 7, "rst"),))
    found = behaviour(BehaviourOrder("any", PROTOCOL, specs=(spec,)))
    assert [each.spec.acts for each in found.runs] == [["rst"]]
    assert found.runs[0].findings == {}


WORSE = SweepDifference("op-ends", "<late>", "base0: no fault", 2, is_worse=True)
MENDED = SweepDifference("close-ends", "open", "base1: no fault", 1, is_worse=False)


def results(version: str) -> Results:
    row = RowResult("RMQS-1.01", PROTOCOL, "", "MUST", Verdict.PASS)
    return Results("lib", version, "1", 0, "2026-01-01T00:00:00Z", 1.0, (row,))


def test_a_rule_that_only_the_newer_version_violates_stops_the_upgrade() -> None:
    found = upgrade(results("1"), results("2"), (), Differences(runs=2, findings=(WORSE, MENDED)))
    assert found.exit_code == ExitCode.REGRESSION
    assert found.answer.endswith("in generated runs it violates what the older one kept: op-ends")
    assert upgrade(results("1"), results("2"), ["close-ends"], found.behaviour).exit_code == ExitCode.OK
    assert upgrade(results("1"), results("2"), (), Differences(findings=(MENDED,))).exit_code == ExitCode.OK


def test_the_page_of_an_upgrade_shows_it(tmp_path: Path) -> None:
    sent = (Changed("Tune heartbeat", "60", "<b>30"),)
    found = Differences(runs=150, findings=(WORSE, MENDED), unconfirmed=1, sent=sent)
    asked = []

    def differ(older: str, newer: str) -> Differences:
        asked.append((older, newer))
        return found

    code = judge_versions(
        ["lib==1", "lib==2"],
        lambda name, _: results(name.partition("==")[2]),
        tmp_path,
        Console(quiet=True),
        as_json=False,
        differ=differ,
    )
    page = (tmp_path / "index.html").read_text()
    assert (code, asked) == (ExitCode.REGRESSION, [("lib==1", "lib==2")])
    assert (
        "150 generated runs of both versions" in page
        and "rules that differ there and not in real time: 1." in page
    )
    assert "<td>2 alone</td><td>op-ends</td><td>2</td><td>&lt;late&gt;</td>" in page
    assert "<td>1 alone</td><td>close-ends</td>" in page
    assert "<td>Tune heartbeat</td><td>60</td><td>&lt;b&gt;30</td>" in page
    assert "Median time" not in page


def test_the_page_says_why_nothing_was_compared(tmp_path: Path) -> None:
    judge_versions(
        ["lib==1", "lib==2"],
        lambda name, _: results(name.partition("==")[2]),
        tmp_path,
        Console(quiet=True),
        as_json=False,
        differ=lambda *_: Differences(why_not="lib does not run on virtual time"),
    )
    page = (tmp_path / "index.html").read_text()
    assert "Generated runs were not compared: lib does not run on virtual time." in page
