"""What was special about a message that was not delivered, and may be why: for the sentences of rules."""

from __future__ import annotations

from conformance.clients.adapter.messages import body_bytes
from conformance.run.bases import RunOp
from conformance.run.case import Case
from conformance.run.facts import Window
from conformance.run.reported import ReportedEvent, is_body
from conformance.run.trace import Position


def how_it_came(done: RunOp, window: Window, at: Position) -> str:
    """How a message came for a subscription; "" if there is nothing to say.

    That something of its frame cannot be read comes first: the others of a frame may be lost with it,
    whenever the application has subscribed.
    """
    if any(arrival.damaged and arrival.at == at for arrival in window.arrivals):
        return " in one frame with what cannot be read"
    return " before the application had subscribed" if at < done.begun else ""


def after_a_failure(case: Case, sub: str, body: bytes) -> str:
    """Whose callback had raised for a message that another subscription did not get; "" if none had."""
    for done in case.done("subscribe", *case.traits.delivery.listening):
        own = str(done.args.get("sub"))
        raises = (done.args.get("on_message") or {}).get("raise_on", ())
        heard = [one for one in case.heard("message") if one["sub"] == own] if own != sub and raises else []
        for number, one in enumerate(heard, 1):
            if number in raises and _is_it(case, one, body):
                return f" after the callback of {own} had failed for it"
    return ""


def _is_it(case: Case, heard: ReportedEvent, body: bytes) -> bool:
    """Whether an event is about a message with this body."""
    reported = heard["body"]
    if is_body(reported, body):
        return True
    return "sha256" not in reported and case.traits.delivery.is_same(body_bytes(reported), body)
