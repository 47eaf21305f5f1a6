"""Control messages in both encodings (docs/protocols/blazingmq.md, 6)."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum
from typing import Any

from conformance.decoders import Unreadable, json_value
from conformance.decoders.blazingmq import schema as s
from conformance.decoders.blazingmq.ber import Element, elements_of, read_sequence
from conformance.decoders.blazingmq.schema import Fields, SchemaField
from fakebrokers.blazingmq import frames as f
from fakebrokers.core.frames import Frame

Choices = Mapping[int, tuple[str, type[Frame], Fields]]  #: by number: name in JSON, class and fields


class Kinds(Enum):
    """What an event may hold: who is who and control messages, or credentials."""

    SESSION = "session"
    CREDENTIALS = "credentials"


NEGOTIATION: Choices = {
    0: ("clientIdentity", f.ClientIdentity, s.IDENTITY_FIELDS),
    1: (
        "brokerResponse",
        f.BrokerResponse,
        (
            SchemaField(0, "result", "result", s.STATUS, s.NO_STATUS),
            SchemaField(1, "protocolVersion", "protocol_version", s.I32, 1),
            SchemaField(2, "brokerVersion", "broker_version", s.I32, 999999),
            SchemaField(3, "isDeprecatedSdk", "is_deprecated_sdk", s.FLAG, False),
            SchemaField(4, "brokerIdentity", "broker_identity", s.IDENTITY, s.NO_IDENTITY),
            SchemaField(5, "heartbeatIntervalMs", "heartbeat_interval_ms", s.I32, 3000),
            SchemaField(6, "maxMissedHeartbeats", "max_missed_heartbeats", s.I32, 10),
        ),
    ),
}
AUTHENTICATION: Choices = {
    0: (
        "authenticationRequest",
        f.AuthenticationRequest,
        (
            SchemaField(0, "mechanism", "mechanism", s.TEXT, ""),
            SchemaField(1, "data", "data", s.BLOB, s.ABSENT),
        ),
    ),
    1: (
        "authenticationResponse",
        f.AuthenticationResponse,
        (
            SchemaField(0, "status", "status", s.STATUS, s.NO_STATUS),
            SchemaField(1, "lifetimeMs", "lifetime_ms", s.U64, s.ABSENT),
        ),
    ),
}
#: A status that names no category is that of an unknown error.
ANSWER_STATUS: Fields = (
    SchemaField(0, "category", "category", s.ANY_CATEGORY, -1),
    *s.STATUS_FIELDS[1:],
)
CONTROL: Choices = {
    0: ("status", f.StatusResponse, ANSWER_STATUS),
    1: ("disconnect", f.Disconnect, ()),
    2: ("disconnectResponse", f.DisconnectResponse, ()),
    7: ("adminCommand", f.AdminCommand, (SchemaField(0, "command", "command", s.TEXT, ""),)),
    8: ("adminCommandResponse", f.AdminCommandResponse, (SchemaField(0, "text", "text", s.TEXT, ""),)),
    10: ("openQueue", f.OpenQueue, (s.HANDLE,)),
    11: (
        "openQueueResponse",
        f.OpenQueueResponse,
        (
            SchemaField(
                0,
                "originalRequest",
                "original_request",
                s.OPEN_QUEUE_REQUEST,
                f.OpenQueueRequest(handle_parameters=s.NO_HANDLE),
            ),
            SchemaField(
                1,
                "routingConfiguration",
                "routing_configuration",
                s.ROUTING,
                f.RoutingConfiguration(flags=0),
            ),
            SchemaField(2, "deduplicationTimeMs", "deduplication_time_ms", s.I32, 300000),
        ),
    ),
    12: ("closeQueue", f.CloseQueue, (s.HANDLE, SchemaField(1, "isFinal", "is_final", s.FLAG, False))),
    13: ("closeQueueResponse", f.CloseQueueResponse, ()),
    14: ("configureQueueStream", f.ConfigureQueueStream, s.CONFIGURE_QUEUE_STREAM),
    15: (
        "configureQueueStreamResponse",
        f.ConfigureQueueStreamResponse,
        (
            SchemaField(
                0,
                "request",
                "request",
                s.QUEUE_STREAM_REQUEST,
                f.ConfigureQueueStreamRequest(q_id=0, stream_parameters=s.NO_QUEUE_STREAM),
            ),
        ),
    ),
    16: ("configureStream", f.ConfigureStream, s.CONFIGURE_STREAM),
    17: (
        "configureStreamResponse",
        f.ConfigureStreamResponse,
        (
            SchemaField(
                0,
                "request",
                "request",
                s.STREAM_REQUEST,
                f.ConfigureStreamRequest(q_id=0, stream_parameters=s.NO_STREAM),
            ),
        ),
    ),
}

R_ID, CHOICE = 0, 1  #: numbers of the elements of a ControlMessage
CONSTRUCTED_CHOICE = 0xA0  #: of NegotiationMessage and AuthenticationMessage


def read_ber_message(data: bytes, kinds: Kinds) -> Frame:
    """A message in BER; what follows it means nothing. A choice holds one element."""
    elements = elements_of(read_sequence(data))
    head: dict[str, Any] = {}
    choice: Element | None = None
    choices = CONTROL
    if elements and elements[0].tag == CONSTRUCTED_CHOICE:
        choices = AUTHENTICATION if kinds is Kinds.CREDENTIALS else NEGOTIATION
        choice = elements[0] if len(elements) == 1 else None
    elif kinds is Kinds.SESSION:
        found = {element.number: element for element in elements}
        choice = found.get(CHOICE)
        head["r_id"] = s.I32.from_ber(found[R_ID]) if R_ID in found else None
    selected = elements_of(choice) if choice is not None else ()
    if len(selected) != 1 or selected[0].number not in choices:
        raise Unreadable(f"expected one known choice, came {[element.number for element in selected]}")
    _, kind, fields = choices[selected[0].number]
    return kind(**head, **s.values_in_ber(fields, selected[0]))


def read_json_message(data: bytes, kinds: Kinds) -> Frame:
    """A message in JSON; what follows it means nothing, and strings may hold control characters."""
    message = json_value(data, is_lenient=True)
    if not isinstance(message, dict):
        raise Unreadable(f"expected an object, came {message!r:.40}")
    tables = (AUTHENTICATION,) if kinds is Kinds.CREDENTIALS else (NEGOTIATION, CONTROL)
    for choices in tables:
        for name, kind, fields in choices.values():
            if name in message:
                head = {}
                if choices is CONTROL:
                    r_id = message.get("rId")
                    head["r_id"] = None if r_id is None else s.I32.from_json(r_id)
                return kind(**head, **s.values_in_json(fields, message[name]))
    raise Unreadable(f"expected a known choice, came {', '.join(message) or 'nothing'}")
