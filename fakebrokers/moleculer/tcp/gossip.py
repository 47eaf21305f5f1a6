"""Gossip: how nodes without a server learn of each other (docs/protocols/moleculer.md, 6.4)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import UNSET

from fakebrokers.moleculer.packets import Info, packet_from
from fakebrokers.moleculer.tcp.frames import GossipRequest, GossipResponse

if TYPE_CHECKING:
    from fakebrokers.moleculer.nodes import FakeNode


@dataclass
class Known:
    """What a node knows of another.

    Attributes:
        info: The fields of its INFO; None as long as they have not come.
        seq: Of that INFO; 0 for a node that is only an address.
        host, port: Where it listens.
    """

    info: Mapping[str, Any] | None = None
    seq: int = 0
    cpu: Any = 0
    cpu_seq: int = 0
    online: bool = False
    host: str = ""
    port: int = 0


class Gossip:
    """What one fake node knows of all others, and what it says of that."""

    def __init__(self, node: FakeNode) -> None:
        self.node = node
        self.known: dict[str, Known] = {}
        self.port = 0
        self.cpu_seq = 1

    def own_info(self) -> dict[str, Any]:
        """This node's INFO, in the order in which gossip has it."""
        info = self.node.info()
        names = ("ipList", "hostname", "instanceID", "client", "config")
        values = {name: getattr(info, name) for name in names}
        tail = {"seq": info.seq, "metadata": info.metadata, "services": info.services}
        return {**values, "port": self.port, **tail}

    def address(self, id: str, host: str, port: int) -> None:
        """A node listens there."""
        known = self.known.setdefault(id, Known())
        known.host, known.port = host, port

    def request(self) -> GossipRequest:
        """All that is known, in short."""
        node = self.node
        online: dict[str, Any] = {node.id: [node.seq, self.cpu_seq, 0]}
        offline: dict[str, Any] = {}
        for id, known in self.known.items():
            if known.online:
                online[id] = [known.seq, known.cpu_seq, known.cpu]
            elif known.seq:
                offline[id] = known.seq
        return GossipRequest(online=online, offline=offline or UNSET)

    def answer(self, request: GossipRequest, now: float) -> GossipResponse | None:
        """What the asking node does not know; None if it knows all."""
        online: dict[str, Any] = {}
        offline: dict[str, Any] = {}
        asked_online, asked_offline = _rows(request.online), _rows(request.offline)
        self._answer_own(asked_online, asked_offline, online)
        for id, known in self.known.items():
            seq, cpu_seq = _seq(asked_online.get(id)), _cpu_seq(asked_online.get(id))
            gone = asked_offline.get(id)
            seq = gone if isinstance(gone, int) else seq
            if seq < known.seq:
                if known.online and known.info is not None:
                    online[id] = [known.info, known.cpu_seq, known.cpu]
                else:
                    offline[id] = known.seq
            elif isinstance(gone, int):
                self.lost(id, now, seq)
            elif known.online and cpu_seq > known.cpu_seq:
                self._take_cpu(id, asked_online[id][1:])
            elif known.online and cpu_seq < known.cpu_seq:
                online[id] = [known.cpu_seq, known.cpu]
        if not online and not offline:
            return None
        return GossipResponse(online=online or UNSET, offline=offline or UNSET)

    def _answer_own(
        self, asked_online: Mapping[str, Any], asked_offline: Mapping[str, Any], online: dict[str, Any]
    ) -> None:
        node = self.node
        gone = asked_offline.get(node.id)
        if isinstance(gone, int):  # who is told that it is offline says that it is not
            node.seq = max(node.seq, gone + 1)
            online[node.id] = [self.own_info(), self.cpu_seq, 0]
        elif _seq(asked_online.get(node.id)) < node.seq:
            online[node.id] = [self.own_info(), self.cpu_seq, 0]

    def learn(self, response: GossipResponse, now: float) -> None:
        """Another node has answered."""
        for id, row in _rows(response.online).items():
            if id == self.node.id or not isinstance(row, list):
                continue
            if len(row) == 3 and isinstance(row[0], dict):
                self._take_info(id, row[0], now)
                self._take_cpu(id, row[1:])
            elif len(row) == 2:
                self._take_cpu(id, row)
        for id, seq in _rows(response.offline).items():
            if id != self.node.id and isinstance(seq, int):
                known = self.known.setdefault(id, Known())
                if seq > known.seq:
                    self.lost(id, now, seq)

    def _take_info(self, id: str, info: dict[str, Any], now: float) -> None:
        known = self.known.setdefault(id, Known())
        seq = info.get("seq")
        seq = seq if isinstance(seq, int) else 1
        if seq <= known.seq:
            return
        known.info, known.seq, known.online = info, seq, True
        if not known.port and isinstance(info.get("port"), int):
            known.host, known.port = _host_of(info), info["port"]
        packet = packet_from(Info, {**info, "sender": id, "ver": next(reversed(self.node.versions), "")})
        assert isinstance(packet, Info)
        self.node.peers.info(packet, now)

    def _take_cpu(self, id: str, row: Any) -> None:
        known = self.known.get(id)
        if known is not None and len(row) == 2 and isinstance(row[0], int) and row[0] > known.cpu_seq:
            known.cpu_seq, known.cpu = row

    def lost(self, id: str, now: float, seq: int | None = None) -> None:
        """A node is offline."""
        known = self.known.get(id)
        if known is not None and known.online:
            known.online = False
            known.seq = seq if seq is not None else known.seq + 1
            self.node.lost(id, now)

    def signed(self, packet: GossipRequest | GossipResponse) -> GossipRequest | GossipResponse:
        """With what stands last in all packets."""
        return msgspec.structs.replace(packet, ver=self.node.version_for(""), sender=self.node.id)


def _rows(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _seq(row: Any) -> int:
    return row[0] if isinstance(row, list) and row and isinstance(row[0], int) else 0


def _cpu_seq(row: Any) -> int:
    return row[1] if isinstance(row, list) and len(row) > 1 and isinstance(row[1], int) else 0


def _host_of(info: Mapping[str, Any]) -> str:
    addresses = info.get("ipList")
    first = addresses[0] if isinstance(addresses, list) and addresses else info.get("hostname")
    return str(first)
