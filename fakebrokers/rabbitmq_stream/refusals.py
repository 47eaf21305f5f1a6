"""The errors of the broker model. Raised inside the fake only; a session turns them into an answer."""

from __future__ import annotations

from fakebrokers.errors import FakeBrokerError
from fakebrokers.rabbitmq_stream.codes import Code


class Refused(FakeBrokerError):
    """The broker answers a request with an error code."""

    def __init__(self, code: Code) -> None:
        self.code = code
        super().__init__(f"code {int(code)}: {code.name.lower().replace('_', ' ')}")


class Crashed(FakeBrokerError):
    """A request that crashes the server's process of this connection: the client sees FIN, and no frame."""
