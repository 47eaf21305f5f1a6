"""ZMTP by hand, in the versions that clients have spoken since 2010, for peers that libzmq would not be.

Sources: rfc.zeromq.org, 13/ZMTP (1.0: libzmq 2), 15/ZMTP (2.0: libzmq 3), 23/ZMTP (3.0: libzmq 4).
"""

from __future__ import annotations

import socket
from random import Random

from tests.eventually import PATIENCE_S

#: A 3.x greeting: signature, version 3.0, mechanism NULL, as a client.
GREETING = b"\xff" + bytes(8) + b"\x7f" + b"\x03\x00" + b"NULL".ljust(20, b"\0") + bytes(32)

#: Numbers of socket types in a 2.0 greeting.
TYPES = {"REQ": 3, "DEALER": 5, "ROUTER": 6}

VERSIONS = ("1.0", "2.0", "3.0", "3.0 without metadata")


def command(name: bytes, body: bytes = b"") -> bytes:
    """A 3.x command."""
    data = bytes([len(name)]) + name + body
    return b"\x04" + bytes([len(data)]) + data if len(data) < 256 else b"\x06" + _u64(len(data)) + data


def ready(**properties: bytes) -> bytes:
    """READY; ``Socket_Type`` is the property ``Socket-Type``."""
    pairs = [(name.replace("_", "-").encode(), value) for name, value in properties.items()]
    body = [bytes([len(name)]) + name + len(value).to_bytes(4, "big") + value for name, value in pairs]
    return command(b"READY", b"".join(body))


def handshake(version: str, kind: str) -> bytes:
    """All that a client of that version and socket type sends before its first message."""
    if version == "1.0":
        return b"\x01\x00"  # an identity of no bytes
    if version == "2.0":
        return b"\xff" + bytes(7) + b"\x01\x7f" + b"\x01" + bytes([TYPES[kind]]) + b"\x00\x00"
    known = {"Socket_Type": kind.encode()} if version == "3.0" else {}
    return GREETING + ready(**known)


def message(version: str, *parts: bytes) -> bytes:
    """A multipart message as that version frames it."""
    last = len(parts) - 1
    return b"".join([_frame(version, part, more=index < last) for index, part in enumerate(parts)])


def _frame(version: str, part: bytes, more: bool) -> bytes:
    if version == "1.0":  # the length counts the flags too
        size = len(part) + 1
        return (bytes([size]) if size < 255 else b"\xff" + _u64(size)) + bytes([more]) + part
    if len(part) < 256:
        return bytes([more, len(part)]) + part
    return bytes([2 | more]) + _u64(len(part)) + part


def _u64(number: int) -> bytes:
    return number.to_bytes(8, "big")


def dial(url: str) -> socket.socket:
    """A TCP connection to ``tcp://host:port``."""
    host, _, port = url.partition("//")[2].rpartition(":")
    return socket.create_connection((host, int(port)), PATIENCE_S)


class RawPeer:
    """A TCP connection to one of the fake's sockets that says what it is told to.

    Args:
        url: ``tcp://host:port``.
        version: One of `VERSIONS`.
        kind: Which socket it claims to be.
    """

    def __init__(self, url: str, version: str, kind: str) -> None:
        self._version = version
        self.socket = dial(url)
        self._got = b""
        self._greeted = False
        self.socket.sendall(handshake(version, kind))
        if version.startswith("3"):  # libzmq refuses a message that comes before its own READY has left
            self._skip_handshake()

    def send(self, *parts: bytes) -> None:
        """Send a message."""
        self.socket.sendall(message(self._version, *parts))

    def receive(self) -> list[bytes]:
        """The parts of the next message.

        Raises:
            TimeoutError, EOFError: None came.
        """
        if not self._greeted:
            self._skip_handshake()
        parts = []
        more = True
        while more:
            part, more = self._read_frame()
            parts.append(part)
        return parts

    def _skip_handshake(self) -> None:
        self._greeted = True
        self._take(10)  # the signature; all that a 1.0 peer is told before it names its version
        if self._version == "2.0":
            self._take(2)
        elif self._version != "1.0":
            self._take(len(GREETING) - 10)
        if self._version != "1.0":  # there the signature is the identity
            self._read_frame()  # an identity, or READY

    def _read_frame(self) -> tuple[bytes, bool]:
        if self._version == "1.0":
            (size,) = self._take(1)
            size = int.from_bytes(self._take(8), "big") if size == 255 else size
            (flags,) = self._take(1)
            return self._take(size - 1), bool(flags & 1)
        (flags,) = self._take(1)
        size = int.from_bytes(self._take(8 if flags & 2 else 1), "big")
        return self._take(size), bool(flags & 1)

    def _take(self, size: int) -> bytes:
        while len(self._got) < size:
            data = self.socket.recv(65536)
            if not data:
                raise EOFError
            self._got += data
        data, self._got = self._got[:size], self._got[size:]
        return data

    def close(self) -> None:
        """End the connection."""
        self.socket.close()


def mutated(data: bytes, random: Random) -> bytes:
    """The same bytes with up to four mistakes in them."""
    bytes_ = bytearray(data)
    for _ in range(random.choice((1, 1, 2, 4))):
        at = random.randrange(len(bytes_) + 1)
        match random.randrange(5):
            case 0:
                bytes_[at : at + 1] = random.randbytes(1)
            case 1:
                del bytes_[at : at + random.randrange(1, 5)]
            case 2:
                bytes_[at:at] = random.randbytes(random.randrange(1, 9))
            case 3:
                bytes_[at : at + 8] = _u64(random.choice((0, 1 << 31, 1 << 40, (1 << 63) - 1, (1 << 64) - 1)))
            case _:
                bytes_[at : at + 1] = bytes([byte ^ 1 << random.randrange(8) for byte in bytes_[at : at + 1]])
    return bytes(bytes_)
