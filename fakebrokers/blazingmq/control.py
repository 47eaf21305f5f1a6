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
#: The elements of a ControlMessage.
_NUMBER, _CONTROL_CHOICE = 0, 1
_NUMBER_SHAPE = shape_of(I32)


def read(data: bytes, encoding: Encoding, message: Message | None = None) -> ControlFrame:
    """The frame of a message, with padding or without: what comes after it is not looked at.

    Args:
        message: What it is; None: NegotiationMessage or ControlMessage, which look different.

    Raises:
        WireError: It cannot be read, or has none of the choices that clients and brokers exchange.
    """
    return (_read_json if encoding is Encoding.JSON else _read_ber)(data, message)


def _read_ber(data: bytes, message: Message | None) -> ControlFrame:
    parts = ber.parse(data).elements
    if parts and parts[0].tag == _CHOICE:
        if len(parts) > 1:
            raise WireError("nothing after the choice", f"tag 0x{parts[1].tag:02x}", parts[1].at)
        return _chosen_ber(message or Message.NEGOTIATION, None, parts[0])
    # of what is there twice a broker takes the last
    by_number = {node.number: node for node in parts}
    numbered, choice = by_number.get(_NUMBER), by_number.get(_CONTROL_CHOICE)
    if choice is None or message is not None:
        raise WireError("a choice", ", ".join([f"tag 0x{node.tag:02x}" for node in parts]) or "nothing")
    number = None if numbered is None else ber.read_number(_NUMBER_SHAPE, numbered)
    return _chosen_ber(Message.CONTROL, number, choice)


def _chosen_ber(message: Message, number: int | None, choice: ber.Node) -> ControlFrame:
    nodes = choice.elements
    kind = CHOICES[message].get(nodes[0].number) if nodes else None
    if kind is None or len(nodes) > 1:
        found = ", ".join([str(node.number) for node in nodes])
        raise WireError(f"a choice of {message.value}", found or "nothing", choice.at)
    return _made(kind, number, ber.read_elements(_elements(kind), nodes[0].elements))


def _read_json(data: bytes, message: Message | None) -> ControlFrame:
    table = json_control.parse(data)
    number = table.get("rId")
    if number is not None:
        number = json_control.read_number(_NUMBER_SHAPE, number, "rId")
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
    head = b"" if number is None else ber.primitive(ber.CONTEXT | _NUMBER, ber.pack_integer(number))
    return ber.constructed(ber.SEQUENCE, head + ber.constructed(_CHOICE | _CONTROL_CHOICE, chosen))


def _write_json(frame: ControlFrame) -> bytes:
    number = getattr(frame, "r_id", None)
    head = {} if number is None else {"rId": number}
    return json_control.write({**head, frame.kind: json_control.pack_elements(_elements(type(frame)), frame)})


def _elements(kind: type[ControlFrame]) -> tuple[Any, ...]:
    return elements_of(kind, kind.HEAD)


_BY_NAME = {kind.kind: kind for choices in CHOICES.values() for kind in choices.values()}
