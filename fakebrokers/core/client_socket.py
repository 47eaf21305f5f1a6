"""Whether a client has let go of its socket, as the operating system sees it.

When a broker ends a connection it closes its socket at once, as real ones do, and so cannot watch the
client's side any more. The kernel can: on the same machine the client's end is a row of its TCP table.
"""

from __future__ import annotations

import socket
from pathlib import Path

#: States of /proc/net/tcp in which a program still holds the socket.
_HELD = {"01", "02", "03", "04", "05", "08", "09"}


def holds_socket(host: str, port: int) -> bool | None:
    """Whether some program on this machine still holds the socket at this local address.

    Returns:
        None where that cannot be told: another machine, or no Linux.
    """
    found = None
    for table in ("tcp", "tcp6"):
        try:
            lines = Path(f"/proc/net/{table}").read_text(encoding="ascii").splitlines()[1:]
        except OSError:
            continue
        found = found or False
        wanted = _encoded(host, port, table)
        for line in lines:
            fields = line.split()
            if fields[1] == wanted and fields[3] in _HELD and fields[9] != "0":
                return True
    return found


def _encoded(host: str, port: int, table: str) -> str:
    """An address as the kernel's table has it: each 32-bit word in the machine's byte order."""
    try:
        if table == "tcp6":
            raw = socket.inet_pton(socket.AF_INET6, host if ":" in host else f"::ffff:{host}")
        else:
            raw = socket.inet_pton(socket.AF_INET, host)
    except OSError:
        return ""
    words = [int.from_bytes(raw[i : i + 4], "little") for i in range(0, len(raw), 4)]
    return "".join(f"{word:08X}" for word in words) + f":{port:04X}"
