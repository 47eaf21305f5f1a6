"""How an op ended, as the runner sees it."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from conformance.clients.adapter.messages import Error, Kind, Outcome, Response


class Result(msgspec.Struct):
    """The end of one op.

    Attributes:
        value: The ``result`` object; None unless `ok`.
        error: What the adapter reported, or None.
        hang: No answer at D x 1.2 + 250 ms.
        crashed: The adapter's process ended before it answered.
        begun_ns: When the request left, on the runner's monotonic clock.
        ended_ns: When the answer came, or when the runner gave up.
        n: Position of the answer among the adapter's lines, or None.
        t: The adapter's clock at the answer, in milliseconds since its start, or None.
        late: The answer that came after the runner had given up; set when it comes.
    """

    id: int
    op: str
    ok: bool
    begun_ns: int
    ended_ns: int
    value: Any = None
    error: Error | None = None
    hang: bool = False
    crashed: bool = False
    n: int | None = None
    t: float | None = None
    late: Response | None = None

    @property
    def word(self) -> str:
        """``ok``, ``hang``, ``crashed`` or the kind of the error."""
        if self.hang or self.crashed:
            return "hang" if self.hang else "crashed"
        return "ok" if self.error is None else self.error.kind.value

    @property
    def kind(self) -> Kind | None:
        """The kind of the error, or None."""
        return None if self.error is None else self.error.kind

    @property
    def code(self) -> int | str | None:
        """The wire's own code, or None."""
        return None if self.error is None else self.error.code

    @property
    def elapsed_ms(self) -> float:
        """From request to answer, or until the runner gave up."""
        return (self.ended_ns - self.begun_ns) / 1e6

    @property
    def history(self) -> Literal["ok", "fail", "info"]:
        """Jepsen's word for it: an error that is not definite is ``info``, never ``fail``.

        Of a publish that was only sent nothing is known yet.
        """
        if self.ok:
            only_sent = isinstance(self.value, dict) and self.value.get("outcome") == "sent"
            return "info" if only_sent else "ok"
        return "fail" if self.error is not None and self.error.definite else "info"

    @property
    def outcome(self) -> Outcome:
        """The same for a publish: acked, nacked or unknown."""
        words: dict[str, Outcome] = {"ok": "acked", "fail": "nacked", "info": "unknown"}
        return words[self.history]

    def __str__(self) -> str:
        if self.error is None:
            return f"{self.op} {self.word} after {self.elapsed_ms:.0f} ms"
        sure = "definite" if self.error.definite else "not definite"
        code = "" if self.error.code is None else f" code {self.error.code}"
        return f"{self.op} {self.word}{code} ({sure}) after {self.elapsed_ms:.0f} ms: {self.error.text}"
