"""Services of fake nodes that are described by what they do: functions do not travel over HTTP."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import UNSET, UnsetType

from fakebrokers.moleculer.services import NO_ANSWER, Action, Context, MoleculerError, Service, Stream
from fakebrokers.options import Seconds


class ErrorRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The error that an action answers with."""

    message: str = ""
    code: int = 500
    type: str | UnsetType = UNSET
    data: Any = UNSET
    name: str = "MoleculerError"
    retryable: bool = False


class ActionRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What an action does; the first of these that is given.

    Attributes:
        answers: Whether it answers at all.
        error: It answers with an error.
        chunks: It answers with a stream of these.
        echo: It answers with the parameters that came.
        returns: It answers with this.
    """

    answers: bool = True
    error: ErrorRow | None = None
    chunks: list[str] | None = None
    echo: bool = False
    returns: Any = None

    def function(self) -> Action:
        """The function of a service that does it."""
        return self._act

    def _act(self, context: Context) -> Any:
        if not self.answers:
            return NO_ANSWER
        if self.error is not None:
            fields = msgspec.structs.asdict(self.error)
            raise MoleculerError(**fields)
        if self.chunks is not None:
            return Stream([chunk.encode() for chunk in self.chunks])
        return context.params if self.echo else self.returns


class ServiceRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A service of a fake node.

    Attributes:
        actions: By name.
        events: Patterns of the events that it listens to; ``group:pattern`` for a group of its own.
    """

    name: str
    actions: dict[str, ActionRow] = {}
    events: list[str] = []
    version: int | str | None = None

    def service(self) -> Service:
        """As fake nodes have it."""
        actions = {name: row.function() for name, row in self.actions.items()}
        events: dict[str, Action] = {pattern: _nothing for pattern in self.events}
        return Service(self.name, actions, events, self.version)


def _nothing(context: Context) -> None:
    """What a fake node does with an event: it remembers it."""


class NodeOptionsRow(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True):
    """What else can be said of a fake node; see `NodeOptions`."""

    version: str = ""
    heartbeat_s: Seconds | None = None
    heartbeat_timeout_s: Seconds | None = None
    metadata: dict[str, Any] = {}
    disable_balancer: bool = False
    announces: bool = True
    answers_discover: bool = True
    instance: str = ""
    hostname: str = "fake"
