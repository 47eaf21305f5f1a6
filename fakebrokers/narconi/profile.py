"""Which Narconi the fake resembles: the recorded server, a version of it, or the document's letter."""

from __future__ import annotations

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Profile:
    """The points in which the recorded servers and the document differ.

    The defaults are version 0.1.0 on node 0.10, the recorded server (protocol notes).

    Attributes:
        name: For `--profile`.
        confirm_on_request: WebSocket confirms only for a URL with ``ack`` (0.2.0-pre).
        chunked: Answers without a length are chunked; else they carry ``Content-Length``.
        chunked_delivery: The same for the 200 of a consume (node 20 knows its length).
        keep_alive: Value of a ``Keep-Alive`` header behind ``Connection``; "" for none.
        idle_s: Seconds after which an idle HTTP connection is closed; None for never.
        document: Everything below, where the document (the "seed") says other than the server does:
            HTTP errors carry only ``message``; WebSocket errors have ``code`` first and end a
            publishing connection not; an empty message stands for empty metadata; a refused upgrade
            has a body; upgrades work on the queue path too; OPTIONS answers with the endpoint; payload
            published as text is delivered as text; ack ids are opaque and never used twice; messages
            expire; a too large chunked body is refused, never cut; no input ends the process.
    """

    name: str = "real"
    confirm_on_request: bool = False
    chunked: bool = True
    chunked_delivery: bool = True
    keep_alive: str = ""
    idle_s: float | None = None
    document: bool = False


_REAL = Profile()

PROFILES: dict[str, Profile] = {
    profile.name: profile
    for profile in (
        _REAL,
        replace(_REAL, name="0.1.0"),
        replace(_REAL, name="0.2.0-pre", confirm_on_request=True),
        replace(_REAL, name="node20", chunked_delivery=False, keep_alive="timeout=5", idle_s=5.0),
        replace(_REAL, name="seed", chunked=False, chunked_delivery=False, document=True),
    )
}
