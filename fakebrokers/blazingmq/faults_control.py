"""Effects on control messages: elements that are absent or unknown, and the other encoding.

They work on the message as it is written, whichever encoding that is. Elements are named as in the schema,
with dots from the chosen element on: ``brokerIdentity.features``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal

from fakebrokers.blazingmq import ber, json_control
from fakebrokers.blazingmq.codec import HEADER_SIZE, event_bytes
from fakebrokers.blazingmq.codes import Encoding, EventType
from fakebrokers.blazingmq.control import write
from fakebrokers.blazingmq.events import padded, unpadded
from fakebrokers.blazingmq.frames import ControlFrame
from fakebrokers.blazingmq.schema import Element, elements_of
from fakebrokers.errors import PlanError
from fakebrokers.faults.effect import Effect, Passage, Realism

Nodes = tuple[ber.Node, ...]


def _edit(
    passage: Passage,
    in_ber: Callable[[Nodes], Nodes],
    in_json: Callable[[Mapping[str, Any]], Mapping[str, Any]],
) -> None:
    """Pass a control message on with its chosen element changed; anything else as it is."""
    frame = passage.frame
    if not isinstance(frame, ControlFrame):
        passage.pass_through()
        return
    unit: bytes = passage.encode(frame)
    message, kind, encoding = unpadded(unit[HEADER_SIZE:]), unit[4] & 0x3F, unit[6] >> 5
    if encoding == Encoding.JSON:
        table = dict(json_control.parse(message))
        table[frame.kind] = in_json(table[frame.kind])
        message = json_control.write(table)
    else:
        message = ber.write(_edited(ber.parse(message), in_ber))
    passage.pass_raw(event_bytes(EventType(kind), [padded(message)], encoding << 5))


def _edited(message: ber.Node, act: Callable[[Nodes], Nodes]) -> ber.Node:
    """The choice is the last part of a message, and the chosen element its only one."""
    *head, choice = message.parts
    (chosen,) = choice.parts
    chosen = chosen._replace(content=act(chosen.parts))
    return message._replace(content=(*head, choice._replace(content=(chosen,))))


class WithoutElement(Effect, frozen=True, tag="without-element"):
    """An element of a control message is absent.

    Attributes:
        element: Its name, such as ``brokerIdentity`` or ``result.message``.
    """

    direction = "out"
    needs_bytes = True
    realism = Realism.LEGAL
    element: str

    def apply(self, passage: Passage) -> None:
        path = self.element.split(".")
        frame = passage.frame
        elements = elements_of(type(frame), frame.HEAD) if isinstance(frame, ControlFrame) else ()
        _edit(passage, lambda nodes: _without(nodes, elements, path), lambda table: _without_key(table, path))

    def check(self, path: str) -> None:
        if not all(self.element.split(".")):
            raise PlanError(f"{path}.element", f"expected names with dots between them, got {self.element!r}")


def _without(nodes: Nodes, elements: Sequence[Element], path: Sequence[str]) -> Nodes:
    wanted = next((each for each in elements if each.name == path[0]), None)
    if wanted is None:
        return nodes
    kept = []
    for node in nodes:
        if node.number != wanted.number:
            kept.append(node)
        elif len(path) > 1:
            kept.append(node._replace(content=_without(node.parts, wanted.shape.elements, path[1:])))
    return tuple(kept)


def _without_key(table: Mapping[str, Any], path: Sequence[str]) -> Mapping[str, Any]:
    name, *inner = path
    if inner and isinstance(table.get(name), dict):
        return {**table, name: _without_key(table[name], inner)}
    return {key: value for key, value in table.items() if key != name}


class ExtraElement(Effect, frozen=True, tag="extra-element"):
    """A control message has one more element, as from a newer broker; readers skip it.

    Attributes:
        number: Its BER id, 0 to 30; one that the message has not.
        name: Its name in JSON.
        text: Its value.
    """

    direction = "out"
    needs_bytes = True
    realism = Realism.LEGAL
    number: int = 30
    name: str = "newElement"
    text: str = "new"

    def apply(self, passage: Passage) -> None:
        node = ber.Node(ber.CONTEXT | self.number, 0, self.text.encode())
        _edit(passage, lambda nodes: (*nodes, node), lambda table: {**table, self.name: self.text})

    def check(self, path: str) -> None:
        if not 0 <= self.number <= 30:
            raise PlanError(f"{path}.number", f"expected 0..30, got {self.number}")


class OtherEncoding(Effect, frozen=True, tag="other-encoding"):
    """A control message comes in this encoding, whatever the client has chosen.

    Attributes:
        encoding: ``BER`` or ``JSON``.
    """

    direction = "out"
    needs_bytes = True
    realism = Realism.ILLEGAL
    encoding: Literal["BER", "JSON"] = "JSON"

    def apply(self, passage: Passage) -> None:
        frame = passage.frame
        if not isinstance(frame, ControlFrame):
            passage.pass_through()
            return
        encoding = Encoding[self.encoding]
        passage.pass_raw(event_bytes(EventType.CONTROL, [padded(write(frame, encoding))], encoding << 5))
