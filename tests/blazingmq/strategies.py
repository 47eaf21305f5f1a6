"""Hypothesis strategies: every frame, from the schema of control messages and the fields of the others."""

from __future__ import annotations

from typing import Any

from hypothesis import strategies as st

from fakebrokers.blazingmq import frames_events as f
from fakebrokers.blazingmq.frames import ControlFrame
from fakebrokers.blazingmq.properties import Property, PropertyType, Style
from fakebrokers.blazingmq.schema import I32, Element, Form, Shape, elements_of, shape_of

u32 = st.integers(0, 2**32 - 1)
i32 = st.integers(-(2**31), 2**31 - 1)
guids = st.binary(min_size=16, max_size=16)
data = st.binary(max_size=40)
words = st.integers(0, 3).map(lambda count: bytes(range(4 * count)))

#: Names are opaque to a broker: in BER also bytes that are no UTF-8.
text = st.one_of(
    st.text(st.characters(codec="utf-8"), max_size=12),
    st.binary(max_size=12).map(lambda raw: raw.decode(errors="surrogateescape")),
)

_SIMPLE: dict[Form, st.SearchStrategy[Any]] = {
    Form.BOOLEAN: st.booleans(),
    Form.TEXT: text,
    Form.BYTES: data,
}


def values(shape: Shape) -> st.SearchStrategy[Any]:
    """Values of this shape."""
    if shape.form is Form.SEQUENCE:
        assert shape.kind is not None
        return st.builds(shape.kind, **_fields(shape.elements))
    if shape.form is Form.ARRAY:
        assert shape.inner is not None
        return st.lists(values(shape.inner), max_size=3).map(tuple)
    if shape.simple is not None and shape.form is Form.ENUMERATION:
        return st.sampled_from(sorted(shape.simple.names))
    if shape.simple is not None and shape.form is Form.INTEGER:
        return st.integers(shape.simple.low, shape.simple.high)
    return _SIMPLE[shape.form]


def _fields(elements: tuple[Element, ...]) -> dict[str, st.SearchStrategy[Any]]:
    return {
        element.field: st.none() | values(element.shape) if element.optional else values(element.shape)
        for element in elements
    }


def control_frames(kind: type[ControlFrame]) -> st.SearchStrategy[ControlFrame]:
    """Control messages of this class."""
    head = {"r_id": st.none() | values(shape_of(I32))} if kind.HEAD else {}
    return st.builds(kind, **head, **_fields(elements_of(kind, kind.HEAD)))


_put_messages = st.builds(
    f.PutMessage,
    queue_id=i32,
    guid=guids,
    data=data,
    flags=st.integers(0, 15),
    crc=u32,
    schema_id=st.integers(0, 0xFFFF),
    compression=st.integers(0, 7),
    options=words,
)
_push_messages = st.builds(
    f.PushMessage,
    queue_id=i32,
    guid=guids,
    data=data,
    flags=st.integers(0, 15),
    schema_id=st.integers(0, 0xFFFF),
    compression=st.integers(0, 7),
    options=words,
)
_ack_messages = st.builds(
    f.AckMessage,
    queue_id=i32,
    guid=guids,
    status=st.integers(0, 15),
    correlation_id=st.integers(0, 2**24 - 1),
)
_confirm_messages = st.builds(f.ConfirmMessage, queue_id=i32, guid=guids, sub_id=i32)


def _batches(kind: Any, messages: st.SearchStrategy[Any], least: int = 0) -> st.SearchStrategy[Any]:
    return st.builds(kind, messages=st.lists(messages, min_size=least, max_size=4).map(tuple))


event_frames = st.one_of(
    _batches(f.Put, _put_messages, 1),
    _batches(f.Push, _push_messages, 1),
    _batches(f.Ack, _ack_messages),
    _batches(f.Confirm, _confirm_messages),
    _batches(f.Reject, _confirm_messages),
    st.just(f.HeartbeatRequest()),
    st.just(f.HeartbeatResponse()),
    st.builds(f.OtherEvent, st.sampled_from([0, 6, 9, 14, 16, 40, 63]), data),
)

_names = st.text(st.characters(codec="utf-8"), min_size=1, max_size=20)
_VALUES: dict[PropertyType, st.SearchStrategy[Any]] = {
    PropertyType.BOOL: st.booleans(),
    PropertyType.CHAR: st.integers(0, 255),
    PropertyType.SHORT: st.integers(-(2**15), 2**15 - 1),
    PropertyType.INT32: i32,
    PropertyType.INT64: st.integers(-(2**63), 2**63 - 1),
    PropertyType.STRING: st.text(st.characters(codec="utf-8"), max_size=30),
    PropertyType.BINARY: data,
}
_property = st.sampled_from(sorted(PropertyType)).flatmap(
    lambda kind: _VALUES[kind].map(lambda value: Property(kind, value))
)
properties = st.dictionaries(_names, _property, min_size=1, max_size=6)
styles = st.sampled_from([Style.OLD, Style.NEW])
