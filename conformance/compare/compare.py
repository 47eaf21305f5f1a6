"""Compares a fake with a real server, sequence by sequence, and makes each difference small."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from random import Random
from typing import Any, NamedTuple
from urllib.parse import unquote, urlsplit

import msgspec

from conformance.compare.talk import ANY, Heard, Patience, talk
from fakebrokers.core.dialect import Command, Dialect, Login
from fakebrokers.errors import UsageError
from fakebrokers.protocol import Protocol
from fakebrokers.server import FakeServer

#: A sequence that differs is said this often, each time with more patience, before it counts.
REPEATS = (1.0, 3.0, 9.0)
#: Sequences that are tried to make one difference small.
ATTEMPTS = 80


class Difference(msgspec.Struct, frozen=True):
    """A smallest sequence that two servers answer differently.

    Attributes:
        seed: Of the sequence that it was found in.
        commands: One text for each.
        fake, real: What the clients heard that heard something else.
        known: The reason why it is so; empty: nobody knows of it.
    """

    seed: int
    commands: list[str]
    fake: str
    real: str
    known: str = ""


class Comparison(msgspec.Struct):
    """What came of it; the document of ``compare --json``."""

    sequences: int = 0
    commands: int = 0
    differences: list[Difference] = msgspec.field(default_factory=list)

    @property
    def unknown(self) -> list[Difference]:
        """Differences that nobody knows of."""
        return [each for each in self.differences if not each.known]


class Target(NamedTuple):
    """A server.

    Attributes:
        wire: Name of what it speaks.
    """

    wire: str
    address: tuple[str, int]
    login: Login


def target_of(protocol: Protocol, url: str) -> Target:
    """The server of a URL such as ``nats://127.0.0.1:4222``; a host and port is on the first wire.

    Raises:
        UsageError: The URL is none, or its scheme no wire of the protocol.
    """
    schemes = {name: name for name in protocol.variants} or {protocol.name: protocol.wires[0].name}
    if "//" not in url and ":" in url:
        url = f"{next(iter(schemes))}://{url}"
    try:
        parts = urlsplit(url)
        wire, port = schemes.get(parts.scheme), parts.port
    except ValueError as error:
        raise UsageError(f"expected the URL of a server, got {url!r}: {error}") from None
    if wire is None:
        raise UsageError(f"expected a URL that begins with {' or '.join(schemes)}, got {url!r}")
    address = (parts.hostname or "127.0.0.1", port or protocol.wire(wire).port)
    return Target(wire, address, Login(unquote(parts.username or ""), unquote(parts.password or "")))


@contextmanager
def fake_for(
    protocol: Protocol, target: Target, profile: str, *, real_delays: bool = False
) -> Iterator[FakeServer]:
    """The fake that is compared with a server, running; it lets the same client in.

    Args:
        real_delays: It is as slow as the server where that is so on purpose (failed logins).
    """
    options = {"profile": profile, **protocol.wire(target.wire).load_dialect().options}
    kind = protocol.load_control().options
    others: dict[str, Any] = {}
    if real_delays and "real_delays" in kind.__struct_fields__:
        options["real_delays"] = True
    if protocol.variants:
        options["transporter"] = target.wire
    if any(target.login):
        if "users" in kind.__struct_fields__:
            others["users"] = (f"{target.login.user}:{target.login.password}",)
        else:
            options |= {"user": target.login.user, "password": target.login.password}
    with protocol.load()(**options) as fake:
        kind(**others).prepare(fake)
        yield fake


class _Found(NamedTuple):
    """After which command two servers said different things."""

    at: int
    command: str
    fake: str
    real: str


class Comparer:
    """Says sequences to both.

    Args:
        fake: Where the fake listens.
        real: Where the real server listens.
    """

    def __init__(self, dialect: Dialect, fake: tuple[str, int], real: tuple[str, int], login: Login) -> None:
        self.dialect = dialect
        self._fake = fake
        self._real = real
        self._login = login

    def run(self, seeds: Iterable[int], progress: Callable[[int], None] | None = None) -> Comparison:
        """Compare the sequences of these seeds."""
        result = Comparison()
        for seed in seeds:
            commands = self.dialect.sequence(Random(seed), self._login)
            result.sequences += 1
            result.commands += len(commands)
            result.differences += self.differences(seed, commands)
            if progress is not None:
                progress(seed)
        return result

    def differences(self, seed: int, commands: Sequence[Command]) -> list[Difference]:
        """The first difference of a sequence, made small; none if it does not stay."""
        found = None
        for factor in REPEATS:
            found = self._differ(commands, factor)
            if found is None:
                return []
        assert found is not None
        known = self._known(found)
        if not known:
            commands = self._shrunk(list(commands))
            found = self._differ(commands, REPEATS[1]) or found
            known = self._known(found)
        texts = [f"{each.client}: {each.text}" for each in commands[: found.at + 1]]
        return [Difference(seed, texts, found.fake, found.real, known)]

    def _known(self, found: _Found) -> str:
        for each in self.dialect.known:
            if each.explains(found.command, found.fake, found.real):
                return each.reason
        return ""

    def _differ(self, commands: Sequence[Command], factor: float = 1.0) -> _Found | None:
        """The first difference."""
        patience = Patience(factor * self.dialect.patience)
        fake = talk(self.dialect, self._fake, self._login, commands, patience)
        real = talk(self.dialect, self._real, self._login, commands, patience)
        texts = [each.text for each in commands] + ["the end"]
        for at, (ours, theirs) in enumerate(zip(fake, real, strict=True)):
            if ours != theirs:
                return _Found(at, texts[at], _shown(ours, theirs), _shown(theirs, ours))
        return None

    def _shrunk(self, commands: list[Command]) -> list[Command]:
        """Fewer commands that still differ in a way that is not known."""
        left, size = ATTEMPTS, max(1, len(commands) // 2)
        while left:
            for smaller in _without(commands, size):
                left -= 1
                found = self._differ(smaller)
                if found is not None and not self._known(found):
                    commands = smaller
                    break
                if not left:
                    break
            else:
                if size == 1:
                    break
                size //= 2
        return commands


def _without(commands: list[Command], size: int) -> Iterator[list[Command]]:
    """The commands without each piece of that length, the last ones first."""
    for at in range((len(commands) - 1) // size * size, -1, -size):
        smaller = commands[:at] + commands[at + size :]
        if smaller:
            yield smaller


def _shown(heard: Heard, other: Heard) -> str:
    """What was heard where the other server was heard differently."""
    parts = []
    for client in sorted({*heard, *other}):
        if heard.get(client) != other.get(client):
            who = "any" if client == ANY else str(client)
            parts.append(f"{who}: {', '.join(heard.get(client, ())) or 'nothing'}")
    return "; ".join(parts)
