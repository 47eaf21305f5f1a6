"""Runs one scenario once: fake, client, script, verdict."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Any

import msgspec

from conformance.clients.adapter.base import Adapter
from conformance.clients.adapter.contract import Contract
from conformance.clients.adapter.messages import Hello
from conformance.results import Verdict
from conformance.rules import HARNESS, findings
from conformance.rules.anomalies.anomaly import LAG, STEAL
from conformance.run.stored import rows_of
from conformance.suite.client import Client
from conformance.suite.deeds import Deeds
from conformance.suite.earned import demand_earned
from conformance.suite.evaluation import Evaluation, died, leaves_open
from conformance.suite.evidence import plan_of, proxy_of, records_of, trouble_of
from conformance.suite.expect import Expect, Violated
from conformance.suite.judgement import Judgement
from conformance.suite.lag import LagMeter
from conformance.suite.op_journal import write_ops
from conformance.suite.scenario import Scenario
from conformance.suite.traced import TracedRun, touched
from conformance.suite.unnamed import expect_for
from fakebrokers.core.onlooking import can_be_watched, record_holdings, watch_wire
from fakebrokers.journal import Journal, RunJournal
from fakebrokers.journal.secrets import without_secrets
from fakebrokers.protocol import find_protocol

__all__ = ["Judgement", "judge", "unfit"]

LINES_MAX, LINE_MAX = 1000, 2000  #: of a client's standard error, and characters of each, in its journal
#: Allows what a scenario's own requirement allows, where a word of the client's contract allows other things.
THIS_ROW = "this_row"


def unfit(
    scenario: Scenario, hello: Hello, *, in_process: bool = False, target: bool = False
) -> Judgement | None:
    """The verdict on a scenario that this client is not for; None if it is."""
    missing = [role for role in scenario.roles if role not in hello.roles]
    if missing:
        return Judgement(
            scenario, Verdict.PROFILE, reason=f"not for this client: it is no {', '.join(missing)}"
        )
    if scenario.protocol not in hello.protocols:
        return Judgement(scenario, Verdict.PROFILE, reason=f"this client does not speak {scenario.protocol}")
    transporters = hello.transporters or [scenario.variant]
    if scenario.variant in find_protocol(scenario.protocol).variants and scenario.variant not in transporters:
        return Judgement(scenario, Verdict.PROFILE, reason=f"this client does not speak {scenario.variant}")
    lacking = [need for need in scenario.needs if not hello.can(need)]
    lacking += [op for op in scenario.ops if op not in hello.ops]
    if lacking:
        return Judgement(
            scenario, Verdict.UNSUPPORTED, reason=f"the adapter does not declare {', '.join(lacking)}"
        )
    if scenario.process and in_process:
        return Judgement(scenario, Verdict.UNSUPPORTED, reason="needs a client in a process of its own")
    if target and not scenario.target:
        return Judgement(scenario, Verdict.PROFILE, reason="needs a fake, which can be made to misbehave")
    return None


async def judge(
    scenario: Scenario,
    adapter: Adapter,
    make_broker: Callable[[Scenario], Any],
    *,
    endpoint: Callable[[Any], str] | None = None,
    connect_options: dict[str, Any] | None = None,
    note: RunJournal | None = None,
    invariants: bool = True,
) -> Judgement:
    """Run the script once.

    Args:
        adapter: A client that has said hello and was reset.
        make_broker: Makes the fake, not started; or something in its place for a real broker.
        note: Where the run is written down, wire and ops; closed at the end.
        endpoint: Returns where clients connect; default what the fake says (`FakeServer.where`).
        invariants: Whether the rules of `conformance.rules` judge the run besides.
    """
    loop = asyncio.get_running_loop()
    expect = expect_for(scenario)(wire=endpoint is None)
    begun, began_at = loop.time(), time.time()
    mark = adapter.stderr_mark
    broker = make_broker(scenario)
    deeds = Deeds(broker, loop.time)
    traced = _taken_down(adapter, broker, note, invariants)
    lag = LagMeter(adapter)
    error: Exception | None = None
    try:
        async with lag:
            where = endpoint or (lambda fake: fake.where)
            await _play(
                scenario,
                broker,
                lambda: Client(adapter, where(broker), expect, connect_options),
                expect,
                traced,
            )
        demand_earned(scenario, broker, expect, adapter.acked)
    except Exception as caught:
        error = caught
    judged = msgspec.structs.replace(
        _judged(scenario, adapter, broker, expect, error, lag, mark),
        seconds=loop.time() - begun,
        began_at=began_at,
        deeds=tuple(deeds.done),
        run=note.run if note is not None else "",
        adapter=trouble_of(adapter, mark),
        stderr=adapter.stderr(mark),
    )
    if traced is not None and adapter.facts() is not None:
        judged = await asyncio.to_thread(_weighed, judged, traced, broker, note)  # others run beside it
    elif traced is not None:
        judged = _weighed(judged, traced, broker, note)
    if note is not None:
        if traced is not None:
            note.attributes(ends=traced.ends)
        if judged.verdict is Verdict.FAIL or judged.findings:
            for at_s, line in adapter.stderr_lines(mark)[-LINES_MAX:]:
                note.logged(at_s, str(without_secrets(line))[:LINE_MAX])
        _write_down(note, judged, adapter, getattr(broker, "journal", None), lag)
        if note.failure is not None:
            judged = msgspec.structs.replace(judged, verdict=Verdict.HARNESS_ERROR, reason=str(note.failure))
    return judged


def _taken_down(adapter: Adapter, broker: Any, note: RunJournal | None, invariants: bool) -> TracedRun | None:
    """From here on the run is written down: to disk, and on a trace for the rules."""
    if note is not None and hasattr(broker, "journal"):
        broker.journal.sink = note
        if can_be_watched(broker):
            record_holdings(broker)
    adapter.forget_peak()
    if not invariants:
        return None
    traced = TracedRun(adapter)
    if can_be_watched(broker):
        watch_wire(broker, traced.trace)
    return traced


def _judged(
    scenario: Scenario,
    adapter: Adapter,
    broker: Any,
    expect: Expect,
    error: Exception | None,
    lag: LagMeter,
    mark: int,
) -> Judgement:
    """The verdict on a script that ended with this error, or with None, and what it rests on."""
    verdict, details = Evaluation(adapter, broker, lag.worst_s, mark).verdict(error, expect)
    return Judgement(
        scenario,
        verdict,
        notes=tuple(expect.notes),
        tolerated=tuple(expect.tolerated),
        met=tuple(dict.fromkeys(expect.met)),
        records=tuple(records_of(broker)),
        plan=plan_of(broker),
        proxy_plan=plan_of(proxy_of(broker)),
        transcript=tuple(adapter.transcript.dump()),
        lag_s=lag.worst_s,
        lapsed=expect.lapsed,
        just_lapsed=expect.just_lapsed,
        waited_s=lag.waited_s,
        is_starved=lag.is_starved,
        **details,
    )


def _weighed(judged: Judgement, traced: TracedRun, broker: Any, note: RunJournal | None) -> Judgement:
    """The judgement with what the rules that hold in every run have found.

    The verdict is the script's: what it is about is decided by its own criteria alone. A run that the harness
    has spoilt is not the rules' to judge.
    """
    if judged.verdict in (Verdict.UNSUPPORTED, Verdict.PROFILE, Verdict.HARNESS_ERROR) or judged.timing:
        return judged
    why = traced.unread(judged.scenario, broker, judged.records)
    if why:
        return msgspec.structs.replace(judged, notes=(*judged.notes, f"not judged by the rules: {why}"))
    case = traced.case(judged.scenario, broker, judged.records, lag_s=judged.lag_s)
    case.is_starved = judged.is_starved
    if note is not None:
        note.trace(rows_of(case, judged.scenario.allows))
    found = [
        each._replace(allowed=THIS_ROW) if each.name in judged.scenario.allows else each
        for each in findings(case)
    ]
    notes = [str(each) for each in found if each.allowed or each.name == HARNESS]
    return msgspec.structs.replace(judged, notes=(*judged.notes, *notes), findings=tuple(found))


def _write_down(
    note: RunJournal, judged: Judgement, adapter: Adapter, wire: Journal | None, lag: LagMeter
) -> None:
    """Complete the run's journal, whose wire was written as it went, and close it."""
    if wire is not None:
        wire.sink = None
    write_ops(note, judged.scenario, adapter.transcript.lines, wire, judged.deeds)
    now = asyncio.get_running_loop().time()
    note.metric(now, LAG, lag.worst_s * 1000)
    if lag.steal is not None:
        note.metric(now, STEAL, lag.steal)
    faults = [*judged.plan.get("faults", ()), *judged.proxy_plan.get("faults", ())]
    facts = adapter.facts()
    note.close(
        verdict=judged.verdict.value,
        faults=len(faults),
        touched=touched(judged.records),
        memory_peak=None if facts is None else facts.peak_bytes,
        may=Contract(adapter.hello).words,
        findings=tuple(":".join(filter(None, (each.name, each.allowed))) for each in judged.findings),
    )


async def _play(
    scenario: Scenario,
    broker: Any,
    connect: Callable[[], Client],
    expect: Expect,
    traced: TracedRun | None,
) -> None:
    """Start the fake, run the script within its limit, stop the fake whatever happened."""
    broker.start()
    try:
        client = connect()
        try:
            await _supervised(scenario, broker, client, expect)
        except Exception as error:
            await client.adapter.settle(patiently=leaves_open(error))  # while the fake still runs
            raise
        _look_around(client, expect)
    finally:
        if traced is not None:
            traced.end()
        broker.stop()
    broker.check()


async def _supervised(scenario: Scenario, broker: Any, client: Client, expect: Expect) -> None:
    """Run the script, as long as its time lasts and the adapter keeps to its protocol."""
    script = asyncio.ensure_future(scenario.play(broker, client, expect))

    def stop() -> None:
        script.cancel()

    client.adapter.on_violation = stop
    try:
        done, _ = await asyncio.wait({script}, timeout=scenario.timeout_s)
        if done and not (script.cancelled() and client.adapter.violations):
            script.result()
        elif not done:
            raise TimeoutError
    finally:
        client.adapter.on_violation = lambda: None
        script.cancel()
        await asyncio.wait({script})


def _look_around(client: Client, expect: Expect) -> None:
    """What counts even if the script did not look: a client that died, an op that never ended."""
    if not client.alive and not expect.may_die:
        raise died("it ended")
    for result in client.results:
        if result.hang and result not in expect.excused:
            raise Violated(f"{result.op} ends by its deadline", str(result), tags=("hang",), id="op-ends")
