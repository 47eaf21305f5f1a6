"""What adapters say, held against the types of the ops; and what scripts say, before it leaves.

Who says ``ok`` and means something else breaks the adapter protocol.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from conformance.clients.adapter.messages import Event, Message, Response
from conformance.clients.adapter.ops.define import Nothing
from conformance.clients.adapter.ops.events import EVENTS
from conformance.clients.adapter.ops.values import Reports
from conformance.clients.adapter.profile import ops_of, profile_of
from conformance.clients.adapter.typed import Misfit, typed
from fakebrokers.errors import UsageError


def result_of(op: str, args: Mapping[str, Any], answer: Response, protocol: str) -> Any:
    """The result of an op that is ok, as its type; None if it is not ok, and for hello.

    Raises:
        Misfit: The answer is not what the op means.
    """
    if not answer.ok:
        if answer.error is None:
            raise Misfit("it is not ok, and there is no error")
        return None
    if answer.error is not None:
        raise Misfit(f"it is ok, and there is an error ({answer.error.kind})")
    if op == "hello":
        return None  # what comes is no violation, but no hello: `Adapter.start` looks into it
    known = ops_of(protocol).get(op)
    kind = Nothing if known is None else known.spec.result
    result = typed({} if answer.result is None else answer.result, kind, "result")
    if known is not None and (problem := known.spec.rule(args, result)):
        raise Misfit(f"result: {problem}")
    for place, message in _messages(result):
        _check_message(message, protocol, place)
    return result


def event_problem(event: Event, protocol: str) -> str:
    """What is wrong with an event, one sentence; empty if nothing is."""
    try:
        if event.event in EVENTS:
            found = typed(event.fields, EVENTS[event.event], "the event")
            if isinstance(found, Message):
                _check_message(found, protocol, "the event")
    except Misfit as misfit:
        return str(misfit)
    return ""


def check_arguments(op: str, args: Mapping[str, Any], protocol: str) -> None:
    """Whether an op takes these arguments; an op that nobody knows takes any.

    Raises:
        UsageError: It does not: the mistake of a script.
    """
    known = ops_of(protocol).get(op)
    if known is not None:
        try:
            typed(args, known, f"{op} args")
        except Misfit as misfit:
            raise UsageError(str(misfit)) from None


def _messages(result: Any) -> list[tuple[str, Message]]:
    """The messages in a result, and where they are."""
    found: list[tuple[str, Message]] = []
    for name in result.__struct_fields__ if isinstance(result, msgspec.Struct) else ():
        value = getattr(result, name)
        if isinstance(value, Message):
            found.append((f"result.{name}", value))
        elif isinstance(value, list):
            found += [
                (f"result.{name}[{n}]", each) for n, each in enumerate(value) if isinstance(each, Message)
            ]
    return found


def _check_message(message: Message, protocol: str, place: str) -> None:
    typed(message.body, Reports, f"{place}.body")
    if problem := profile_of(protocol).message_rule(message):
        raise Misfit(f"{place}.{problem}")
