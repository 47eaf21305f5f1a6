"""What a reference client reports to its user, by callbacks."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable

from conformance.clients.reference.kit.errors import ClientError

#: What happened to a session (``connection_lost``), a text, the code and the target that it concerns, if any.
OnSession = Callable[[str, str, int | str | None, str | None], None]
OnError = Callable[[str, ClientError], None]  #: where it happened, and what
OnNote = Callable[[str], None]  #: what came and was dropped, one sentence

log = logging.getLogger(__name__)


class Callbacks:
    """Calls the user's code; whatever that raises goes no further."""

    def __init__(
        self,
        on_session: OnSession = lambda *_: None,
        on_error: OnError = lambda *_: None,
        on_note: OnNote = lambda _: None,
    ) -> None:
        self.on_session = on_session
        self.on_error = on_error
        self.on_note = on_note

    def report(
        self, what: str, text: str = "", code: int | str | None = None, target: str | None = None
    ) -> None:
        """What happened to the session."""
        self.contain("session", lambda: self.on_session(what, text, code, target))

    def trouble(self, where: str, error: ClientError) -> None:
        """An error that no op reports; `where` is that of the event ``error`` of the adapter protocol."""
        try:
            self.on_error(where, error)
        except Exception as failure:  # the last resort: no one is left to report to
            log.error("the error callback failed: %s", failure)

    def note(self, text: str) -> None:
        """What was dropped, so that nothing is lost in silence."""
        try:
            self.on_note(text)
        except Exception as failure:
            log.error("the note callback failed: %s", failure)

    def contain(self, callback: str, act: Callable[[], None]) -> None:
        """Call a callback of that kind."""
        try:
            act()
        except Exception as error:
            self.failed(callback, error)

    async def contain_async(self, callback: str, act: Callable[[], Awaitable[None]]) -> None:
        """The same for a callback that takes its time."""
        try:
            await act()
        except Exception as error:
            self.failed(callback, error)

    def failed(self, callback: str, error: Exception) -> None:
        """A callback of the user has raised."""
        self.trouble("callback", ClientError("internal", f"the {callback} callback failed: {error}"))
