"""How messages reach the application: subscriptions, positions, what is due."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from conformance.run.facts import Record
from conformance.run.trace import Position
from fakebrokers.core.frames import Frame

Args = Mapping[str, Any]
ENDING = ("close", "abort", "unsubscribe")  #: ops that end a session or a subscription, in every protocol


class Delivery:
    """How messages reach the application: subscriptions, positions, what is due.

    Attributes:
        is_log: Whether targets are logs with positions in order.
        crediting: The ops by which the application itself allows deliveries.
        ending: The ops that end something, besides `ENDING`.
        closing: The ops that close a target, so that nothing of it is delivered any more.
        shares: Whether all subscriptions of one target in a session are one on the wire.
        storing: The ops that store a position with the broker.
        last_position: The last one that a log has; nothing is claimed of what comes after it.
        drains_on_close: Whether a close delivers first all that has come.
        listening: The ops that listen without a question to the server.
        last_words: With what a client says that it wants no more, before it ends a subscription gracefully.
    """

    is_log: ClassVar[bool] = False
    crediting: ClassVar[tuple[str, ...]] = ()
    ending: ClassVar[tuple[str, ...]] = ()
    closing: ClassVar[tuple[str, ...]] = ()
    shares: ClassVar[bool] = False
    storing: ClassVar[tuple[str, ...]] = ()
    last_position: ClassVar[int] = (1 << 63) - 1
    drains_on_close: ClassVar[bool] = False
    listening: ClassVar[tuple[str, ...]] = ()
    last_words: ClassVar[type[Frame] | None] = None

    def properties_of(self, heard: Any) -> Any:
        """What an event ``message`` has besides the body; see `Record.properties`."""
        return heard["meta"].get("properties") or {}

    def start_of(self, options: Args) -> Any:
        """Where a subscription with these options begins, as in `Window.start`; None: they do not say."""
        return None

    def first_position(self, start: Any) -> int | None:
        """The position that such a start names; None where it names none (the first one, a time)."""
        return None

    def stores(self, args: Args) -> tuple[str, str, Any]:
        """The target, the name and the position that an op of `storing` stores."""
        raise NotImplementedError

    def tracked(self, options: Args) -> str | None:
        """The name for which the library itself stores positions of a subscription, if it does."""
        return None

    def settings(self, options: Args) -> dict[str, Any]:
        """What a subscription with these options asks for besides its start, as in `Window.settings`."""
        return {}

    def for_others(self, case: Any, args: Args, body: bytes) -> str:
        """For whom a message came that is not for the listener with these arguments; "" if it is for it."""
        return ""

    def is_same(self, reported: bytes, due: bytes) -> bool:
        """Whether what a listener got is what it was due."""
        return reported == due

    def holds(self, name: str, asked: Any, ordered: Any) -> bool:
        """Whether a setting is as it was ordered; a map may have entries of the client's own besides."""
        if isinstance(ordered, dict):
            return all(asked.get(key) == value for key, value in ordered.items())
        return bool(asked == ordered)

    def spreads(self, args: Args) -> bool:
        """Whether an op is about other targets than the one it names, which the client finds by itself."""
        return False

    def leads(self, case: Any, args: Args) -> set[Any]:
        """The targets to all of which a message goes that is published so, as far as the server has said."""
        return set()

    def subscriptions(self, case: Any, args: Args) -> int:
        """How many subscriptions on the wire one with these arguments is."""
        return 1

    def wants(self, args: Args, body: bytes) -> bool:
        """Whether a subscription with these arguments is for messages with this body, of all that come."""
        return True

    def due(self, case: Any, args: Args, begun: Position) -> list[tuple[Position, Record]]:
        """What has to be delivered to whom an op of `listening` has begun; by its ``sub``, in this order."""
        return []
