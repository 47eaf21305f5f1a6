"""How an adapter says that an op did not work out."""

from __future__ import annotations

from typing import Any

#: Error kinds that state by themselves: the op did not and will not take effect.
DEFINITE_KINDS = frozenset({"auth", "invalid", "refused", "unsupported"})


class Failure(Exception):
    """An op did not work out.

    Args:
        kind: One of the error kinds of the protocol, such as ``refused``.
        text: What happened, for people.
        code: The number on the wire, where there is one.
        definite: Whether the op surely had no effect; by default what the kind implies, false in doubt.
        type: Name of a remote error, where the protocol has such names.
    """

    def __init__(
        self,
        kind: str,
        text: str = "",
        *,
        code: Any = None,
        definite: bool | None = None,
        type: str | None = None,
    ) -> None:
        super().__init__(text)
        self.kind = kind
        self.text = text
        self.code = code
        self.type = type
        self.definite = kind in DEFINITE_KINDS if definite is None else definite

    def report(self) -> dict[str, Any]:
        """The ``error`` object of a response."""
        error = {"kind": self.kind, "definite": self.definite, "code": self.code, "text": self.text}
        return error if self.type is None else {**error, "type": self.type}


class CallbackError(RuntimeError):
    """Raised inside the library's callback because the script asked for it (`raise_on`, `raise_next`)."""
