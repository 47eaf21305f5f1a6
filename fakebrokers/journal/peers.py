"""Who was at the other end of which connection, and from when on."""

from __future__ import annotations

from bisect import bisect_right


class Peers:
    """What the states `State.PEER` told, by connection; what is too old to be asked for is forgotten."""

    def __init__(self) -> None:
        self._told: dict[str, list[tuple[int, str]]] = {}
        self._count = 0
        self._bound = 1024

    def __bool__(self) -> bool:
        return bool(self._told)

    def tell(self, seq: int, connection: str, peer: str, oldest: int) -> None:
        """From record `seq` on it is `peer`; nobody asks for records before `oldest` any more."""
        self._told.setdefault(connection, []).append((seq, peer))
        self._count += 1
        if self._count > self._bound:
            self._forget(oldest)

    def at(self, connection: str, seq: int) -> str:
        """The peer at record `seq`; empty if none was told by then."""
        told = self._told.get(connection)
        place = bisect_right(told, seq, key=lambda entry: entry[0]) if told else 0
        return told[place - 1][1] if told and place else ""

    def ended(self, seq: int, connection: str, oldest: int) -> None:
        """The connection has ended with record `seq`."""
        if connection in self._told:
            self.tell(seq + 1, connection, "", oldest)

    def _forget(self, oldest: int) -> None:
        for connection, told in tuple(self._told.items()):
            place = bisect_right(told, oldest, key=lambda entry: entry[0]) - 1
            kept = told[max(place, 0) :]
            if kept[-1][0] <= oldest and not kept[-1][1]:
                del self._told[connection]
            else:
                self._told[connection] = kept
        self._count = sum(map(len, self._told.values()))
        self._bound = max(1024, 2 * self._count)
