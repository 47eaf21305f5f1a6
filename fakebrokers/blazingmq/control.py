"""Control messages to frames and back, in both encodings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from fakebrokers.blazingmq import ber, json_control
from fakebrokers.blazingmq.codes import Encoding
from fakebrokers.blazingmq.frames_control import CHOICES, ControlFrame, Message
from fakebrokers.blazingmq.schema import I32, elements_of, shape_of
from fakebrokers.errors import WireError

#: A message that is nothing but a choice has it under this tag; a ControlMessage has it as element 1.
_CHOICE = ber.CONTEXT | ber.CONSTRUCTED
_CONTROL_CHOICE = _CHOICE | 1
_NUMBER = ber.CONTEXT
_NUMBER_SHAPE = shape_of(I32)


def read(data: bytes, encoding: Encoding, message: Message | None = None) -> ControlFrame:
    """The frame of a message without its padding.

    Args:
        message: What it is; None: NegotiationMessage or ControlMessage, which look different.

    Raises:
        WireError: It cannot be read, or has none of the choices that clients and brokers exchange.
    """
    return (_read_json if encoding is Encoding.JSON else _read_ber)(data, message)


def _read_ber(data: bytes, message: Message | None) -> ControlFrame:
    parts = ber.parse(data).elements
    number = None
    for node in parts:
        if node.tag == _NUMBER:
            number = ber.read_number(_NUMBER_SHAPE, node)
        elif node.tag == _CHOICE or (node.tag == _CONTROL_CHOICE and message is None):
            if message is None:
                message = Message.CONTROL if node.tag == _CONTROL_CHOICE else Message.NEGOTIATION
            return _chosen_ber(message, number, node)
    raise WireError("a choice", ", ".join([f"tag 0x{node.tag:02x}" for node in parts]) or "nothing")


def _chosen_ber(message: Message, number: int | None, choice: ber.Node) -> ControlFrame:
    for node in choice.elements:
        kind = CHOICES[message].get(node.number)
        if kind is not None:
            return _made(kind, number, ber.read_elements(_elements(kind), node.elements))
    found = ", ".join([str(node.number) for node in choice.parts])
    raise WireError(f"a choice of {message.value}", found or "nothing", choice.at)


def _read_json(data: bytes, message: Message | None) -> ControlFrame:
    table = json_control.parse(data)
    number = table.get("rId")
    if number is not None and (isinstance(number, bool) or not isinstance(number, int)):
        raise WireError("a whole number for rId", repr(number)[:80])
    for name, kind in _BY_NAME.items():
        if name in table and _may_be(message, kind.MESSAGE):
            content = json_control.table(table[name], name)
            return _made(kind, number, json_control.read_elements(_elements(kind), content))
    raise WireError("a choice of a control message", ", ".join(table)[:80] or "nothing")


def _may_be(asked: Message | None, found: Message) -> bool:
    return found is asked if asked is not None else found is not Message.AUTHENTICATION


def _made(kind: type[ControlFrame], number: int | None, fields: Mapping[str, Any]) -> ControlFrame:
    return kind(number, **fields) if kind.HEAD else kind(**fields)


def write(frame: ControlFrame, encoding: Encoding) -> bytes:
    """The message of a frame, without padding."""
    return _write_json(frame) if encoding is Encoding.JSON else _write_ber(frame)


def _write_ber(frame: ControlFrame) -> bytes:
    content = ber.pack_elements(_elements(type(frame)), frame)
    chosen = ber.constructed(_CHOICE | frame.ID, content)
    if frame.MESSAGE is not Message.CONTROL:
        return ber.constructed(ber.SEQUENCE, ber.constructed(_CHOICE, chosen))
    number = getattr(frame, "r_id", None)
    head = b"" if number is None else ber.primitive(_NUMBER, ber.pack_integer(number))
    return ber.constructed(ber.SEQUENCE, head + ber.constructed(_CONTROL_CHOICE, chosen))


def _write_json(frame: ControlFrame) -> bytes:
    number = getattr(frame, "r_id", None)
    head = {} if number is None else {"rId": number}
    return json_control.write({**head, frame.kind: json_control.pack_elements(_elements(type(frame)), frame)})


def _elements(kind: type[ControlFrame]) -> tuple[Any, ...]:
    return elements_of(kind, kind.HEAD)


_BY_NAME = {kind.kind: kind for choices in CHOICES.values() for kind in choices.values()}
