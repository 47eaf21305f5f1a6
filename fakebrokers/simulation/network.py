"""The network of a simulation: names of hosts, and who connects to whom."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import ipaddress
import socket
from collections.abc import Iterator
from functools import lru_cache

from fakebrokers.errors import UsageError, instead_of
from fakebrokers.simulation.ends import End, joined
from fakebrokers.simulation.hosts import PROCESS, Host, Process
from fakebrokers.simulation.links import Carrier, Links, Pair

#: Pauses between the attempts of a connect that nobody answers, in seconds: those of Linux.
CONNECT_PAUSES_S = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
_OWN_NAMES = frozenset({"localhost", "127.0.0.1", "::1"})
_ANY = frozenset({"", "0.0.0.0", "::"})


class Network:
    """All hosts, and what is between them.

    Attributes:
        outside: The process of code that was not started on a host: the test.
        links: What is between them.
        has_lost_a_process: Whether any was killed, of which nothing is called any more.
        lines: Names of hosts between which there was a connection: who connected first, then to whom.
    """

    def __init__(self, loop: Carrier) -> None:
        self.has_lost_a_process = False
        self.lines: dict[tuple[str, str], None] = {}
        self._hosts: dict[str, Host] = {}
        self._by_address: dict[str, Host] = {}
        self.outside = Process(self.host("test"))
        self.links = Links(loop, self.outside.context)

    # hosts

    def host(self, name: str) -> Host:
        """The host of that name; a new one if there is none."""
        if name not in self._hosts:
            if not name or name in _OWN_NAMES | _ANY or _is_address(name):
                raise UsageError(f"a host cannot be called {name!r}: expected a name such as 'shop'")
            number = len(self._hosts) + 257  # within 127.0.1.0, which brokers take for their own machine
            host = Host(name, f"127.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}")
            self._hosts[name] = self._by_address[host.address] = host
        return self._hosts[name]

    def new_host(self, name: str) -> Host:
        """A host that is not there yet; its name has a number if there is one of that name."""
        names: Iterator[str] = (f"{name}-{number}" if number > 1 else name for number in range(1, 1 << 31))
        return self.host(next(each for each in names if each not in self._hosts))

    def has(self, name: str) -> bool:
        """Whether there is a host of that name."""
        return name in self._hosts

    def known(self, name: str) -> Host:
        """A host that is there.

        Raises:
            UsageError: There is none of that name; with those there are.
        """
        if name not in self._hosts:
            raise UsageError(f"there is no host {name!r}{instead_of(name, list(self._hosts))}")
        return self._hosts[name]

    def here(self) -> Process:
        """The process whose code is running."""
        return PROCESS.get(self.outside)

    def address_of(self, name: str, asker: Host) -> str:
        """The address of a name, as a program of `asker` sees it.

        Raises:
            socket.gaierror: No host has that name.
        """
        if name in _OWN_NAMES:
            return "127.0.0.1"
        if name in self._hosts:
            return self._hosts[name].address
        if _is_address(name):
            return name
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    def at(self, address: str, asker: Host) -> Host | None:
        """Who has an address, as a program of `asker` sees it."""
        return asker if address in _OWN_NAMES | _ANY else self._by_address.get(address)

    def own_address(self, wanted: str | None, host: Host) -> tuple[str, bool]:
        """The address to show for one that a program listens on, and whether only its own host gets there.

        Raises:
            OSError: It is none of this host's.
        """
        if wanted is None or wanted in _ANY:
            return host.address, False
        address = self.address_of(wanted, host)
        if self.at(address, host) is not host:
            raise OSError(errno.EADDRNOTAVAIL, f"{wanted} is no address of the host {host.name}")
        return address, address in _OWN_NAMES

    # connections

    async def connect(self, address: str, port: int, *, own_port: int = 0) -> End:
        """Open a connection for the process that is running, as Linux does.

        Raises:
            OSError: Nothing accepts it.
        """
        process, links = self.here(), self.links
        host = process.host
        for pause in CONNECT_PAUSES_S:
            again_at = links.loop.time() + pause
            target = self.at(address, host)
            between = _pair(host, target or host)
            delay = links.delay(between)
            if delay and target is not None and not links.is_cut(between):
                await asyncio.sleep(delay)  # what is there when it arrives counts
            door = None if target is None else target.doors.get(port)
            if target is None or links.is_cut(between) or (door is not None and door.state == "hole"):
                await asyncio.sleep(again_at - links.loop.time())
                continue
            if door is None or not door.lets_in(host):
                await asyncio.sleep(delay)
                raise ConnectionRefusedError(errno.ECONNREFUSED, f"Connect call failed {(address, port)}")
            shown = "127.0.0.1" if target is host and address in _OWN_NAMES else host.address
            own = (shown, own_port or host.free_port())
            end, other = joined(links, between, process, own, door.process, (address, port))
            if target is not host and (target.name, host.name) not in self.lines:
                self.lines[host.name, target.name] = None
            accepting = door.process.context.copy()
            accepting.run(links.loop.call_soon, door.accept, other)
            try:
                await asyncio.sleep(delay)
            except BaseException:
                end.close()
                raise
            return end
        raise TimeoutError(errno.ETIMEDOUT, f"Connect call failed {(address, port)}")

    def send_datagram(self, source: tuple[str, int], target: tuple[str, int], data: bytes) -> None:
        """A datagram on its way; it is lost where nothing takes it."""
        host, links = self.here().host, self.links
        to = self.at(target[0], host)
        if to is None or links.is_cut(between := _pair(host, to)):
            return
        shown = ("127.0.0.1" if to is host and target[0] in _OWN_NAMES else host.address, source[1])

        def arrive() -> None:
            box = to.boxes.get(target[1])
            if box is not None and not links.is_cut(between):
                links.note(shown, target, data, " udp")
                box.arrived(data, shown)

        links.later(links.delay(between), arrive)


def _pair(a: Host, b: Host) -> Pair:
    return frozenset((a.name, b.name))


@lru_cache(maxsize=1024)
def _is_address(name: str) -> bool:
    with contextlib.suppress(ValueError):
        ipaddress.ip_address(name)
        return True
    return False
