"""The two ends of a simulated connection: what a kernel keeps for a TCP socket."""

from __future__ import annotations

import errno
import os
import socket
import struct
from collections import deque
from collections.abc import Callable
from enum import Enum
from typing import TYPE_CHECKING, Any, Protocol

from fakebrokers.simulation.links import Links, Pair

if TYPE_CHECKING:
    from asyncio import Handle, TimerHandle

#: Bytes that one end may have sent and the program at the other end not have read.
CAPACITY = 256 * 1024
#: Seconds after which a sender gives up whom nobody acknowledges anything: that of Linux.
GIVE_UP_S = 924.6
_NO_LINGER = struct.pack("ii", 1, 0)

Address = tuple[str, int]


class Sign(Enum):
    """What passes a line besides bytes."""

    FIN = "fin"
    RST = "rst"


class Owner(Protocol):
    """Whose an end is, see `hosts.Process`."""

    def hold(self, what: End, /) -> None:
        """It is open."""

    def let_go(self, what: End, /) -> None:
        """It is closed."""


class End:
    """One end.

    Attributes:
        local, remote: The addresses that the program sees.
        peer: The other end.
        inbox: What has arrived and was not read.
        ended: Nothing more comes behind that.
        error: The connection is broken.
        is_open: The program has not closed it.
        is_secret: TLS is spoken.
        options: What the program has set, by level and option.
        token: A socket of the operating system that stands for it and is never used.
        is_woken: The watcher is going to be called; it takes this back.
        at_close: Called when it is closed, by the program or because that was killed.
    """

    peer: End

    def __init__(self, links: Links, between: Pair, owner: Owner, local: Address, remote: Address) -> None:
        self.local = local
        self.remote = remote
        self.inbox = bytearray()
        self.ended = False
        self.error: OSError | None = None
        self.is_open = True
        self.options: dict[tuple[int, int], Any] = {}
        self.is_secret = False
        self.token: socket.socket | None = None
        self.at_close: Callable[[], None] | None = None
        self._links = links
        self._between = between
        self._owner = owner
        self._line: deque[bytes | Sign] = deque()  #: what is on its way to the other end
        self._under_way = 0
        self._arrives_at = 0.0
        self._giving_up: TimerHandle | None = None
        self._finished = False
        self._wants_room = False  #: not all could be sent
        self._teller: Handle | None = None  #: calls the watcher, in its context
        self.is_woken = False
        owner.hold(self)

    # the program's side

    def watch(self, watcher: Callable[[], None] | None) -> None:
        """Tell the program, in its present context, when something has come or there is room again."""
        if self._teller is not None:
            self._teller.cancel()
        self._teller = None if watcher is None else self._links.loop.handle(watcher)
        self.is_woken = False
        if self.inbox or self.ended or self.error is not None:
            self.wake()

    def wake(self) -> None:
        """Something has changed."""
        if self._teller is not None and not self.is_woken:
            self.is_woken = True
            self._links.loop.call(self._teller)

    def send(self, data: bytes | bytearray | memoryview) -> int:
        """Send as much as there is room for; how much.

        Raises:
            OSError: The connection is broken, or its own direction has ended.
        """
        if self.error is not None:
            raise self.error
        if self._finished or not self.is_open:
            raise BrokenPipeError(errno.EPIPE, os.strerror(errno.EPIPE))
        size, room = len(data), CAPACITY - self._under_way - len(self.peer.inbox)
        self._wants_room = room < size
        if self._wants_room:
            size = max(0, room)
            data = data[:size]
        if size and not self._line and self._between not in self._links.slow:
            self.peer._take(bytes(data))  # as nearly always
        elif size:
            self._put(bytes(data))
        return size

    def receive(self, size: int) -> bytes | None:
        """Take what has arrived; b"" where nothing more comes, None if it may still come.

        Raises:
            OSError: The connection is broken.
        """
        if self.inbox:
            if len(self.inbox) > size:
                data = bytes(self.inbox[:size])
                del self.inbox[:size]
            else:
                data = bytes(self.inbox)
                self.inbox.clear()
            if self.peer._wants_room:
                self.peer.wake()
            return data
        if self.error is not None:
            raise self.error
        return b"" if self.ended else None

    def finish(self) -> None:
        """Send FIN; go on reading."""
        if not self._finished and self.is_open and self.error is None:
            self._finished = True
            self._put(Sign.FIN)

    def close(self) -> None:
        """Let go of it, as a kernel does: with RST where something was left unread, or was asked for."""
        if not self.is_open:
            return
        lingers = self.options.get((socket.SOL_SOCKET, socket.SO_LINGER)) != _NO_LINGER
        if lingers and not self.inbox:
            self.finish()
        elif self.error is None:
            self._put(Sign.RST)
        self.is_open = False
        self._teller = None
        self._owner.let_go(self)
        if self.token is not None:
            self.token.close()
        if self.at_close is not None:
            self.at_close()
            self.at_close = None

    # the line to the other end

    def _put(self, what: bytes | Sign) -> None:
        if not self._line and self._between not in self._links.slow:
            self.peer._take(what)
            return
        self._line.append(what)
        if isinstance(what, bytes):
            self._under_way += len(what)
        if self._giving_up is None:
            self._schedule()

    def _schedule(self) -> None:
        links = self._links
        now = links.loop.time()
        self._arrives_at = max(now + links.delay(self._between), self._arrives_at)
        links.later(self._arrives_at - now, self._arrive)

    def _arrive(self) -> None:
        """The first thing on the line gets to the other end."""
        if not self._line or self._giving_up is not None:
            return
        links = self._links
        if links.is_cut(self._between):
            links.keep_back(self._between, self._send_again)
            at = links.loop.time() + GIVE_UP_S
            self._giving_up = links.loop.call_at(at, self._give_up, context=links.context)
            return
        what = self._line.popleft()
        if isinstance(what, bytes):
            self._under_way -= len(what)
        self.peer._take(what)

    def _send_again(self) -> None:
        """The way is free: everything that was kept back is sent."""
        if self._giving_up is not None:
            self._giving_up.cancel()
            self._giving_up = None
        for _ in self._line:
            self._schedule()

    def _give_up(self) -> None:
        self._line.clear()
        self._break(TimeoutError(errno.ETIMEDOUT, os.strerror(errno.ETIMEDOUT)))

    def _take(self, what: bytes | Sign) -> None:
        """Something has arrived here."""
        if self.error is not None:
            return
        if type(what) is bytes:
            if self._links.trace is not None and not (self.is_secret or self.peer.is_secret):
                self._links.note(self.remote, self.local, what)  # ciphers never repeat
            if not self.is_open:
                self._put(Sign.RST)  # nobody is going to read it
                return
            self.inbox += what
            if self._teller is not None and not self.is_woken:  # `wake`, without the call
                self.is_woken = True
                self._links.loop.call(self._teller)
            return
        if what is Sign.RST:
            self._break(ConnectionResetError(errno.ECONNRESET, os.strerror(errno.ECONNRESET)))
            return
        self.ended = True
        self.wake()

    def _break(self, error: OSError) -> None:
        if self.error is None:
            self.error = error
            self.inbox.clear()
            self.wake()


def joined(
    links: Links, between: Pair, client: Owner, local: Address, server: Owner, remote: Address
) -> tuple[End, End]:
    """Both ends of a new connection: the client's, and the server's."""
    one, other = End(links, between, client, local, remote), End(links, between, server, remote, local)
    one.peer, other.peer = other, one
    return one, other
