"""Handshakes by which a fake RabbitMQ is compared with a real one: good ones, and others."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from fakebrokers.core.dialect import Command, Login
from fakebrokers.rabbitmq_stream import frames as f
from fakebrokers.rabbitmq_stream.codec import StreamCodec

if TYPE_CHECKING:
    from fakebrokers.rabbitmq_stream.dialect.author import Author

_encode = StreamCodec("client").encode


class Handshake:
    """Says handshakes in an author's sequence.

    Args:
        login: User and password.
    """

    def __init__(self, author: Author, login: Login) -> None:
        self._author = author
        self._login = login

    def say(self, client: int) -> None:
        """As it should be; every frame but Tune is answered before the next."""
        author = self._author
        author.say(client, f.PeerProperties(author.next_id(), {}), answers=1)
        author.say(client, f.SaslHandshake(author.next_id()), answers=1)
        self._authenticate(client, "PLAIN", self._plain(), answers=2)
        tune, enter = f.Tune(1_048_576, 0), f.Open(author.next_id(), "/")
        cut = len(_encode(tune))
        author.add(Command(client, _encode(tune) + _encode(enter), "Tune + Open", cut, answers=1))

    def say_oddly(self) -> None:
        """Its steps, with one missing, twice, elsewhere, or different."""
        author, random = self._author, self._author.random
        steps: list[Callable[[], None]] = [
            lambda: author.say(0, f.PeerProperties(author.next_id(), random.choice([{}, {"a": ""}]))),
            lambda: author.say(0, f.SaslHandshake(author.next_id())),
            self._authenticate_oddly,
            lambda: author.say(0, f.Tune(random.choice([0, 1_048_576, 4096, 100, 2**31]), 0)),
            lambda: author.say(0, f.Open(author.next_id(), random.choice(["/", "/", "/", "nope", ""]))),
            lambda: author.metadata(0),
        ]
        others = [
            lambda: author.say(0, f.Heartbeat()),
            lambda: author.create(0),
            lambda: author.close(0),
            lambda: author.rubbish(0),
        ]
        at = random.randrange(len(steps))
        change = random.randrange(4)
        if change == 0:
            steps.insert(at, random.choice(steps + others))
        elif change == 1:
            del steps[at]
        elif change == 2:
            steps.append(steps.pop(at))
        for step in steps:
            step()

    def _authenticate(self, client: int, mechanism: str, data: bytes | None, answers: int = 0) -> None:
        frame = f.SaslAuthenticate(self._author.next_id(), mechanism, data)
        text = f"SaslAuthenticate {mechanism or repr('')}"
        self._author.add(Command(client, _encode(frame), text, answers=answers))

    def _authenticate_oddly(self) -> None:
        name, password = (each.encode() for each in self._login)
        plain = self._plain()
        table = b"\5LOGINS" + _long(name) + b"\x08PASSWORDS" + _long(password)
        wrong = [
            *[("PLAIN", data) for data in (plain + b"x", b"\0who\0guest", None, b"guest", plain[1:])],
            *[("PLAIN", name + plain), ("AMQPLAIN", table), ("AMQPLAIN", plain), ("ANONYMOUS", b"")],
            *[(mechanism, plain) for mechanism in ("EXTERNAL", "plain", "")],
        ]
        mechanism, data = self._author.random.choice([("PLAIN", plain)] * len(wrong) + wrong)
        self._authenticate(0, mechanism, data)

    def _plain(self) -> bytes:
        return f"\0{self._login.user}\0{self._login.password}".encode()


def _long(value: bytes) -> bytes:
    return len(value).to_bytes(4, "big") + value
