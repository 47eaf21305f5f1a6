"""Handshakes by which a fake RabbitMQ is compared with a real one: good ones, and others."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from fakebrokers.core.dialect import Command, Login
from fakebrokers.rabbitmq_stream import frames as f
from fakebrokers.rabbitmq_stream.codec import StreamCodec
from fakebrokers.rabbitmq_stream.dialect.commands import Commands

_encode = StreamCodec("client").encode


class Handshake:
    """Says handshakes.

    Args:
        commands: Get them.
        login: User and password.
    """

    def __init__(self, commands: Commands, login: Login) -> None:
        self._commands = commands
        self._login = login

    def say(self, client: int) -> None:
        """As it should be; every frame but Tune is answered before the next."""
        commands = self._commands
        commands.say(client, f.PeerProperties(commands.next_id(), {}), answers=1)
        commands.say(client, f.SaslHandshake(commands.next_id()), answers=1)
        self._authenticate(client, "PLAIN", self._plain(), answers=2)
        tune, enter = f.Tune(1_048_576, 0), f.Open(commands.next_id(), "/")
        cut = len(_encode(tune))
        commands.add(Command(client, _encode(tune) + _encode(enter), "Tune + Open", cut, answers=1))

    def say_oddly(self, last: Callable[[], None], others: Sequence[Callable[[], None]]) -> None:
        """Its steps, with one missing, twice, elsewhere, or different.

        Args:
            last: What the client says once it is in.
            others: What may come instead.
        """
        commands, random = self._commands, self._commands.random
        steps: list[Callable[[], None]] = [
            lambda: commands.say(0, f.PeerProperties(commands.next_id(), random.choice([{}, {"a": ""}]))),
            lambda: commands.say(0, f.SaslHandshake(commands.next_id())),
            self._authenticate_oddly,
            lambda: commands.say(0, f.Tune(random.choice([0, 1_048_576, 4096, 100, 2**31]), 0)),
            lambda: commands.say(0, f.Open(commands.next_id(), random.choice(["/", "/", "/", "nope", ""]))),
            last,
        ]
        at = random.randrange(len(steps))
        change = random.randrange(4)
        if change == 0:
            steps.insert(at, random.choice([*steps, *others]))
        elif change == 1:
            del steps[at]
        elif change == 2:
            steps.append(steps.pop(at))
        for step in steps:
            step()

    def _authenticate(self, client: int, mechanism: str, data: bytes | None, answers: int = 0) -> None:
        frame = f.SaslAuthenticate(self._commands.next_id(), mechanism, data)
        text = f"SaslAuthenticate {mechanism or repr('')}"
        self._commands.add(Command(client, _encode(frame), text, answers=answers))

    def _authenticate_oddly(self) -> None:
        name, password = (each.encode() for each in self._login)
        plain = self._plain()
        table = b"\5LOGINS" + _long(name) + b"\x08PASSWORDS" + _long(password)
        wrong = [
            *[("PLAIN", data) for data in (plain + b"x", b"\0who\0guest", None, b"guest", plain[1:])],
            *[("PLAIN", name + plain), ("AMQPLAIN", table), ("AMQPLAIN", plain), ("ANONYMOUS", b"")],
            *[(mechanism, plain) for mechanism in ("EXTERNAL", "plain", "")],
        ]
        mechanism, data = self._commands.random.choice([("PLAIN", plain)] * len(wrong) + wrong)
        self._authenticate(0, mechanism, data)

    def _plain(self) -> bytes:
        return f"\0{self._login.user}\0{self._login.password}".encode()


def _long(value: bytes) -> bytes:
    return len(value).to_bytes(4, "big") + value
