"""Faults that exist only here, as effects and ready-made (docs/protocols/redis.md, 4 "What goes wrong").

redis.faults.add(fault(Evict("session:7"), kind="Command", nth=5))
redis.faults.add(other_count(0, nth=1))
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from fakebrokers.faults.build import rewrite
from fakebrokers.faults.effect import Action, Effect, Passage, Realism
from fakebrokers.faults.plan import Fault

if TYPE_CHECKING:
    from fakebrokers.core.host import Host
    from fakebrokers.redis.server import Redis


class DropKey(Action, frozen=True):
    """A key is no more; see `Evict`."""

    key: str

    def perform(self, host: Host, fault: str, connection: str) -> None:
        server: Redis = host.server
        server.delete(self.key, fault=fault)


class Evict(Effect, frozen=True, tag="evict"):
    """The server gives up a key, as it may where memory is short.

    Attributes:
        key: Its name, in database 0; nothing happens if there is none.
    """

    needs_frame = False
    needs_broker = True
    once = True
    per_run = True
    realism = Realism.LEGAL
    key: str

    def apply(self, passage: Passage) -> None:
        passage.pass_through()
        passage.host(DropKey(self.key))


EFFECTS = (Evict,)


def other_count(count: int = 0, **match: Any) -> Fault:
    """PUBLISH tells another number of listeners than there were."""
    return rewrite({"value": count}, role="confirm", **match)


def moved_answer(text: str = "MOVED 3999 127.0.0.1:6381", **match: Any) -> Fault:
    """An error says something else, as a node of a cluster might."""
    return rewrite({"text": text}, kind="RedisError", **match)
