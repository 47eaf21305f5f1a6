"""What correct clients of NATS do in their own manner: parts in place of the reference client's."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

from conformance.clients.adapter.kit import AdapterBase, Failure
from conformance.clients.reference.nats.wire import CRLF, Line, Message, Parser


class ActsOnTheSize(Parser):
    """Hands a message over when as many bytes have come as it has, and reads over the end of line later."""

    _is_behind_payload = False

    def next(self) -> Message | Line | None:
        if self._is_behind_payload:
            if len(self.buffer) < len(CRLF):
                return None
            del self.buffer[: len(CRLF)]
            self._is_behind_payload = False
        line, _, rest = bytes(self.buffer).partition(CRLF)
        words = line.split()
        if not words or words[0] not in (b"MSG", b"HMSG") or len(rest) < int(words[-1]):
            return super().next()
        payload = rest[: int(words[-1])]
        del self.buffer[: len(line) + len(CRLF) + len(payload)]
        self._is_behind_payload = True
        whole = Parser()
        whole.buffer += line + CRLF + payload + CRLF
        return whole.next()


class NamesItsErrors(AdapterBase):
    """Reports what the server says is wrong in a sentence of its own: these errors have no number."""

    def emit(self, event: str, **fields: Any) -> None:
        if event == "error" and (said := fields["error"]).get("code") is not None:
            text = f"The server has said: {said['code']}."
            fields["error"] = {**said, "code": None, "text": text}
        super().emit(event, **fields)


class ConnectMakesIt(AdapterBase):
    """Its application has nothing to close before connect has returned: `connect` is a function that makes
    the client."""

    _connecting: ClassVar[set[str]] = set()

    async def attempt(self, request: Any) -> Any:
        name = request.get("args", {}).get("session", "")
        if request["op"] == "connect":
            self._connecting.add(name)
        try:
            return await super().attempt(request)
        finally:
            if request["op"] == "connect":
                self._connecting.discard(name)

    def session(self, name: str) -> Any:
        if name in self._connecting:
            raise Failure("closed", "nothing has been made yet", definite=True)
        return super().session(name)


WAYS: Mapping[str, tuple[tuple[type, ...], type[AdapterBase] | None]] = {
    "connect-makes-it": ((), ConnectMakesIt),
    "acts-on-the-size": ((ActsOnTheSize,), None),
    "names-its-errors": ((), NamesItsErrors),
}
