"""Which Narconi the fake resembles: the recorded server, a version of it, or the document's letter."""

from __future__ import annotations

import msgspec


class Profile(msgspec.Struct, frozen=True, kw_only=True):
    """One switch for each behaviour in which the recorded servers and the document differ.

    The defaults are version 0.1.0 on node 0.10, the recorded server (docs/protocols/narconi.md, "Responses").

    Attributes:
        name: For `--profile`.
        confirm_on_request: WebSocket confirms only for a URL with ``ack`` (0.2.0-pre).
        chunked: Answers without a length are chunked; else they carry ``Content-Length``.
        chunked_delivery: The same for the 200 of a consume (node 20 knows its length).
        keep_alive: Value of a ``Keep-Alive`` header after ``Connection``; "" for none.
        idle_s: Seconds after which an idle HTTP connection is closed; None for never.
        error_word: The body of an HTTP error has the word ``code`` in front of ``message``.
        discovery: OPTIONS on a queue answers with its WebSocket endpoint; else 405.
        upgrades_on_queue: Upgrades work on the path of the queue too; else 405.
        refused_upgrade_body: A refused upgrade is a standard HTTP error with a body.
        cuts_bodies: A chunked body is cut where a chunk ends exactly at the size limit; else it is refused.
        expiry: Messages expire after their ``ttl``, which is checked for WebSocket publishers too.
        any_limit: Any ``limit`` from 1 on is taken, rounded down; else RabbitMQ refuses fractions and what
            is above 65535, and nothing ever arrives.
        empty_metadata: An empty WebSocket message of a publisher stands for empty metadata; else a binary
            one is an empty payload, and a text is no JSON.
        strict_metadata: Metadata that is no object, or has a ``message`` that is no text, is refused; else
            the server does with it what JavaScript makes of it.
        crashes: Some input ends the process (see `Config.faithful_crashes`); else it is refused.
        error_code_first: WebSocket errors have ``code`` in front of ``error``.
        closes_failed_publisher: An error ends a publishing connection.
        text_payloads: Payload that was published as text is delivered as text.
        opaque_ack_ids: Ack ids are never used twice and mean nothing; else they are the numbers of the
            deliveries of a connection, and 0 stands for all of them.
    """

    name: str = "real"
    confirm_on_request: bool = False
    chunked: bool = True
    chunked_delivery: bool = True
    keep_alive: str = ""
    idle_s: float | None = None
    error_word: bool = True
    discovery: bool = False
    upgrades_on_queue: bool = False
    refused_upgrade_body: bool = False
    cuts_bodies: bool = True
    expiry: bool = False
    any_limit: bool = False
    empty_metadata: bool = False
    strict_metadata: bool = False
    crashes: bool = True
    error_code_first: bool = False
    closes_failed_publisher: bool = True
    text_payloads: bool = False
    opaque_ack_ids: bool = False


REAL = Profile()

#: The document's letter where it says other than the server does.
SEED = Profile(
    name="seed",
    chunked=False,
    chunked_delivery=False,
    error_word=False,
    discovery=True,
    upgrades_on_queue=True,
    refused_upgrade_body=True,
    cuts_bodies=False,
    expiry=True,
    any_limit=True,
    empty_metadata=True,
    strict_metadata=True,
    crashes=False,
    error_code_first=True,
    closes_failed_publisher=False,
    text_payloads=True,
    opaque_ack_ids=True,
)

PROFILES = {
    profile.name: profile
    for profile in (
        REAL,
        Profile(name="0.1.0"),
        Profile(name="0.2.0-pre", confirm_on_request=True),
        Profile(name="node20", chunked_delivery=False, keep_alive="timeout=5", idle_s=5.0),
        SEED,
    )
}
