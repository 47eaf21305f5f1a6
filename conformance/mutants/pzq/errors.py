"""How the reference client says that something did not work out."""

from __future__ import annotations

#: kinds that state by themselves: it did not and will not take effect
DEFINITE = frozenset({"invalid", "refused"})


class ClientError(Exception):
    """Something did not work out.

    Attributes:
        kind: One of the error kinds of the adapter protocol, such as ``refused``.
        text: What happened, for people.
        code: The status on the wire, where there is one.
        definite: Whether it surely had no effect.
    """

    def __init__(self, kind: str, text: str, *, code: str | None = None) -> None:
        super().__init__(text)
        self.kind = kind
        self.text = text
        self.code = code
        self.definite = kind in DEFINITE
