"""The base script of each protocol, and what else the scenarios need to know about it."""

from __future__ import annotations

from conformance.suite import Client, Expect
from fakebrokers.server import FakeServer
from scenarios.net._scripts import narconi, pzq, rabbitmq_stream
from scenarios.net._scripts.base import Op, Script

SCRIPTS: dict[str, type[Script]] = {
    "narconi": narconi.NarconiScript,
    "pzq": pzq.PzqScript,
    "rabbitmq-stream": rabbitmq_stream.StreamScript,
}

__all__ = ["Op", "Script", "script_for"]


def script_for(broker: FakeServer, client: Client, expect: Expect) -> Script:
    """The script of the fake's protocol."""
    return SCRIPTS[broker.protocol.name](broker, client, expect)
