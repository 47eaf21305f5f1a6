"""Stock clients that are swept on virtual time: real time has the last word."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from copy import copy
from pathlib import Path
from typing import Any, cast

import msgspec
import pytest

from conformance.clients.adapters import stock
from conformance.clients.adapters.registry import Client, find
from conformance.clients.adapters.stock import NotHere, adapter_class
from conformance.rules import Finding, judge
from conformance.run.case import Case
from conformance.run.inprocess import run
from conformance.run.simulated import NeedsProcess
from conformance.run.specs import Injection, Spec
from conformance.search.client import made_of, unseen_errors
from conformance.search.replay import shrunk
from conformance.search.systematic import campaign as campaigns
from conformance.search.systematic.campaign import SweepCampaign, SweptClient
from conformance.search.systematic.replay import replay_of
from conformance.search.systematic.stock import stock_universe
from conformance.search.systematic.universe import DrawableSpec

PROTOCOL = "rabbitmq-stream"
NAME = "rstream"
#: rstream answers no question of the server while it logs in.
FAILS = Spec(PROTOCOL, "challenged")
PASSES = Spec(PROTOCOL, "ask")

pytestmark = [
    pytest.mark.skipif(not find(NAME).runnable, reason="rstream is not installed"),
    pytest.mark.filterwarnings("ignore:unclosed:ResourceWarning"),  # rstream leaves them to the collector
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(autouse=True)
def anew() -> Any:
    """No class is remembered from another test, nor by one."""
    adapter_class.cache_clear()
    yield
    adapter_class.cache_clear()


def told_of(monkeypatch: pytest.MonkeyPatch, **changed: Any) -> None:
    """The registry says something else of the client."""

    def other(name: str) -> Client:
        return msgspec.structs.replace(find(name), **changed)

    monkeypatch.setattr(stock, "find", other)


def test_an_adapter_is_loaded_once() -> None:
    found = adapter_class(NAME)
    assert found is not None and found is adapter_class(NAME)
    assert found.library == NAME


def test_a_client_that_only_runs_in_processes() -> None:
    assert adapter_class("pzq-python") is None
    subject = SweptClient("pzq", "pzq-python", stock_in_memory=True)
    assert (subject.is_process, subject.why_process) == (True, "")


@pytest.mark.parametrize(
    ("changed", "why"),
    [
        ({"packages": "elsewhere", "version": "1.0.0"}, "rstream==1.0.0 is another version than"),
        ({}, "rstream cannot be imported here"),
    ],
)
def test_a_client_that_cannot_run_here_says_why(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, changed: Mapping[str, Any], why: str
) -> None:
    (tmp_path / "adapter.py").write_text("import not_installed")
    told_of(monkeypatch, **{"folder": str(tmp_path), **changed})
    with pytest.raises(NotHere, match=why):
        adapter_class(NAME)
    subject = SweptClient(PROTOCOL, NAME, stock_in_memory=True)
    assert subject.is_process and not subject.is_confirmed
    assert why in subject.why_process


def test_a_user_can_have_processes() -> None:
    assert SweptClient(PROTOCOL, NAME).is_process


def test_reference_clients_need_no_confirmation() -> None:
    assert not SweptClient(PROTOCOL, "reference", stock_in_memory=True).is_confirmed


def test_the_universe_has_what_the_client_plays() -> None:
    made = made_of(PROTOCOL, NAME)
    assert made is not None
    specs = [item.spec for item in stock_universe(PROTOCOL, made)]
    assert all(spec in specs for spec in (FAILS, PASSES, Spec(PROTOCOL, "windows")))
    assert any(spec.injections and spec.base == "ask" for spec in specs)


# real time has the last word


class RealTime:
    """What the processes of a client show; stands for them."""

    def __init__(self, subject: SweptClient, shown: Callable[[Spec], bool]) -> None:
        self.asked: list[Spec] = []
        assert subject.made is not None
        self._fails, self._passes = (run(subject.made, spec) for spec in (FAILS, PASSES))
        self._shown = shown
        subject.child.judged = self.judged  # type: ignore[union-attr, method-assign]

    async def judged(self, spec: Spec) -> tuple[Case, list[Finding]]:
        self.asked.append(spec)
        case = self._passes if spec == PASSES else self._fails
        return case, judge(case) if self._shown(spec) else []


def swept(
    folder: Path, shown: Callable[[Spec], bool], specs: tuple[Spec, ...], *, is_starved: bool = False
) -> tuple[SweepCampaign, RealTime]:
    subject = SweptClient(PROTOCOL, NAME, stock_in_memory=True)
    real = RealTime(subject, shown)
    real._fails.is_starved = is_starved
    campaign = SweepCampaign(subject, folder, specs=specs)
    campaign.go(300.0)
    return campaign, real


@pytest.mark.parametrize("is_starved", [False, True], ids=["idle machine", "busy machine"])
def test_what_real_time_shows_too_is_a_finding(tmp_path: Path, is_starved: bool) -> None:
    campaign, real = swept(tmp_path, lambda _: True, (FAILS, PASSES), is_starved=is_starved)
    names = {name for failure in campaign.failures for name in failure.names}
    assert "answers-questions" in names
    assert campaign.document()["unconfirmed"] == []
    assert PASSES not in real.asked
    assert all(failure.replay.print == "" and failure.steady for failure in campaign.failures)


def test_what_real_time_does_not_show_is_none(tmp_path: Path) -> None:
    campaign, _ = swept(tmp_path, lambda _: False, (FAILS,))
    assert campaign.failures == []
    rows = campaign.document()["unconfirmed"]
    assert {"answers-questions"} <= {row["name"] for row in rows}
    assert {row["real"] for row in rows} == {"passes"}
    assert not list(tmp_path.glob("*.replay.json"))


def test_for_what_there_was_no_time_is_none_either(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(campaigns, "CONFIRM_S", 0.0)
    monkeypatch.setattr(campaigns, "SHRINK_SHARE", 0.0)
    campaign, real = swept(tmp_path, lambda _: True, (FAILS,))
    assert (campaign.failures, real.asked) == ([], [])
    assert {one.real for one in campaign.unconfirmed.values()} == {"not run, for lack of time"}


def test_what_needs_a_process_runs_in_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    subject = SweptClient(PROTOCOL, NAME, stock_in_memory=True)
    real = RealTime(subject, lambda _: True)

    def needs(spec: Spec) -> Case:
        raise NeedsProcess("a thread")

    campaign = SweepCampaign(subject, tmp_path, specs=(FAILS, PASSES))
    campaign._sweep.run = needs
    campaign.go(300.0)
    assert campaign.document()["needs_process"] == campaign.runs == 2
    assert FAILS in real.asked and PASSES in real.asked
    assert campaign.failures


def test_several_processes_find_what_one_does(tmp_path: Path) -> None:
    specs = (FAILS, PASSES, Spec(PROTOCOL, "consume", (Injection("c1", "out", 3, "rst"),)))
    subject = SweptClient(PROTOCOL, NAME, stock_in_memory=True)
    RealTime(subject, lambda _: False)
    campaign = SweepCampaign(subject, tmp_path, specs=specs, processes=2)
    campaign.go(300.0)
    one, _ = swept(tmp_path, lambda _: False, specs)
    assert campaign.runs == one.runs == 3
    assert campaign.unconfirmed == one.unconfirmed


class Meter:
    """Stands for one that finds the first run, and no other, to be news."""

    def __init__(self) -> None:
        self.labels: list[str] = []

    @contextmanager
    def doing(self, label: str) -> Iterator[None]:
        self.labels.append(label)
        yield

    def news(self, label: str) -> int:
        return len(self.labels) == 1


def test_each_run_of_a_sweep_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    items = [
        DrawableSpec(("rst", f"kind{kind}", ""), Spec(PROTOCOL, "ask", (Injection("c1", "out", nth, "rst"),)))
        for kind in range(4)
        for nth in range(10 * kind, 10 * kind + 3)
    ]
    subject, meter = SweptClient(PROTOCOL, NAME, stock_in_memory=True), Meter()
    ran: list[Spec] = []

    def passes(spec: Spec) -> Case:
        ran.append(spec)
        case = copy(ready)
        case.spec = spec
        return case

    assert subject.made is not None
    ready = run(subject.made, PASSES)
    monkeypatch.setattr(subject, "run", passes)
    monkeypatch.setattr(campaigns, "stock_universe", lambda *_: items)
    campaign = SweepCampaign(subject, tmp_path, meter=cast(Any, meter))
    campaign.go(300.0)
    assert len(ran) == len(items)
    assert meter.labels == ["spec:ask:rst"] * len(items)


def test_errors_that_nobody_has_seen_are_read_from_stderr() -> None:
    said = "WARNING: tea\nTask exception was never retrieved\nfuture: <Task>\nTraceback\nFatal error: x\n"
    assert unseen_errors(said) == "Task exception was never retrieved\nFatal error: x"


@pytest.mark.parametrize("real", [True, False])
def test_a_file_is_made_smaller_on_virtual_time_if_real_time_agrees(real: bool) -> None:
    made = made_of(PROTOCOL, NAME)
    assert made is not None
    spec = Spec(PROTOCOL, "challenged", (Injection("c9", "out", 1, "rst"),))  # which never comes
    case = run(made, spec)
    file = replay_of(NAME, "", case, [one for one in judge(case) if one.name == "answers-questions"])
    passes, asked = run(made, PASSES), list[Spec]()

    def run_real(plan: Spec) -> Case:
        asked.append(plan)
        return run(made, plan) if real else passes

    smaller, _ = shrunk(file, run_real, lambda plan: run(made, plan))
    if real:
        assert smaller is not None and not smaller.plan.injections
        assert asked == [smaller.plan]
    else:
        assert smaller is None
