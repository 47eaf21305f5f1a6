"""What all connections of the NATS server share, with fake nodes beside the clients."""

from __future__ import annotations

from random import Random
from typing import Any

from fakebrokers.moleculer.bus import Bus, BusOptions, Listening, nobody
from fakebrokers.nats.access import Access
from fakebrokers.nats.broker import NatsBroker
from fakebrokers.nats.nodes import new_nodes
from fakebrokers.nats.profile import Profile


class NatsBus(Bus, NatsBroker):
    """Subjects, queue groups and the sessions of clients."""

    def __init__(self, options: BusOptions, random: Random) -> None:
        profile = Profile(
            name="real",
            max_payload=options.max_payload,
            ping_interval_s=options.ping_interval_s,
            ping_max=options.ping_max,
            auth_timeout_s=options.auth_timeout_s,
        )
        users = {options.user: options.password} if options.user or options.password else {}
        NatsBroker.__init__(self, profile, Access(users, options.token), new_nodes(1, random), random)
        Bus.__init__(self, options)

    def bound(self, host: str, port: int) -> None:
        super().bound(host, port)
        self.nodes[0].host, self.nodes[0].port = host, port

    def publish(self, topic: str, payload: bytes, now: float, node: str = "") -> int:
        self.now = now
        return self.route(Listening(nobody, node), topic, "", b"", payload)

    def hears(self, origin: Any, listener: Any) -> bool:
        if self.partitions and self.parted(origin.node, listener.node):
            return False
        return listener is not origin or origin.echo
