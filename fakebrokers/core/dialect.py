"""What a wire supplies to be compared with a real server: commands by a seed, and what answers mean.

``fakebrokers compare`` says the same commands to a fake and to a real server. It reads a wire's `Dialect`
and nothing else of the protocol.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from random import Random
from typing import Any, NamedTuple

from fakebrokers.core.frames import Frame
from fakebrokers.core.session import Codec

#: Stands in commands for a name that no other sequence on the same server uses; always of this length.
MARK = "zqzqzq"


class Command(NamedTuple):
    """What one client does.

    Attributes:
        client: Its number; it connects with its first command.
        data: What it sends; None: it closes the connection.
        text: For tables.
        cut: Bytes of the first of two segments; 0 for one segment.
        answers: Frames that answer it, where the client cannot ask yet: nobody waits longer than for these.
    """

    client: int
    data: bytes | None
    text: str
    cut: int = 0
    answers: int = 0


class Login(NamedTuple):
    """What clients show; empty where anybody may come in."""

    user: str = ""
    password: str = ""


class Known(NamedTuple):
    """A difference that is meant, or that nobody can see to.

    Attributes:
        command, fake, real: Regular expressions, searched in the last command of the smallest sequence, and
            in what was heard after it.
        reason: Why it stays.
    """

    command: str
    fake: str
    real: str
    reason: str

    def explains(self, command: str, fake: str, real: str) -> bool:
        """Whether a difference is this one."""
        texts = ((self.command, command), (self.fake, fake), (self.real, real))
        return all(re.search(pattern, text, re.DOTALL) for pattern, text in texts)


class Speaker(ABC):
    """A client's end of one connection.

    Attributes:
        codec: Reads what the server says.
        closing: The server has said that it is about to hang up. It answers nothing any more; the question
            is then what a client has to say to that.
    """

    codec: Codec
    closing: bool = False

    @property
    def is_waiting(self) -> bool:
        """Whether an answer is due that one to a question could overtake."""
        return False

    def sent(self, data: bytes) -> None:  # noqa: B027 - most need no note
        """Take note of a command that the client has sent."""

    @abstractmethod
    def question(self) -> bytes:
        """A question whose answer shows that everything before it has been dealt with; empty: none yet.

        It may hold `MARK`.
        """

    @abstractmethod
    def is_answer(self, frame: Frame) -> bool:
        """Whether this is an answer to the question; asked of every frame, in order."""


class Dialect(ABC):
    """How one wire is compared.

    Attributes:
        known: Differences that are meant.
        rounds: How often a client asks: twice where the answer can overtake what other processes of the
            server have to say about the command.
        patience: How much longer than others its servers take.
        options: What the fake is made with besides.
    """

    known: Sequence[Known] = ()
    rounds: int = 1
    patience: float = 1.0
    options: Mapping[str, Any] = {}

    @abstractmethod
    def speaker(self, login: Login) -> Speaker:
        """A client that has not said anything."""

    @abstractmethod
    def sequence(self, random: Random, login: Login) -> list[Command]:
        """Some commands of a few clients; the same for the same `random`."""

    @abstractmethod
    def brief(self, frame: Frame) -> str:
        """A frame without what differs from run to run; empty: it does not count."""

    def is_drawn(self, frame: Frame) -> bool:
        """Whether it is the server's choice which client gets this (one member of a group)."""
        return False

    def joined(self, frames: Sequence[Frame]) -> Sequence[Frame]:
        """What a client heard after one command, with those as one that a server may cut as it likes."""
        return frames

    def is_unordered(self, first: Frame, second: Frame) -> bool:
        """Whether two frames that follow each other might as well have come the other way round."""
        return False


def segments(random: Random, commands: list[Command]) -> list[Command]:
    """The same commands, some of them together in one segment, some cut in two."""
    found: list[Command] = []
    for command in commands:
        last = found[-1] if found else None
        joins = last is not None and last.client == command.client and random.random() < 0.3
        if joins and last is not None and last.data and command.data:
            found[-1] = Command(last.client, last.data + command.data, f"{last.text} + {command.text}")
        else:
            found.append(command)
    return [_cut(random, each) if each.data and random.random() < 0.1 else each for each in found]


def _cut(random: Random, command: Command) -> Command:
    size = len(command.data or b"")
    return command._replace(cut=random.randrange(1, size)) if size > 1 else command
