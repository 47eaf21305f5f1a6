"""Faults that exist only here, as effects and ready-made (docs/protocols/nats.md, 5 "What goes wrong").

nats.faults.add(expire_login(role="publish", nth=3))
nats.faults.add(fault(LameDuck(), role="deliver", nth=10))
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fakebrokers.errors import PlanError
from fakebrokers.faults.build import drop, fault
from fakebrokers.faults.effect import Action, Effect, Passage, Realism
from fakebrokers.faults.plan import Fault

if TYPE_CHECKING:
    from fakebrokers.core.host import Host
    from fakebrokers.nats.server import NATS


class Leave(Action, frozen=True):
    """A node tells its clients that it will stop; see `LameDuck`."""

    node: int

    def perform(self, host: Host, fault: str, connection: str) -> None:
        server: NATS = host.server
        server.lame_duck(self.node or server.node_of(connection), fault=fault)


class Complain(Action, frozen=True):
    """The server says what is wrong, and hangs up; see `SayError`."""

    text: str

    def perform(self, host: Host, fault: str, connection: str) -> None:
        server: NATS = host.server
        server.say_error(connection, self.text, fault=fault)


class LameDuck(Effect, frozen=True, tag="lame-duck"):
    """A server takes no new clients, warns those that it has, and ends them some seconds later.

    Attributes:
        node: Its number, from 1; 0: that of the connection.
    """

    needs_frame = False
    needs_broker = True
    once = True
    per_run = True
    realism = Realism.LEGAL
    node: int = 0

    def apply(self, passage: Passage) -> None:
        passage.pass_through()
        passage.host(Leave(self.node))

    def check(self, path: str) -> None:
        if self.node < 0:
            raise PlanError(f"{path}.node", f"expected a node's number from 1, or 0; got {self.node}")


class SayError(Effect, frozen=True, tag="say-error"):
    """``-ERR``, and the end of the connection, as after a slow consumer or at the end of a login.

    Attributes:
        text: What comes after ``-ERR``.
    """

    needs_frame = False
    needs_broker = True
    once = True
    realism = Realism.LEGAL
    text: str

    def apply(self, passage: Passage) -> None:
        passage.pass_through()
        passage.host(Complain(self.text))


EFFECTS = (LameDuck, SayError)


def expire_login(**match: Any) -> Fault:
    """The server ends a connection whose login has expired."""
    return fault(SayError("User Authentication Expired"), **match)


def slow_consumer(**match: Any) -> Fault:
    """The server ends a connection whose client does not read fast enough."""
    return fault(SayError("Slow Consumer"), **match)


def lose_pongs(**match: Any) -> Fault:
    """The server does not answer the PINGs of a client, which are also what a flush waits for."""
    return drop(kind="Pong", **{"direction": "out", **match})
