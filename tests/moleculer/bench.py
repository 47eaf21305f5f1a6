"""Connections to a bus without sockets or clocks: see `tests.bench`.

bench = Bench("nats")
client = bench.connect()
assert client.say(b"PING\r\n") == b"PONG\r\n"
"""

from __future__ import annotations

from typing import Any

from fakebrokers.faults import Fault, Plan
from fakebrokers.moleculer.server import Moleculer
from tests import bench
from tests.bench import EOF, Client

__all__ = ["EOF", "Bench", "Client"]


class Bench(bench.Bench):
    """One fake; `now` is monotonic seconds."""

    def __init__(self, transporter: str = "nats", *faults: Fault, **options: Any) -> None:
        super().__init__(Moleculer(transporter=transporter, faults=Plan(faults=faults), **options))
