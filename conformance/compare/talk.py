"""Says a sequence to one server and notes what each client hears after each command.

A server may be slow, and answers have no end that shows. So each client asks a question after every
command; what came before its answer belongs to the command. The client that acts asks first: what it set
off is then on its way to the others before they ask.
"""

from __future__ import annotations

import contextlib
import socket
import time
from collections.abc import Callable, Sequence
from itertools import count
from random import Random

from fakebrokers.core.dialect import MARK, Command, Dialect, Login, Speaker
from fakebrokers.core.frames import Frame

#: What a client heard that may be for any of several.
ANY = -1
#: Text for the end of a connection.
END = "end"

#: Linux only.
QUICK_ACK: int | None = getattr(socket, "TCP_QUICKACK", None)

#: By the client's number: what it heard after one command.
Heard = dict[int, tuple[str, ...]]

_marks = count(Random().randrange(26**5))


def new_mark() -> str:
    """A name for one run of a sequence, of the length of `MARK`."""
    number, letters = next(_marks), []
    for _ in range(len(MARK) - 1):
        number, digit = divmod(number, 26)
        letters.append(chr(ord("a") + digit))
    return "m" + "".join(letters)


class Patience:
    """How long to wait, in seconds.

    Attributes:
        answer_s: For the answer to a question; without one nobody asks that client any more.
        quiet_s: For a client that cannot be asked to hear something.
    """

    def __init__(self, factor: float = 1.0) -> None:
        self.answer_s = 0.4 * factor
        self.quiet_s = 0.05 * factor
        self.end_s = 1.0 * factor


class _Line:
    """One client's connection.

    Args:
        mark: Stands for `MARK` in what it says.
    """

    def __init__(self, address: tuple[str, int], speaker: Speaker, patience: Patience, mark: str) -> None:
        self.speaker = speaker
        self.heard: list[Frame] = []
        self.ended = False
        self.reported = False  # the end has been noted
        self.mute = False  # a question was not answered: it cannot be asked
        self._patience = patience
        self._mark = mark.encode()
        self._answered = False
        self._socket = socket.create_connection(address, timeout=10)
        self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def send(self, data: bytes) -> None:
        """Send a segment; a connection that has ended shows when it is read."""
        with contextlib.suppress(OSError):
            self._socket.settimeout(10)
            self._socket.sendall(data)

    def carry_out(self, command: Command) -> None:
        """Do what it says."""
        if command.data is None:
            self.leave()
            return
        data = command.data.replace(MARK.encode(), self._mark)
        self.speaker.sent(data)
        if command.cut:
            self.send(data[: command.cut])
            time.sleep(0.002)  # two segments
        self.send(data[command.cut :])

    def settle(self, rounds: int, *, acted: bool, answers: int = 0) -> None:
        """Read until everything so far has been dealt with."""
        if acted and self.speaker.is_waiting:
            self._read(self._patience.answer_s, lambda: not self.speaker.is_waiting)
        can_ask = bool(self.speaker.question())
        for _ in range(rounds if can_ask else 0):
            if not (self.mute or self.ended):
                self.send(self.speaker.question().replace(MARK.encode(), self._mark))
                self.mute = not self._read(self._patience.answer_s, self._until_answer())
        if acted and answers and not can_ask:
            self._read(self._patience.answer_s, lambda: len(self.heard) >= answers)
        elif acted and (self.mute or not can_ask):
            self._read(self._patience.quiet_s)

    def listen(self) -> None:
        """Read what a client hears that cannot be asked."""
        if self.mute or not self.speaker.question():
            self._read(self._patience.quiet_s)

    def leave(self) -> None:
        """Close, and wait until the server has."""
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_WR)
        self._read(self._patience.end_s, lambda: False)
        self.heard.clear()
        self.ended = self.reported = True
        time.sleep(self._patience.quiet_s / 5)  # a server may tidy up after the close

    def close(self) -> None:
        """Let go of the socket."""
        self._socket.close()

    def _read(self, limit_s: float, until: Callable[[], bool] | None = None) -> bool:
        """Read for a time; whether that or the end came. Without a condition, silence ends it too."""
        deadline = time.monotonic() + limit_s
        while not self.ended and not (until is not None and until()):
            left = deadline - time.monotonic()
            if left <= 0:
                return False
            self._socket.settimeout(left)
            if QUICK_ACK is not None:  # a server that collects small segments would wait for our ACK
                self._socket.setsockopt(socket.IPPROTO_TCP, QUICK_ACK, 1)
            try:
                data = self._socket.recv(1 << 18)
            except TimeoutError:
                return False
            except OSError:
                data = b""
            self._take(data)
            if until is None:
                deadline = time.monotonic() + limit_s
        return True

    def _until_answer(self) -> Callable[[], bool]:
        """Ends the wait for an answer: it is there, or none will come any more; then only the end counts."""
        self._answered = False
        if self.speaker.closing:
            return lambda: False
        return lambda: self._answered or self.speaker.closing

    def _take(self, data: bytes) -> None:
        self.ended = not data
        for frame, _ in self.speaker.codec.feed(data):
            if self.speaker.is_answer(frame):
                self._answered = True
            else:
                self.heard.append(frame)


def talk(
    dialect: Dialect,
    address: tuple[str, int],
    login: Login,
    commands: Sequence[Command],
    patience: Patience | None = None,
) -> list[Heard]:
    """What each client heard after each command, and one item more: what came late."""
    mark, lines, found = new_mark(), dict[int, _Line](), list[Heard]()
    patience = patience or Patience()
    try:
        for command in commands:
            line = lines.get(command.client)
            if line is None:
                line = lines[command.client] = _Line(address, dialect.speaker(login), patience, mark)
            line.carry_out(command)
            for each in (line, *(other for other in lines.values() if other is not line)):
                each.settle(dialect.rounds, acted=each is line, answers=command.answers)
            found.append(_heard(dialect, lines, mark))
        for line in lines.values():
            line.listen()
        return [*found, _heard(dialect, lines, mark)]
    finally:
        for line in lines.values():
            line.close()


def _heard(dialect: Dialect, lines: dict[int, _Line], mark: str) -> Heard:
    found: Heard = {}
    drawn: list[str] = []
    for number, line in lines.items():
        frames, line.heard = line.heard, []
        own = [frame for frame in frames if not dialect.is_drawn(frame)]
        drawn += [dialect.brief(frame) for frame in frames if dialect.is_drawn(frame)]
        texts = [text.replace(mark, MARK) for text in _in_order(dialect, dialect.joined(own)) if text]
        if line.ended and not line.reported:
            texts.append(END)
            line.reported = True
        if texts:
            found[number] = tuple(texts)
    if drawn:
        found[ANY] = tuple(sorted(text.replace(mark, MARK) for text in drawn))
    return found


def _in_order(dialect: Dialect, frames: Sequence[Frame]) -> list[str]:
    """Texts of frames; those that might have come in any order are sorted."""
    runs: list[list[Frame]] = []
    for frame in frames:
        if runs and dialect.is_unordered(runs[-1][-1], frame):
            runs[-1].append(frame)
        else:
            runs.append([frame])
    return [text for run in runs for text in sorted(map(dialect.brief, run))]
