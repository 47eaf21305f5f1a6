"""Fixed lists of specs: what counts is what most runs show and no expectation is about."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from copy import copy
from pathlib import Path

import pytest
from rich.console import Console

from conformance.campaign import ConformCampaign
from conformance.clients.adapters.registry import Client, bundled
from conformance.report import write_report
from conformance.rules import Finding, judge
from conformance.run.case import Case
from conformance.run.inprocess import runner
from conformance.run.simulated import NeedsProcess
from conformance.run.specs import Injection, Spec, to_json
from conformance.search import fixed
from conformance.search.fixed import KNOWN, Swept, run_lists
from conformance.search.systematic.children import Child
from conformance.search.systematic.fixed import SPECS, Listed, load_specs, save_specs
from fakebrokers.commands import ExitCode
from fakebrokers.errors import UsageError

PROTOCOL = "rabbitmq-stream"
LISTS = Path(__file__).parents[4] / "ci" / "known"
LOST = Spec(PROTOCOL, "publish", (Injection("c1", "out", 9, "lost"),))
DEFECT = """
version = 2
client = "reference-rabbitmq-stream"
client_version = "{version}"

[[defect]]
id = "counted"
cause = "confirms are counted"
sweep = [{{ row = "ack-needs-confirm", acts = ["{act}"] }}]
"""
STOCK = [each for each in bundled() if not each.name.startswith("reference-")]
CLEAN, BROKEN = runner(PROTOCOL), runner(PROTOCOL, "confirm-by-position")


class Scripted(Child):
    """A child whose runs come out as they are listed; the last one again and again."""

    def __init__(self, cases: list[Case]) -> None:
        super().__init__(PROTOCOL, lambda _: pytest.fail("no process is needed"))
        self.cases = cases
        self.runs = 0

    async def run(self, spec: Spec) -> Case:
        self.runs += 1
        return self.cases[min(self.runs, len(self.cases)) - 1]


@pytest.fixture
def client() -> Client:
    return next(each for each in bundled() if each.name == "reference-rabbitmq-stream")


def listed(tmp_path: Path, client: Client, cases: list[Case], known: str = "") -> tuple[Listed, Scripted]:
    save_specs(tmp_path / f"{client.name}{SPECS}", [LOST])
    if known:
        (tmp_path / f"{client.name}{KNOWN}").write_text(known)
    found, child = Listed(client, PROTOCOL, tmp_path, tmp_path / "report"), Scripted(cases)
    found.child = child
    asyncio.run(run_lists([found], lanes=1))
    return found, child


def row(*, count: int, invariant: str = "lives", cause: str = "") -> fixed.ViolationRow:
    return fixed.ViolationRow(invariant=invariant, detail="gone", spec="x", cause=cause, count=count, runs=3)


def names(rows: list[fixed.ViolationRow]) -> Iterator[str]:
    return (row.invariant for row in rows)


def test_what_is_violated_again_is_new_and_has_its_page(tmp_path: Path, client: Client) -> None:
    found, child = listed(tmp_path, client, [BROKEN(LOST)])
    assert child.runs == 2
    assert "ack-needs-confirm" in names(found.found.new)
    [row] = [row for row in found.found.new if row.invariant == "ack-needs-confirm"]
    assert (row.count, row.runs) == (2, 2)
    assert "ack-needs-confirm" in (tmp_path / "report" / row.page).read_text()


def test_what_is_violated_once_only_does_not_count(tmp_path: Path, client: Client) -> None:
    found, child = listed(tmp_path, client, [BROKEN(LOST), CLEAN(LOST)])
    assert child.runs == fixed.TRIES
    assert found.found.new == []
    assert "ack-needs-confirm" in names(found.found.once)


def starved(case: Case) -> Case:
    """The same on a machine that kept the client waiting."""
    kept_waiting = copy(case)
    kept_waiting.is_starved = True
    return kept_waiting


@pytest.mark.parametrize(
    ("cases", "runs", "new", "unclear"),
    [
        ([starved(BROKEN(LOST)), BROKEN(LOST)], 3, True, 0),  # again where few others run
        ([starved(BROKEN(LOST)), CLEAN(LOST)], 2, False, 0),
        ([starved(BROKEN(LOST))], 2, False, 1),
        ([BROKEN(LOST), starved(BROKEN(LOST))], 2, False, 1),
        ([starved(CLEAN(LOST))], 1, False, 0),
    ],
)
def test_where_the_machine_kept_the_client_waiting_nothing_is_news(
    cases: list[Case], runs: int, new: bool, unclear: int, tmp_path: Path, client: Client
) -> None:
    found, child = listed(tmp_path, client, cases)
    assert (child.runs, bool(found.found.new), found.found.unclear) == (runs, new, unclear)


def test_what_is_known_is_told_by_its_cause(tmp_path: Path, client: Client) -> None:
    known = DEFECT.format(version=client.version, act="lost")
    found, _ = listed(tmp_path, client, [BROKEN(LOST)], known)
    assert "ack-needs-confirm" not in names([*found.found.new, *found.found.once])
    assert found.found.causes == [("confirms are counted", 1)]


def test_what_is_known_of_another_act_is_news(tmp_path: Path, client: Client) -> None:
    known = DEFECT.format(version=client.version, act="rst")
    found, _ = listed(tmp_path, client, [BROKEN(LOST)], known)
    assert "ack-needs-confirm" in names(found.found.new)


def test_expectations_of_another_version_are_refused(tmp_path: Path, client: Client) -> None:
    with pytest.raises(UsageError, match=r"is about reference-rabbitmq-stream 0\.0"):
        listed(tmp_path, client, [CLEAN(LOST)], DEFECT.format(version="0.0", act="lost"))


class Here(Listed):
    """What virtual time shows of a spec: findings of this case; None: it needs a process."""

    shown: Case | None = None

    def found_here(self, spec: Spec) -> list[Finding] | None:
        if self.shown is None:
            raise NeedsProcess("a thread")
        return judge(self.shown)


@pytest.mark.parametrize(
    ("shown", "known", "runs", "here"),
    [
        (CLEAN(LOST), "", 0, 1),
        (BROKEN(LOST), "", 1, 0),  # and the process shows nothing
        (BROKEN(LOST), "lost", 0, 1),
        (None, "", 1, 0),
    ],
)
def test_what_virtual_time_shows_needs_a_process_only_if_it_is_news(
    shown: Case | None, known: str, runs: int, here: int, tmp_path: Path, client: Client
) -> None:
    save_specs(tmp_path / f"{client.name}{SPECS}", [LOST])
    if known:
        text = DEFECT.format(version=client.version, act=known).replace("ack-needs-confirm", "*")
        (tmp_path / f"{client.name}{KNOWN}").write_text(text)
    found = Here(client, PROTOCOL, tmp_path, tmp_path / "report")
    found.shown, found.child = shown, Scripted([CLEAN(LOST)])
    found.run_here()
    asyncio.run(run_lists([found], lanes=1))
    assert (found.child.runs, found.found.here, found.found.new) == (runs, here, [])
    assert [cause for cause, _ in found.found.causes] == ["confirms are counted"] * bool(known)


def test_what_there_is_no_time_for_is_counted(tmp_path: Path, client: Client) -> None:
    found, child = listed(tmp_path, client, [CLEAN(LOST)])
    asyncio.run(run_lists([found], longest_s=-1.0))
    assert (found.found.left_out, child.runs) == (1, 1)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("{", "truncated"),
        (to_json(Spec(PROTOCOL, "nowhere")), "no base nowhere"),
        (to_json(Spec(PROTOCOL, "publish", (Injection("c1", "out", 1, "bite"),))), "no such act"),
        (to_json(Spec("pzq", "waited")), "no base waited"),
    ],
)
def test_a_list_that_cannot_be_run_is_refused(tmp_path: Path, text: str, problem: str) -> None:
    path = tmp_path / "toy.specs"
    path.write_text(text)
    with pytest.raises(UsageError, match=problem):
        load_specs(path, PROTOCOL)


@pytest.mark.parametrize("client", STOCK, ids=lambda each: each.name)
def test_the_list_of_each_bundled_client_can_be_run(client: Client) -> None:
    assert load_specs(LISTS / f"{client.name}{SPECS}", client.protocols[0])


def test_the_report_shows_what_is_new_and_what_is_known(tmp_path: Path) -> None:
    pytest.importorskip("jinja2", reason="missing: jinja2 (pip install jinja2)")
    new = fixed.ViolationRow(
        invariant="close-ends",
        detail="<b>left</b>",
        spec="closing: no fault",
        count=2,
        runs=2,
        page="sweep/x y.html",
    )
    known = fixed.ViolationRow(
        invariant="lives", detail="gone", spec="plain: no fault", cause="an assertion fails"
    )
    swept = Swept(client="toy", version="1.0", protocol=PROTOCOL, specs=24, rows=[new, known])
    text = write_report(tmp_path, [], staged={"sweep": [swept], "chaos": []}).read_text()
    assert 'id="sweep"' in text
    assert 'href="sweep/x%20y.html"' in text
    assert "&lt;b&gt;left&lt;/b&gt;" in text
    assert "an assertion fails" in text
    assert "1 new" in text
    assert 'id="chaos"' not in text
    assert 'id="sweep"' not in write_report(tmp_path, []).read_text()


@pytest.mark.parametrize(
    ("rows", "code"),
    [
        ([], ExitCode.INCONCLUSIVE),
        ([row(cause="known", count=3)], ExitCode.INCONCLUSIVE),
        ([row(count=1)], ExitCode.INCONCLUSIVE),
        ([row(count=2)], ExitCode.FAILED),
        ([row(count=2, invariant="harness")], ExitCode.HARNESS),
    ],
    ids=["nothing", "known", "once", "new", "harness"],
)
def test_the_main_job_fails_by_what_is_new(
    tmp_path: Path, rows: list[fixed.ViolationRow], code: ExitCode
) -> None:
    campaign = ConformCampaign(tmp_path, "gate", 1, 0, Console(quiet=True))
    campaign.staged = {"sweep": [Swept(client="toy", version="1", protocol=PROTOCOL, specs=1, rows=rows)]}
    assert campaign.exit_code == code
