"""The fake Moleculer network, as tests see it."""

from __future__ import annotations

from collections.abc import Sequence
from random import Random
from typing import Any

from fakebrokers.core.engine import Clock
from fakebrokers.core.listeners import Endpoint
from fakebrokers.core.session import Codec, Session
from fakebrokers.core.wire import Wire
from fakebrokers.errors import UsageError
from fakebrokers.moleculer.broker import MoleculerBroker
from fakebrokers.moleculer.bus import BusOptions
from fakebrokers.moleculer.nats.bus import NatsBus
from fakebrokers.moleculer.nats.codec import NatsCodec
from fakebrokers.moleculer.nats.session import NatsSession
from fakebrokers.moleculer.profile import find_profile
from fakebrokers.moleculer.protocol import PROTOCOL
from fakebrokers.protocol import instead_of
from fakebrokers.server import FakeServer

#: Bytes up to which a frame stays in the journal: an INFO is a few thousand bytes long, and worth a look.
BODY_LIMIT = 64 * 1024


class Moleculer(FakeServer):
    """A message bus that Moleculer nodes join, with fake nodes on it.

        with Moleculer(transporter="nats") as moleculer:
            ...                                     # nodes connect to moleculer.url

    Args:
        transporter: What carries the packets: ``nats``.
        profile: ``real`` (0.15), ``0.15``, ``0.14`` or ``seed``: what the fake nodes are.
        serializer: How the fake nodes write packets.
        namespace: Of the fake nodes.
        user, password, token: What clients of the bus have to show.
        bus: Further fields of `BusOptions`, such as ``{"max_payload": 1000}``.
        options: Those of `FakeServer`.
    """

    protocol = PROTOCOL
    broker: MoleculerBroker

    def __init__(
        self,
        *,
        transporter: str = "nats",
        profile: str = "real",
        serializer: str = "JSON",
        namespace: str = "",
        user: str = "",
        password: str = "",
        token: str = "",
        bus: dict[str, Any] | None = None,
        body_limit: int = BODY_LIMIT,
        **options: Any,
    ) -> None:
        if transporter not in self.protocol.variants:
            hint = instead_of(transporter, self.protocol.variants)
            raise UsageError(f"moleculer has no transporter {transporter!r}{hint}")
        self.transporter = transporter
        self.namespace = namespace
        self._profile = find_profile(profile)
        self.bus_options = BusOptions(
            serializer=serializer, user=user, password=password, token=token, **(bus or {})
        )
        super().__init__(profile=profile, body_limit=body_limit, **options)

    @property
    def wires(self) -> Sequence[Wire]:
        """The wire of the transporter."""
        return (self.protocol.wire(self.transporter),)

    def make_broker(self, clock: Clock) -> MoleculerBroker:
        """The bus of the transporter."""
        server_id = "N" + "".join(Random().choices("ABCDEFGHIJKLMNOPQRSTUVWXYZ234567", k=55))
        return MoleculerBroker(self._profile, NatsBus(self.bus_options, server_id), clock.wall)

    def endpoints(self) -> list[Endpoint]:
        return [Endpoint(self.wires[0], self._new_session, self._wanted_port)]

    def bound(self) -> None:
        """Tell the bus its address."""
        bus = self.broker.bus
        assert isinstance(bus, NatsBus)
        bus.host, bus.port = self.host, self.port

    def _new_session(self, transport: Any) -> tuple[Session, Codec]:
        bus = self.broker.bus
        assert isinstance(bus, NatsBus)
        codec = NatsCodec(max_payload=self.bus_options.max_payload)
        return NatsSession(bus, codec), codec

    @property
    def scheme(self) -> str:
        return self.transporter
