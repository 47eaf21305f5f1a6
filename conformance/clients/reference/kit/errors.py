"""How a reference client says that something did not work out."""

from __future__ import annotations

from typing import Any

from conformance.clients.adapter.kit import Failure


class ClientError(Failure):
    """Something did not work out; the adapter reports it as it is.

    Args:
        kind: One of the error kinds of the adapter protocol, such as ``refused``.
        text: What happened, for people; what was no UTF-8 on the wire is replaced.
        code: The code or status on the wire, where there is one.
        definite: Whether it surely had no effect; by default what the kind implies.
        type: Name of a remote error, where the protocol has such names.
    """

    def __init__(
        self,
        kind: str,
        text: str,
        *,
        code: Any = None,
        definite: bool | None = None,
        type: str | None = None,
    ) -> None:
        super().__init__(kind, shown(text), code=code, definite=definite, type=type)

    @property
    def outcome(self) -> str:
        """What it means for a message: ``nacked`` if it surely had no effect, else ``unknown``."""
        return "nacked" if self.definite else "unknown"


def shown(text: str) -> str:
    """Text that fits into a line: lone surrogates are replaced."""
    return text.encode(errors="replace").decode()
