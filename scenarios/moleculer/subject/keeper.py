"""The other node of Moleculer's scripts: it keeps texts, which stand for the messages of a queue."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from fakebrokers import Moleculer
from fakebrokers.moleculer.node import Node
from fakebrokers.moleculer.services import Context, Service
from scenarios.moleculer._steps import event, withheld

PEER = "peer"
PUT = "p.put"
ECHO = "p.echo"
WAIT = "p.wait"  #: answered by the script
EMITTED = "to.peer"


class Keeper:
    """A fake node with an action that keeps a text and gives it back, and events that report what is kept.

    Attributes:
        texts: Those of a queue, by its name.
    """

    def __init__(self, fake: Moleculer) -> None:
        self.texts: dict[str, list[str]] = {}
        self._fake = fake
        self._listeners: dict[str, tuple[str, str]] = {}
        self._reported: dict[str, int] = {}

    @cached_property
    def node(self) -> Node:
        """The node itself, which is never silent for long. It joins when it is first asked for."""
        actions: dict[str, Any] = {
            "put": lambda ctx: self._put(ctx.params["queue"], ctx.params["body"]),
            "echo": lambda ctx: ctx.params,
            "up": _digest,
            "wait": withheld,
        }
        offer = Service("p", actions=actions, events={EMITTED: lambda ctx: None})
        return self._fake.node(PEER, [offer], heartbeat_s=1.0)

    def _put(self, queue: str, text: str) -> str:
        self.texts.setdefault(queue, []).append(text)
        return text

    def listens(self, sub: str, queue: str, node: str) -> None:
        """A node listens to the event of a queue, under that name; no event is sent yet."""
        self._listeners[sub] = (queue, node)

    def add(self, queue: str, texts: Sequence[str]) -> None:
        """Keep these too, and send them to the listeners."""
        self.texts.setdefault(queue, []).extend(texts)
        for sub, (wanted, _) in self._listeners.items():
            if wanted == queue:
                self.report(sub)

    def report(self, sub: str) -> None:
        """Send an event for each text that this listener was not sent yet."""
        queue, node = self._listeners[sub]
        texts = self.texts.get(queue, [])
        for number in range(self._reported.get(sub, 0), len(texts)):
            event(self.node, queue, texts[number], node, id=f"{sub}-{number}", broadcast=True)
        self._reported[sub] = len(texts)

    def heard(self, node: str) -> int:
        """How many events of the client's node have come."""
        return sum(event.event == EMITTED and event.sender == node for event in self.node.events)


def _digest(ctx: Context) -> Any:
    """What was uploaded, as bodies are reported."""
    data = b"" if ctx.stream is None else b"".join(ctx.stream.chunks)
    return {"sha256": hashlib.sha256(data).hexdigest(), "len": len(data)}
