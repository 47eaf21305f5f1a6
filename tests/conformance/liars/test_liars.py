"""Adapters that lie pass nothing that they have not done, and no word of theirs is the suite's failure."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

import pytest
from _pytest.mark import ParameterSet

from conformance.clients.adapter.inprocess import InProcessAdapter
from conformance.clients.adapter.process import ProcessAdapter
from conformance.clients.mutants.matrix import GOOD, Mode, mode_of
from conformance.results import Verdict
from conformance.suite.brokers import fake_for
from conformance.suite.evaluation import ADAPTER
from conformance.suite.judge import Judgement, judge, unfit
from conformance.suite.load import all_scenarios
from conformance.suite.scenario import Scenario
from fakebrokers.core import virtual
from tests.conformance.liars.liars import liar

PROGRAM = Path(__file__).with_name("liars.py")
ROOT = Path(__file__).parents[3]
PROTOCOLS = ("rabbitmq-stream", "narconi", "pzq", "blazingmq", "moleculer")
AT_ONCE = 8

#: What is about the opening of a session only, which these two do for real.
OPENS = "the handshake is real, and it is all that the scenario is about"
LISTENS = "the subscription is real, and nothing is published or settled"
HANDSHAKES = {
    **dict.fromkeys(
        (
            *("RMQS-1.01", "RMQS-1.02", "RMQS-1.03", "RMQS-1.04", "RMQS-1.05", "RMQS-1.06", "RMQS-1.07"),
            *("RMQS-1.08", "RMQS-1.09", "RMQS-1.10", "RMQS-1.11", "RMQS-1.14", "RMQS-1.15", "RMQS-1.16"),
            *("RMQS-1.17", "RMQS-1.18", "RMQS-1.20", "NET-1.13", "NET-1.14", "NET-1.15", "NET-2.06"),
        ),
        OPENS,
    ),
    "RMQS-5.01": "heartbeats are the connection's, which is real",
    "RMQS-6.03": "the connection, which is real, outlives what the broker says unasked",
    "RMQS-6.07": "the connection, which is real, outlives what the broker says unasked",
}
ENSURES = dict.fromkeys(
    ("NARC-1.01", "NARC-1.07", "NARC-1.16"), "queues are made for real, and that is all it is about"
)
CONSUMES = dict.fromkeys(("PZQ-2.02", "PZQ-2.03", "PZQ-2.10", "PZQ-2.12", "PZQ-2.13", "PZQ-2.14"), LISTENS)
SESSIONS = {
    **dict.fromkeys(
        (
            *("BMQ-1.01", "BMQ-1.02", "BMQ-1.03", "BMQ-1.04", "BMQ-1.05", "BMQ-1.06", "BMQ-1.08", "BMQ-1.09"),
            *("BMQ-1.11", "BMQ-1.12", "BMQ-1.13", "BMQ-1.16", "NET-1.13", "NET-2.06"),
        ),
        OPENS,
    ),
    "BMQ-1.10": "nobody listens, and the connect fails for real",
    **dict.fromkeys(("BMQ-5.01", "BMQ-5.04", "BMQ-5.05"), "heartbeats are the connection's, which is real"),
    **dict.fromkeys(("BMQ-5.10", "BMQ-5.12", "BMQ-5.15", "BMQ-5.16"), "so are its loss and its return"),
    **dict.fromkeys(
        ("BMQ-6.03", "BMQ-6.04", "BMQ-6.07", "BMQ-6.08", "BMQ-6.09"),
        "starting and stopping are real, and that is all it is about",
    ),
}
NODES = {
    **dict.fromkeys(("MOL-1.01", "MOL-1.09"), "the node is real, and it is about its discovery only"),
    **dict.fromkeys(("MOL-2.01", "MOL-2.02"), "heartbeats are the node's, which is real"),
    **dict.fromkeys(("NET-1.13", "NET-1.14", "NET-2.06"), OPENS),
}

#: What a liar may pass, and why that is right; for everything else it has to do what it says.
MAY_PASS: Mapping[tuple[str, str], Mapping[str, str]] = {
    ("greeter", "rabbitmq-stream"): {
        **HANDSHAKES,
    },
    ("babbler", "rabbitmq-stream"): HANDSHAKES,
    ("greeter", "narconi"): ENSURES,
    ("babbler", "narconi"): ENSURES,
    ("greeter", "pzq"): {
        **CONSUMES,
        "PZQ-3.07": LISTENS,
        "PZQ-2.15": "settling ends either way: the broker is gone",
    },
    ("babbler", "pzq"): CONSUMES,
    ("caller", "blazingmq"): {"BMQ-1.10": SESSIONS["BMQ-1.10"]},
    ("greeter", "blazingmq"): SESSIONS,
    ("babbler", "blazingmq"): SESSIONS,
    ("greeter", "moleculer"): NODES,
    ("babbler", "moleculer"): NODES,
}
KINDS = ("absent", "caller", "greeter", "refuser", "babbler")


def rows(protocol: str, *, memory: bool) -> list[Scenario]:
    """The scenarios of a protocol that need no real time, or those that do."""
    return [
        item
        for item in all_scenarios()
        if item.protocol == protocol and not item.soak and (mode_of(item) is Mode.MEMORY) is memory
    ]


def in_memory(kind: str, item: Scenario) -> Judgement:
    """One scenario on virtual time."""

    async def work() -> Judgement:
        adapter = InProcessAdapter(liar(kind, item.protocol, memory=True), item.protocol)
        hello = await adapter.start()
        try:
            refused = unfit(item, hello, in_process=True)
            return refused or await judge(item, adapter, fake_for(memory=True))
        finally:
            await adapter.kill()

    return virtual.run(work())


async def over_sockets(kind: str, items: Iterable[Scenario]) -> list[Judgement]:
    """Scenarios in real time, each liar in a process of its own."""
    material = asyncio.Semaphore(AT_ONCE)

    async def one(item: Scenario) -> Judgement:
        command = [sys.executable, str(PROGRAM), kind, item.protocol]
        adapter = ProcessAdapter(command, item.protocol, env={"PYTHONPATH": str(ROOT)})
        async with material:
            hello = await adapter.start()
            try:
                return unfit(item, hello) or await judge(item, adapter, fake_for())
            finally:
                await adapter.kill()

    return await asyncio.gather(*(one(item) for item in items))


def undeserved(kind: str, protocol: str, found: Iterable[Judgement]) -> list[str]:
    """What is wrong with the verdicts on a liar."""
    excused = MAY_PASS.get((kind, protocol), {})
    return [
        f"{each.scenario.label}: {each.verdict}: {each.reason or each.actual}"
        for each in found
        if (each.verdict is Verdict.HARNESS_ERROR and ADAPTER not in each.tags)
        or (each.verdict in GOOD and each.scenario.id not in excused)
    ]


def lies(kind: str, protocol: str) -> ParameterSet:
    """At every push each kind lies in two protocols, so that each protocol is lied in twice."""
    apart = (PROTOCOLS.index(protocol) - KINDS.index(kind)) % len(PROTOCOLS)
    return pytest.param(kind, protocol, marks=() if apart < 2 else pytest.mark.full)


@pytest.mark.parametrize(
    ("kind", "protocol"), [lies(kind, protocol) for kind in KINDS for protocol in PROTOCOLS]
)
def test_a_liar_passes_nothing_that_it_has_not_done(kind: str, protocol: str) -> None:
    found = [in_memory(kind, item) for item in rows(protocol, memory=True)]
    assert not undeserved(kind, protocol, found)
    passed = {each.scenario.id for each in found if each.verdict in GOOD}
    stale = set(MAY_PASS.get((kind, protocol), {})) - passed - {i.id for i in rows(protocol, memory=False)}
    assert not stale, f"take these out of the list: {sorted(stale)}"


@pytest.mark.full
@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("kind", ["absent", "greeter"])
def test_nor_over_sockets(kind: str, protocol: str) -> None:
    found = asyncio.run(over_sockets(kind, rows(protocol, memory=False)))
    assert not undeserved(kind, protocol, found)
