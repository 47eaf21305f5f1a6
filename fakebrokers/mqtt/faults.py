"""Faults that exist only here, as effects and ready-made (docs/protocols/mqtt.md, 4 "What goes wrong").

mqtt.faults.add(fault(LoseSession(), role="close"))
mqtt.faults.add(refuse_login(4, nth=1))
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fakebrokers.faults.build import drop, reply
from fakebrokers.faults.effect import Action, Effect, Passage, Realism
from fakebrokers.faults.plan import Fault

if TYPE_CHECKING:
    from fakebrokers.core.engine import Engine
    from fakebrokers.core.host import Host


def client_on(engine: Engine, connection: str) -> str:
    """The id of the client on a connection that is open; "" before its CONNECT."""
    session: Any = engine.connections[connection].session
    return "" if session.client is None else str(session.client.id)


def lose(engine: Engine, client: str, fault: str = "") -> None:
    """The server forgets a client; one that is connected when its connection ends."""
    broker: Any = engine.broker
    known = broker.clients.get(client)
    if known is not None:
        engine.journal.state(engine.now, "", "session lost", client, fault)
        known.lasts = False
        if known.session is None:
            broker.forget(known)


def send_again(engine: Engine, client: str, fault: str = "") -> None:
    """What a client has not acknowledged comes again, at the end of the step at hand."""
    broker: Any = engine.broker
    known = broker.clients.get(client)
    if known is not None and known.session is not None:
        engine.journal.state(engine.now, "", "redelivery", client, fault)
        broker.redeliver(known)


class ForgetClient(Action, frozen=True):
    """What is remembered of a client is gone; see `LoseSession`."""

    client: str

    def perform(self, host: Host, fault: str, connection: str) -> None:
        lose(host.engine, self.client or client_on(host.engine, connection), fault)


class SendAgain(Action, frozen=True):
    """What a client has not acknowledged comes again; see `Redeliver`."""

    def perform(self, host: Host, fault: str, connection: str) -> None:
        send_again(host.engine, client_on(host.engine, connection), fault)


class LoseSession(Effect, frozen=True, tag="lose-session"):
    """The server forgets a client, with its filters and messages; a connected one once it goes.

    Attributes:
        client: Its id; "": that of the connection, or in CONNECT.
    """

    needs_frame = False
    needs_broker = True
    once = True
    realism = Realism.LEGAL
    client: str = ""

    def apply(self, passage: Passage) -> None:
        passage.pass_through()
        passage.host(ForgetClient(self.client or getattr(passage.frame, "client_id", "")))


class Redeliver(Effect, frozen=True, tag="redeliver"):
    """What the client has not acknowledged comes again, with DUP, though its connection has not ended."""

    needs_frame = False
    needs_broker = True
    once = True
    realism = Realism.LEGAL

    def apply(self, passage: Passage) -> None:
        passage.pass_through()
        passage.host(SendAgain())


EFFECTS = (LoseSession, Redeliver)


def refuse_login(code: int = 5, **match: Any) -> Fault:
    """CONNACK with a reason: 1 protocol, 2 client id, 3 not available, 4 bad login, 5 not authorized."""
    return reply(code, kind="Connect", **match)


def refuse_subscription(**match: Any) -> Fault:
    """SUBACK says 0x80 for each filter; the server does not hear of the SUBSCRIBE."""
    return reply(0x80, kind="Subscribe", **match)


def lose_pings(**match: Any) -> Fault:
    """The server does not answer PINGREQ."""
    return drop(kind="Pingresp", **match)
