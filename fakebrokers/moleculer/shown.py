"""What a page of a run shows of the bus: nodes and their services, subscriptions, calls without an answer."""

from __future__ import annotations

from fakebrokers.viewer.model import BrokerModel, Seen, named

_CALL = 8  #: characters of a call's id that are shown


class BusModel(BrokerModel):
    """Nodes, subscriptions by connection, and open calls, whichever transporter carries them."""

    def frame(self, seen: Seen) -> None:
        fields, at = seen.fields, seen.connection
        match seen.kind:
            case "Info":
                services = [each["name"] for each in fields.get("services", ()) if each["name"] != "$node"]
                listed = f"services {named(services)}" if services else "no services"
                self.tell(f"node {fields['sender']}", listed)
            case "Disconnect" if "sender" in fields:
                self.tell(f"node {fields['sender']}", "")
            case "Request":
                said = f"{fields['action']} by {fields['sender']}, not answered"
                self.tell(f"call {fields['id'][:_CALL]}", said)
            case "Response" if fields.get("stream") is not True:
                self.tell(f"call {fields['id'][:_CALL]}", "")
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
