"""One scenario on one client: which verdict, and who is to blame."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from conformance.clients.adapter.inprocess import InProcessAdapter
from conformance.clients.adapter.kit import AdapterBase, Failure, op
from conformance.clients.adapter.messages import Hello, body_bytes
from conformance.known.defects import Defect, KnownDefects, KnownRow
from conformance.results import Verdict
from conformance.rules import Finding
from conformance.suite import Client, Expect, evaluation
from conformance.suite.expect import Unsupported
from conformance.suite.judge import Judgement, judge, unfit
from conformance.suite.lag import LagMeter
from conformance.suite.load import requirement
from conformance.suite.pool import AdapterPool
from conformance.suite.runner import Runner
from conformance.suite.scenario import Scenario
from fakebrokers.core import virtual
from fakebrokers.errors import UsageError
from tests.toy import Toy

Script = Callable[[Any, Client, Expect], Awaitable[None]]


class Puppet(AdapterBase):
    """A client that does what the script of a test says."""

    adapter = library = "puppet"
    library_version = "1"
    language = "python"
    protocols = ("rabbitmq-stream",)
    roles = ("publisher",)
    caps = "ack_timeout"

    @op("connect")
    async def connect(self) -> None:
        pass

    @op("publish")
    async def publish(self, target: str) -> dict[str, str]:
        if target == "hang":
            await asyncio.sleep(1000)
        if target != "ok":
            raise Failure(target, f"{target}!", definite=target == "refused")
        return {"outcome": "acked"}


def row(script: Script, **more: Any) -> Scenario:
    return Scenario(requirement=requirement("RMQS-3.06"), protocol="rabbitmq-stream", script=script, **more)


def run(script: Script, **more: Any) -> Judgement:
    async def work() -> Judgement:
        adapter = InProcessAdapter(Puppet, "rabbitmq-stream")
        await adapter.start()
        try:
            return await judge(
                row(script, **more), adapter, lambda _: Toy(memory=True), endpoint=lambda _: "m:1"
            )
        finally:
            await adapter.kill()

    return virtual.run(work())


async def passes(broker: Any, client: Client, expect: Expect) -> None:
    await client.connected()
    expect.outcome(await client.publish("ok"), "acked", "it is acked", id="it-is-acked")


async def violates(broker: Any, client: Client, expect: Expect) -> None:
    expect.outcome(await client.publish("refused"), "acked", "it is acked", id="it-is-acked")


def test_a_pass() -> None:
    found = run(passes)
    assert found.verdict is Verdict.PASS
    assert not found.kills


def test_a_violated_criterion_is_a_failure_and_a_kill() -> None:
    found = run(violates)
    assert found.verdict is Verdict.FAIL
    assert found.criterion == "it is acked"
    assert "nacked" in found.actual
    assert found.kills


def test_a_preparation_that_fails_is_no_kill() -> None:
    async def script(broker: Any, client: Client, expect: Expect) -> None:
        expect.prepared(await client.publish("refused"))

    found = run(script)
    assert (found.verdict, found.tags) == (Verdict.FAIL, ("setup",))
    assert not found.kills


def test_what_is_tolerated_is_non_strict() -> None:
    async def script(broker: Any, client: Client, expect: Expect) -> None:
        expect.tolerate(False, "it should be quick", "it was slow", id="it-should-be-quick")

    found = run(script)
    assert found.verdict is Verdict.NON_STRICT
    assert found.reason == "it should be quick: it was slow"


def test_what_was_never_tried_is_inconclusive() -> None:
    async def script(broker: Any, client: Client, expect: Expect) -> None:
        expect.exercised(False, "the fault did not fire", id="the-fault-did-not-fire")

    assert run(script).verdict is Verdict.INCONCLUSIVE


def test_a_client_that_lacks_something_after_all() -> None:
    async def script(broker: Any, client: Client, expect: Expect) -> None:
        raise Unsupported("no such behaviour")

    assert run(script).verdict is Verdict.UNSUPPORTED


def test_a_hang_counts_even_if_the_script_does_not_look() -> None:
    async def script(broker: Any, client: Client, expect: Expect) -> None:
        await client.publish("hang", timeout=0.5)

    found = run(script)
    assert (found.verdict, found.tags) == (Verdict.FAIL, ("hang",))


@pytest.mark.parametrize("stumble", [KeyError("typo"), UsageError("no connection 'c1'"), ValueError("x")])
def test_a_script_that_stumbles_blames_nobody(stumble: Exception) -> None:
    async def script(broker: Any, client: Client, expect: Expect) -> None:
        raise stumble

    found = run(script)
    assert (found.verdict, found.criterion_id) == (Verdict.INCONCLUSIVE, "script-ended")
    assert str(stumble) in found.reason


def test_a_script_may_be_installed_among_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """From a wheel, suite and scripts lie where all packages lie; a stumbling script is one still."""
    top = Path(evaluation.__file__).parents[2]
    monkeypatch.setattr(evaluation, "_OTHERS", (*evaluation._OTHERS, top))
    reported = []
    for folder in ("scenarios", "conformance", "somebody"):
        code = compile("{}['typo']", str(top / folder / "orders.py"), "eval")
        with pytest.raises(KeyError) as caught:
            eval(code)
        reported.append(evaluation.leaves_open(caught.value))
    assert reported == [True, False, False]


def test_a_mistake_in_the_suite_or_the_fake_is_never_the_clients() -> None:
    async def script(broker: Any, client: Client, expect: Expect) -> None:
        body_bytes(None)  # type: ignore[arg-type] # raises inside the suite

    found = run(script)
    assert found.verdict is Verdict.HARNESS_ERROR
    assert "TypeError" in found.reason


def test_an_answer_that_lacks_something_is_the_clients_failure() -> None:
    async def script(broker: Any, client: Client, expect: Expect) -> None:
        value = expect.ok(await client.publish("ok"), "it is acked", id="it-is-acked")
        expect.equal(value["meta"]["offset"], 5, "its offset", id="its-offset")

    found = run(script)
    assert (found.verdict, found.criterion_id) == (Verdict.FAIL, "answer")
    assert "'meta'" in found.reason


def test_what_the_client_refuses_by_itself_was_never_tried() -> None:
    async def script(broker: Any, client: Client, expect: Expect) -> None:
        expect.prepared(await client.publish("invalid"))

    found = run(script)
    assert found.verdict is Verdict.INCONCLUSIVE
    assert "invalid!" in found.reason


def test_a_hang_is_a_failure_even_if_the_script_gave_up() -> None:
    async def script(broker: Any, client: Client, expect: Expect) -> None:
        await client.begin_publish("hang", timeout=0.5)
        expect.exercised(False, "the message did not come", id="the-message-did-not-come")

    found = run(script)
    assert (found.verdict, found.tags) == (Verdict.FAIL, ("hang",))
    assert "the message did not come" in found.reason


def test_an_error_inside_the_fake_is_never_the_clients() -> None:
    async def script(broker: Any, client: Client, expect: Expect) -> None:
        broker.engine.errors.append(RuntimeError("a defect of the fake"))

    assert run(script).verdict is Verdict.HARNESS_ERROR


def test_waiting_in_vain_is_a_failure() -> None:
    async def script(broker: Any, client: Client, expect: Expect) -> None:
        await broker.wait_for_async(kind="Hello", timeout=1.0)

    found = run(script)
    assert found.verdict is Verdict.FAIL
    assert "waited" in found.tags


def test_the_scripts_own_limit() -> None:
    async def script(broker: Any, client: Client, expect: Expect) -> None:
        await asyncio.sleep(60)

    assert run(script, timeout_s=1.0).verdict is Verdict.FAIL


@pytest.mark.parametrize(("took", "verdict"), [(1.1, Verdict.INCONCLUSIVE), (9.0, Verdict.FAIL)])
def test_a_harness_that_stood_still_excuses_as_much_as_that(took: float, verdict: Verdict) -> None:
    async def script(broker: Any, client: Client, expect: Expect) -> None:
        await asyncio.sleep(0.1)
        time.sleep(0.4)  # the loop stands still
        await asyncio.sleep(0.1)
        expect.within(took, 1.0, "in time", id="in-time")

    async def work() -> Judgement:
        adapter = InProcessAdapter(Puppet, "rabbitmq-stream")
        await adapter.start()
        try:
            return await judge(row(script), adapter, lambda _: Toy(memory=True), endpoint=lambda _: "m:1")
        finally:
            await adapter.kill()

    assert asyncio.run(work()).verdict is verdict


def test_the_fake_stops_whatever_happens() -> None:
    brokers: list[Any] = []

    async def script(broker: Any, client: Client, expect: Expect) -> None:
        brokers.append(broker)
        raise KeyError

    run(script)
    assert brokers[0]._loop is None


@pytest.mark.parametrize(
    ("more", "verdict"),
    [
        ({"roles": ("consumer",)}, Verdict.PROFILE),
        ({"roles": ("publisher",)}, None),
        ({"needs": ("tls",)}, Verdict.UNSUPPORTED),
        ({"needs": ("ack_timeout", "concurrent")}, None),
        ({"ops": ("rmqs.credit",)}, Verdict.UNSUPPORTED),
        ({"process": True}, Verdict.UNSUPPORTED),
    ],
)
def test_who_a_scenario_is_for(more: dict[str, Any], verdict: Verdict | None) -> None:
    async def work() -> None:
        adapter = InProcessAdapter(Puppet, "rabbitmq-stream")
        hello = await adapter.start()
        found = unfit(row(passes, **more), hello, in_process=True)
        assert (found.verdict if found else None) == verdict
        await adapter.kill()

    virtual.run(work())


@pytest.mark.parametrize(
    ("transporters", "refused"), [([], False), (["nats", "mqtt"], False), (["nats"], True)]
)
def test_a_transporter_that_the_client_lacks(transporters: list[str], refused: bool) -> None:
    hello = Hello("a", "a", "1", "node", ["moleculer"], ["caller"], [], transporters=transporters)
    item = msgspec.structs.replace(row(passes, variant="mqtt"), protocol="moleculer")
    found = unfit(item, hello)
    assert (found.reason if found else "") == ("this client does not speak mqtt" if refused else "")


class Sequel:
    """A script with another end each time it is run."""

    def __init__(self, *ends: str) -> None:
        self._ends = list(ends)
        self.runs = 0

    async def __call__(self, broker: Any, client: Client, expect: Expect) -> None:
        self.runs += 1
        end = self._ends.pop(0)
        if end == "late":
            expect.within(2.0, 1.0, "in time", id="in-time")
        if "slow" in end or "odd" in end:
            expect.lapse()
        if "odd" in end:
            expect.that(True, "something came", id="something-came")
        if "lax" in end:
            expect.tolerate(False, "it is strict", id="it-is-strict")
            return
        if end == "dead":
            await client.adapter.kill()
        expect.that(end == "good", "it works", end, id="worse" if end == "worse" else "works")


def settle(sequel: Sequel, known: KnownDefects | None = None) -> Judgement:
    async def work() -> Judgement:
        pool = AdapterPool(lambda: InProcessAdapter(Puppet, "rabbitmq-stream"))
        runner = Runner(pool, lambda _: Toy(memory=True), endpoint=lambda _: "m:1", known=known)
        (found,) = await runner.run([row(sequel)])
        return found

    return virtual.run(work())


@pytest.mark.parametrize(
    ("ends", "verdict", "flaky", "runs"),
    [
        (["good"], Verdict.PASS, False, 1),
        (["bad", "bad"], Verdict.FAIL, False, 2),
        (["bad", "good", "good"], Verdict.PASS, True, 3),
        (["bad", "good", "bad"], Verdict.FAIL, True, 3),
        (["late", "good"], Verdict.PASS, False, 2),  # late among many, in time apart
        (["late", "late", "late"], Verdict.FAIL, False, 3),
        (["late", "late", "good", "good"], Verdict.PASS, True, 4),
        (["slow", "slow", "slow"], Verdict.FAIL, False, 3),  # silent each time, apart from others too
        (["slow", "good"], Verdict.PASS, False, 2),  # silent among many, not apart
        (["dead", "dead"], Verdict.FAIL, False, 2),  # nobody dies of being late
    ],
)
def test_a_failure_gets_a_second_opinion(ends: list[str], verdict: Verdict, flaky: bool, runs: int) -> None:
    sequel = Sequel(*ends)
    found = settle(sequel)
    assert found.verdict is verdict
    assert ("flaky" in found.tags) is flaky
    assert sequel.runs == runs
    if "slow" in ends and verdict is Verdict.FAIL:
        assert "apart from others; client and harness waited 0.0" in found.reason


BROKEN = Defect("broken", "it is broken")
KNOWN = KnownDefects(rows=(KnownRow(defect=BROKEN, id="RMQS-3.06", protocol="rabbitmq-stream"),))


@pytest.mark.parametrize(
    ("ends", "starved", "known", "verdict", "runs"),
    [
        (["good"], [True], False, Verdict.PASS, 1),  # a pass is a pass, however slow the machine is
        (["bad", "bad"], [True, True], False, Verdict.FAIL, 2),  # nothing was waited for in vain
        (["bad", "worse", "bad", "bad"], [True, True, False, False], False, Verdict.FAIL, 4),
        (["bad", "worse"] * 3, [True] * 6, False, Verdict.INCONCLUSIVE, 6),  # another way each time
        (["bad", "good", "bad"] * 3, [True] * 9, False, Verdict.INCONCLUSIVE, 9),
        (["slow", "good"], [True, False], False, Verdict.PASS, 2),  # kept waiting in the crowd only
        (["slow", "slow", "slow"], [True, False, False], False, Verdict.FAIL, 3),
        (["slow", "slow", "slow", "slow"], [True, True, False, False], False, Verdict.FAIL, 4),  # alone
        (["slow", "slow", "slow"], [True, True, True], False, Verdict.INCONCLUSIVE, 3),
        (["late", "late", "late"], [True, True, True], False, Verdict.INCONCLUSIVE, 3),
        (["odd"] * 4, [True] * 4, False, Verdict.FAIL, 4),  # it rests on what came, the same each time
        (["odd", "odd", "odd", "more odd"], [True] * 4, False, Verdict.INCONCLUSIVE, 4),
        (["slow", "slow", "slow", "slow"], [True, False, True, True], False, Verdict.INCONCLUSIVE, 4),
        (["dead", "dead"], [True, True], False, Verdict.FAIL, 2),  # nobody dies of waiting
        (["lax"], [True], False, Verdict.NON_STRICT, 1),
        (["slowly lax", "good"], [True, False], False, Verdict.PASS, 2),
        (["slowly lax"] * 3, [True, True, True], False, Verdict.NON_STRICT, 3),  # stops nobody
        (["bad"], [True], True, Verdict.FAIL, 1),  # as known
        (["good", "good"], [False, False], True, Verdict.PASS, 2),  # a surprise, twice
        (["good", "bad", "bad"], [False, False, False], True, Verdict.FAIL, 3),
        (["good", "good", "good"], [True, True, True], True, Verdict.INCONCLUSIVE, 3),
    ],
)
def test_what_surprises_where_the_machine_kept_the_client_waiting(
    ends: list[str],
    starved: list[bool],
    known: bool,
    verdict: Verdict,
    runs: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    waits = iter(starved)
    monkeypatch.setattr(LagMeter, "is_starved", property(lambda _: next(waits)))
    sequel = Sequel(*ends)
    found = settle(sequel, KNOWN if known else None)
    assert (found.verdict, sequel.runs) == (verdict, runs)
    if verdict is Verdict.INCONCLUSIVE:
        assert "for a processor" in found.reason and found.timing
        assert known is ("a pass, which was not expected" in found.reason)


RULE = KnownRow(defect=Defect("slow", "it is slow"), rule="beats", protocol="rabbitmq-stream")


@pytest.mark.parametrize(
    ("shown", "starved", "known", "stand", "doubted", "notes", "runs"),
    [
        ([[], []], [False] * 2, (), [], [], 0, 1),
        ([["beats"]] * 3, [False] * 3, (), ["beats"], [], 0, 3),  # the first of them among many others
        ([["beats"], []], [False] * 2, (), [], [], 0, 2),  # among many others only
        ([["beats"], ["beats"], [], ["beats"]], [False] * 4, (), ["beats"], [], 0, 4),
        ([["beats"], ["beats"], [], []], [False] * 4, (), [], [], 1, 4),
        ([["beats"], ["beats"], ["wire-legal"], ["beats"]], [False] * 4, (), ["beats"], [], 1, 4),
        ([["beats"]] * 4, [True] * 4, (), ["beats"], ["beats"], 0, 4),  # the machine may have done it
        ([["beats"]] * 4, [True, True, True, False], (), ["beats"], [], 0, 4),  # it did not
        ([["beats"]], [True], (RULE,), ["beats"], [], 0, 1),  # as known
        ([["wire-legal"]] * 3, [False] * 3, (RULE,), ["wire-legal"], [], 0, 3),
    ],
)
def test_what_rules_found_stands_where_two_runs_show_it(
    shown: list[list[str]],
    starved: list[bool],
    known: tuple[KnownRow, ...],
    stand: list[str],
    doubted: list[str],
    notes: int,
    runs: int,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    each = iter(zip(shown, starved, strict=True))
    count = 0

    async def once(_: Runner, item: Scenario, *, fresh: bool = False) -> Judgement:
        nonlocal count
        count += 1
        names, is_starved = next(each)
        findings = tuple(Finding(name, "what happened") for name in names)
        return Judgement(item, Verdict.PASS, findings=findings, is_starved=is_starved)

    monkeypatch.setattr(Runner, "once", once)
    found = settle(Sequel(), KnownDefects(rows=known))
    assert found.verdict is Verdict.PASS  # a row is decided by its own criteria
    assert [finding.name for finding in found.broken] == stand
    assert (sorted(found.doubted), len(found.notes), count) == (doubted, notes, runs)
    assert "flaky" not in found.tags, "the row itself ended the same each time"


def test_a_failure_is_not_flaky_for_what_rules_find_in_its_runs(monkeypatch: pytest.MonkeyPatch) -> None:
    each = iter([[], ["beats"], ["beats"], ["wire-legal"], []])

    async def once(_: Runner, item: Scenario, *, fresh: bool = False) -> Judgement:
        findings = tuple(Finding(name, "what happened") for name in next(each))
        return Judgement(item, Verdict.FAIL, criterion_id="works", reason="bad", findings=findings)

    monkeypatch.setattr(Runner, "once", once)
    found = settle(Sequel())
    assert (found.verdict, found.tags) == (Verdict.FAIL, ())


async def no_event(broker: Any, client: Client, expect: Expect) -> None:
    await client.event("never", 0.1)


async def no_message(broker: Any, client: Client, expect: Expect) -> None:
    await client.wait_messages(1, within_s=0.1)


async def no_frame(broker: Any, client: Client, expect: Expect) -> None:
    await expect.wire(broker, "a frame comes", within_s=0.1, kind="Frame", id="a-frame-comes")


async def not_reached(broker: Any, client: Client, expect: Expect) -> None:
    await expect.reached(broker, "a frame comes", within_s=0.1, kind="Frame", id="a-frame-comes")


async def times_out(broker: Any, client: Client, expect: Expect) -> None:
    await client.connected()
    expect.ok(await client.publish("timeout"), "it is published", id="it-is-published")


@pytest.mark.parametrize(
    ("script", "lapsed"),
    [
        (no_event, True),
        (no_message, True),
        (no_frame, True),
        (not_reached, True),
        (times_out, True),
        (violates, False),
        (passes, False),
    ],
)
def test_a_script_that_waits_in_vain_rests_on_time(script: Script, lapsed: bool) -> None:
    assert run(script).lapsed is lapsed


def test_a_fresh_client_after_anything_but_a_pass() -> None:
    async def work() -> int:
        pool = AdapterPool(lambda: InProcessAdapter(Puppet, "rabbitmq-stream"))
        runner = Runner(pool, lambda _: Toy(memory=True), endpoint=lambda _: "m:1", parallel=1)
        names = ["RMQS-3.06", "RMQS-3.08", "RMQS-3.09"]
        scripts: list[Script] = [passes, passes, violates]
        rows = [
            msgspec.structs.replace(row(script), requirement=requirement(name))
            for name, script in zip(names, scripts, strict=True)
        ]
        await runner.run(rows)
        return pool.started

    assert virtual.run(work()) == 1 + 1  # one for all that pass, a fresh one for the second opinion


@pytest.mark.parametrize(("limits", "at_once"), [({}, 3), ({"processes": 2}, 2), ({"processes": 9}, 3)])
def test_no_more_processes_than_a_machine_carries(limits: dict[str, int], at_once: int) -> None:
    running, most = 0, 0

    class Heavy(Puppet):
        pass

    Heavy.limits = limits

    async def busy(broker: Any, client: Client, expect: Expect) -> None:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await asyncio.sleep(0.1)
        running -= 1

    async def work() -> None:
        pool = AdapterPool(lambda: InProcessAdapter(Heavy, "rabbitmq-stream"))
        runner = Runner(pool, lambda _: Toy(memory=True), endpoint=lambda _: "m:1", parallel=3)
        names = ["RMQS-3.06", "RMQS-3.08", "RMQS-3.09", "RMQS-3.10"]
        await runner.run([msgspec.structs.replace(row(busy), requirement=requirement(n)) for n in names])

    virtual.run(work())
    assert most == at_once


@pytest.mark.parametrize(("excuse", "verdict"), [("", Verdict.FAIL), ("it met its double", Verdict.PASS)])
def test_a_client_that_ends_has_failed_unless_it_may(excuse: str, verdict: Verdict) -> None:
    async def script(broker: Any, client: Client, expect: Expect) -> None:
        await passes(broker, client, expect)
        if excuse:
            expect.may_end(excuse)
        await client.adapter.kill()

    assert run(script).verdict is verdict


def test_an_end_needs_its_reason() -> None:
    with pytest.raises(UsageError, match="give a reason"):
        Expect().may_end(" ")
