"""SASL mechanisms: user and password from SaslAuthenticate (docs/protocols/rabbitmq-stream.md, 5)."""

from __future__ import annotations

from typing import NamedTuple

from fakebrokers.errors import WireError
from fakebrokers.rabbitmq_stream.binary import Reader
from fakebrokers.rabbitmq_stream.codes import Code
from fakebrokers.rabbitmq_stream.refusals import Crashed, Refused

#: Letters of the types that a field of an AMQP 0-9-1 table may have.
_TYPES = [bytes([letter]) for letter in b"tbBsuIildfDSATFxV"]


class Credentials(NamedTuple):
    """User and password of a login; the password is None for ANONYMOUS."""

    user: str
    password: str | None


def parse_credentials(mechanism: str, data: bytes | None, anonymous: str) -> Credentials:
    """Read the data of SaslAuthenticate.

    Args:
        mechanism: One that the server offers.
        data: As it came.
        anonymous: The user for ANONYMOUS.

    Raises:
        Refused: The data is malformed: code 9.
        Crashed: Data of AMQPLAIN is no table.
    """
    if mechanism == "ANONYMOUS":
        return Credentials(anonymous, None)
    try:
        return _plain(data or b"") if mechanism == "PLAIN" else _amqplain(data or b"")
    except (ValueError, KeyError):
        raise Refused(Code.SASL_ERROR) from None


def _plain(data: bytes) -> Credentials:
    """NUL user NUL password; an authorization id in front is an error."""
    empty, user, password = _text(data).split("\0")
    if empty:
        raise ValueError("an authorization id")
    return Credentials(user, password)


def _amqplain(data: bytes) -> Credentials:
    """A field table without its length: short string name, type ``S``, long string value.

    The server reads the table without a net: what is none crashes its process.
    """
    reader = Reader(data)
    fields: dict[bytes, bytes] = {}
    try:
        while reader.left:
            name = reader.take(reader.u8())
            kind = reader.take(1)
            if kind not in _TYPES:
                raise Crashed(f"expected the type of a field, got {kind!r}")
            if kind != b"S":
                raise ValueError("a user or a password that is no text, or a field that is neither")
            fields[name] = reader.take(reader.u32())
    except WireError as error:
        raise Crashed(f"expected a table: {error}") from None
    return Credentials(_text(fields[b"LOGIN"]), _text(fields[b"PASSWORD"]))


def _text(data: bytes) -> str:
    """Names and passwords are bytes to a broker: what is no UTF-8 belongs to nobody."""
    return data.decode(errors="surrogateescape")
