"""Writes pcapng, the format of Wireshark: TCP segments over IPv4, with comments.

See the IETF draft draft-ietf-opsawg-pcapng: a section header, an interface for each run, a block per packet.
"""

from __future__ import annotations

import struct
from ipaddress import IPv4Address
from typing import BinaryIO, NamedTuple

LINKTYPE_RAW = 101  #: packets begin with their IP header
FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16
#: Bytes of a segment's payload at most: an IP packet holds 65535 with its headers.
MAX_PAYLOAD = 65535 - 20 - 20

_SECTION, _INTERFACE, _PACKET = 0x0A0D0D0A, 1, 6
_COMMENT, _NAME, _RESOLUTION, _FLAGS, _PROGRAM = 1, 2, 9, 2, 4
_COMMENT_LIMIT = 0xFFFF


class Address(NamedTuple):
    """One end of a connection."""

    host: str
    port: int


class Writer:
    """Writes a file.

    Args:
        file: Open for writing bytes.
        program: Who writes it, for its header.
    """

    def __init__(self, file: BinaryIO, program: str) -> None:
        self._file = file
        self._interfaces = 0
        head = struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)
        self._block(_SECTION, head + _options((_PROGRAM, program.encode())))

    def interface(self, name: str) -> int:
        """A new interface, whose times count in nanoseconds; its number."""
        head = struct.pack("<HHI", LINKTYPE_RAW, 0, 0)
        self._block(_INTERFACE, head + _options((_NAME, name.encode()), (_RESOLUTION, b"\x09")))
        self._interfaces += 1
        return self._interfaces - 1

    def packet(
        self, interface: int, at_ns: int, data: bytes, *, comment: str = "", inbound: bool = False
    ) -> None:
        """A packet.

        Args:
            at_ns: Nanoseconds since 1970.
            data: From the IP header on.
            inbound: Whether it comes from the client.
        """
        head = struct.pack("<IIIII", interface, at_ns >> 32, at_ns & 0xFFFFFFFF, len(data), len(data))
        options = [(_FLAGS, struct.pack("<I", 1 if inbound else 2))]
        if comment:
            options.insert(0, (_COMMENT, comment.encode()[:_COMMENT_LIMIT]))
        self._block(_PACKET, head + _padded(data) + _options(*options))

    def _block(self, kind: int, body: bytes) -> None:
        size = len(body) + 12
        self._file.write(struct.pack("<II", kind, size) + body + struct.pack("<I", size))


def segment(source: Address, target: Address, seq: int, ack: int, flags: int, payload: bytes = b"") -> bytes:
    """An IPv4 packet with a TCP segment, checksums included.

    Args:
        payload: At most `MAX_PAYLOAD` bytes.
    """
    hosts = IPv4Address(source.host).packed + IPv4Address(target.host).packed
    tcp = struct.pack(
        ">HHIIBBHHH", source.port, target.port, seq % 2**32, ack % 2**32, 5 << 4, flags, 65535, 0, 0
    )
    pseudo = hosts + struct.pack(">BBH", 0, 6, len(tcp) + len(payload))
    tcp = tcp[:16] + struct.pack(">H", _checksum(pseudo + tcp + payload)) + tcp[18:]
    ip = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(tcp) + len(payload), 0, 0x4000, 64, 6, 0) + hosts
    return ip[:10] + struct.pack(">H", _checksum(ip)) + ip[12:] + tcp + payload


def _checksum(data: bytes) -> int:
    """RFC 1071: the complement of the sum of all 16-bit words, carries added at the end."""
    if len(data) % 2:
        data += b"\0"
    total = int.from_bytes(data, "big")
    rest = total % 0xFFFF
    return 0xFFFF - (rest or (0xFFFF if total else 0))


def _padded(data: bytes) -> bytes:
    return data + bytes(-len(data) % 4)


def _options(*options: tuple[int, bytes]) -> bytes:
    """Options, and what ends them."""
    written = [struct.pack("<HH", code, len(value)) + _padded(value) for code, value in options]
    return b"".join(written) + struct.pack("<HH", 0, 0)
