"""What a page of a run shows of the bus: nodes and their services, subscriptions, calls without an answer."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, ClassVar

from fakebrokers.viewer.model import BrokerModel, Seen, listeners, named

if TYPE_CHECKING:
    from fakebrokers.moleculer.server import Moleculer

_CALL = 8  #: characters of a call's id that are shown


class BusModel(BrokerModel):
    """Nodes, subscriptions by connection, and open calls, whichever transporter carries them.

    A bus knows no services and no calls: those of nodes that are no fakes are told by their packets.
    """

    besides: ClassVar[frozenset[str]] = frozenset({"node", "call"})

    def __init__(self) -> None:
        super().__init__()
        self._services: dict[str, str] = {}

    @classmethod
    def held(cls, server: Moleculer) -> Iterator[tuple[str, str]]:
        broker = server.broker
        for node in sorted(broker.nodes.values(), key=lambda each: each.alive):  # of one id, one may run
            names = [service.full_name for service in node.services]
            offers = f"services {named(names)}" if names else "no services"
            yield f"node {node.id}", f"fake; {offers}" if node.alive else "fake; does not run"
            for number, call in node.calls.pending.items():
                yield f"call {number[:_CALL]}", f"{call.action} by {node.id}, not answered"
        if broker.bus is not None:
            for id, link in broker.bus.links.items():
                yield f"{link.name} node id", id
            yield from listeners(broker.bus.subscriptions, "sid " if server.transporter == "nats" else "")

    def frame(self, seen: Seen) -> None:
        fields, at = seen.fields, seen.connection
        key = seen.keys[0] if seen.keys else ""
        match seen.kind:
            case "Info":
                self._services[key] = _services(fields)
                self.tell(f"node {key}", self._services[key])
            case "Heartbeat" if key in self._services:
                self.tell(f"node {key}", f"{self._services[key]}, last heartbeat at {self.t:.4f} s")
            case "Disconnect":
                self._services.pop(key, None)
                self.tell(f"node {key}", "")
            case "Request":
                said = f"{fields['action']} by {fields['sender']}, " if fields else ""
                self.tell(f"call {key[:_CALL]}", f"{said}not answered")
            case "Response" if fields.get("stream") is not True:
                self.tell(f"call {key[:_CALL]}", "")
            case "Sub":
                group = f", group {fields['queue']}" if fields.get("queue") else ""
                self.tell(f"{at} subscription {fields['sid']}", f"{fields['subject']}{group}")
            case "Unsub":
                self.tell(f"{at} subscription {fields['sid']}", "")
            case "Subscribe" | "Psubscribe" | "Unsubscribe" | "Punsubscribe":
                there = "" if "nsub" in seen.kind else "open"
                for topic in fields.get("channels") or fields.get("filters") or ():
                    name = topic[0] if isinstance(topic, list) else topic
                    self.tell(f"{at} subscription {name}", there)


def _services(fields: dict[str, Any]) -> str:
    if "services" not in fields:
        return "is there"
    names = [each["name"] for each in fields["services"] if each["name"] != "$node"]
    return f"services {named(names)}" if names else "no services"
