"""The frames of a protocol by the names that a journal has of them."""

from __future__ import annotations

from base64 import b64encode
from contextlib import suppress

import msgspec

from fakebrokers.core.frames import Frame, kind_of
from fakebrokers.journal.secrets import REDACTED
from fakebrokers.protocol import find_protocol, is_available, protocol_names

_BLOT = b64encode(REDACTED.encode()).decode()


class Kinds:
    """All frames of a protocol, on whichever wire.

    Args:
        protocol: Its name; of one that this version does not have, no frame is known.
    """

    def __init__(self, protocol: str) -> None:
        self._classes: dict[str, list[type[Frame]]] = {}
        known = protocol in protocol_names() and is_available(protocol)
        for wire in find_protocol(protocol).wires if known else ():
            for each in wire.frames:
                others = self._classes.setdefault(kind_of(each), [])
                if each not in others:
                    others.append(each)

    def class_of(self, kind: str) -> type[Frame] | None:
        """The frame of that name; None if there is none."""
        return next(iter(self._classes.get(kind, ())), None)

    def frame_of(self, kind: str, fields: str) -> Frame | None:
        """A frame from its fields in JSON, as journals have them; None where they do not make one: bodies
        that are too large for the journal are missing."""
        for each in self._classes.get(kind, ()):
            with suppress(msgspec.DecodeError, TypeError, ValueError):
                return msgspec.json.decode(_with_blots(fields, each), type=each)
        return None


def _with_blots(fields: str, kind: type[Frame]) -> str | bytes:
    """The fields with what stands for credentials in base64, as bytes are; `redacted` blots texts out."""
    values = msgspec.json.decode(fields) if kind.spec.secret else None
    if not isinstance(values, dict):
        return fields
    blots = {name: _BLOT for name in kind.spec.secret if values.get(name) == REDACTED}
    return msgspec.json.encode({**values, **blots})


NO_KINDS = Kinds("")
