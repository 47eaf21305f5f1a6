"""What a page of a run shows of the bus: nodes and their services, subscriptions, calls without an answer."""

from __future__ import annotations

from typing import Any

from fakebrokers.viewer.model import BrokerModel, Seen, named

_CALL = 8  #: characters of a call's id that are shown


class BusModel(BrokerModel):
    """Nodes, subscriptions by connection, and open calls, whichever transporter carries them."""

    def frame(self, seen: Seen) -> None:
        fields, at = seen.fields, seen.connection
        key = seen.keys[0] if seen.keys else ""
        match seen.kind:
            case "Info":
                self.tell(f"node {key}", _services(fields))
            case "Disconnect":
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
