"""One client over many scenarios: kept, replaced, closed, and judged as the runner judges."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from conformance.clients.adapter.base import AdapterFailed
from conformance.clients.adapter.inprocess import InProcessAdapter
from conformance.clients.adapter.kit import AdapterBase
from conformance.clients.adapter.messages import Hello
from conformance.known.defects import Defect, KnownDefects, KnownRow
from conformance.results import Verdict
from conformance.rules import Finding
from conformance.suite import Client, Expect
from conformance.suite.clients import ClientUnderTest, in_process
from conformance.suite.harness import ClientHarness
from conformance.suite.judgement import Judgement
from conformance.suite.load import requirement
from conformance.suite.runner import Runner
from conformance.suite.scenario import Scenario
from fakebrokers.errors import UsageError

Script = Callable[[Any, Client, Expect], Awaitable[None]]

DEFECT = Defect("wrong", "it is wrong")


class Puppet(AdapterBase):
    """Says hello, and nothing else."""

    adapter = library = "puppet"
    library_version = "1"
    protocols = ("pzq",)
    roles = ("publisher",)
    made = 0

    def __init__(self) -> None:
        super().__init__()
        type(self).made += 1


@pytest.fixture
def puppet() -> Iterator[ClientUnderTest]:
    Puppet.made = 0
    yield in_process(Puppet, None, asked="protocol=...")


def row(script: Script, **more: Any) -> Scenario:
    return Scenario(
        requirement=requirement("PZQ-1.01"), protocol="pzq", script=script, unconnected="a puppet", **more
    )


def passing(runs: list[str], late: int = 0, wrong: int = 0) -> Scenario:
    """A scenario that passes, after so many runs that are late or wrong."""

    async def script(broker: Any, client: Client, expect: Expect) -> None:
        runs.append("run")
        expect.within(2.0 if len(runs) <= late else 0.0, 1.0, "in time", id="in-time")
        expect.that(len(runs) > wrong, "right", "wrong", id="right")

    return row(script)


@pytest.mark.parametrize(
    ("first", "count", "verdict", "tags"),
    [
        ({}, 1, Verdict.PASS, ()),
        ({"late": 1}, 2, Verdict.PASS, ()),
        ({"wrong": 1}, 3, Verdict.PASS, ("flaky",)),
        ({"wrong": 9}, 2, Verdict.FAIL, ()),
        ({"late": 9}, 3, Verdict.FAIL, ()),
    ],
)
def test_what_fails_is_tried_again(
    puppet: ClientUnderTest, first: dict[str, int], count: int, verdict: Verdict, tags: tuple[str, ...]
) -> None:
    runs: list[str] = []
    station = ClientHarness(puppet)
    found = station.judge(passing(runs, **first))
    station.close()
    assert (found.verdict, found.tags, len(runs)) == (verdict, tags, count)


def test_what_is_known_to_fail_is_tried_once(puppet: ClientUnderTest) -> None:
    runs: list[str] = []
    item = passing(runs, wrong=9)
    known = KnownDefects(rows=(KnownRow(defect=DEFECT, id="PZQ-1.01", protocol="pzq"),))
    station = ClientHarness(puppet, known=known)
    assert station.judge(item).verdict is Verdict.FAIL
    station.close()
    assert len(runs) == 1


def test_what_a_rule_found_is_new_once(puppet: ClientUnderTest, monkeypatch: pytest.MonkeyPatch) -> None:
    shown = iter(["beats", "beats", "wire-legal", "", "no-storm"])

    async def settle(_: Runner, item: Scenario, **__: bool) -> Judgement:
        name = next(shown)
        return Judgement(item, Verdict.PASS, findings=(Finding(name, "what"),) if name else ())

    monkeypatch.setattr(Runner, "settle", settle)
    station = ClientHarness(
        puppet, known=KnownDefects(rows=(KnownRow(defect=DEFECT, rule="no-storm", protocol="pzq"),))
    )
    new = []
    for _ in range(5):
        station.judge(passing([]))
        new.append([rule.rule for rule in station.new_rules])
    station.close()
    assert new == [["beats"], [], ["wire-legal"], [], []]


def test_a_client_is_kept_until_it_is_closed(puppet: ClientUnderTest) -> None:
    station = ClientHarness(puppet)
    assert not station.is_open and station.hello is None
    for _ in range(3):
        assert station.judge(passing([])).verdict is Verdict.PASS
    assert (Puppet.made, station.is_open) == (1, True)
    assert station.hello is not None and station.hello.library == "puppet"
    station.close()
    station.close()
    assert not station.is_open
    assert station.judge(passing([])).verdict is Verdict.PASS
    station.close()
    assert Puppet.made == 2


def test_what_breaks_it_off_ends_the_client(puppet: ClientUnderTest) -> None:
    killed: list[str] = []

    class Watched(InProcessAdapter):
        async def kill(self) -> None:
            killed.append("killed")
            await super().kill()

    async def script(broker: Any, client: Client, expect: Expect) -> None:
        raise KeyboardInterrupt

    station = ClientHarness(puppet._replace(make=lambda: Watched(Puppet, "pzq")))
    with pytest.raises(KeyboardInterrupt):
        station.judge(row(script))
    assert killed and not station.is_open


def test_a_client_that_is_refused_is_asked_once(puppet: ClientUnderTest) -> None:
    asked: list[Hello] = []

    def refuse(hello: Hello) -> None:
        asked.append(hello)
        raise UsageError("about somebody else")

    station = ClientHarness(puppet, greeted=refuse)
    for _ in range(2):
        found = station.judge(passing([]))
        assert (found.verdict, found.reason) == (Verdict.HARNESS_ERROR, "about somebody else")
    station.close()
    assert len(asked) == 1


def test_a_client_that_does_not_start_is_tried_once(puppet: ClientUnderTest) -> None:
    tries: list[str] = []

    def make() -> InProcessAdapter:
        tries.append("try")
        raise AdapterFailed("no such program")

    station = ClientHarness(puppet._replace(make=make))
    for _ in range(2):
        assert station.judge(passing([])).reason == "no such program"
    station.close()
    assert len(tries) == 1


def test_who_it_is_not_for(puppet: ClientUnderTest) -> None:
    async def script(broker: Any, client: Client, expect: Expect) -> None:
        await asyncio.sleep(0)

    station = ClientHarness(puppet)
    assert station.judge(row(script, roles=("consumer",))).verdict is Verdict.PROFILE
    assert station.judge(row(script, process=True)).verdict is Verdict.UNSUPPORTED
    station.close()
