"""What the client reports, and to whom it shows what only the server may know."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote, unquote, urlsplit

import msgspec

from conformance.clients.adapter.transcript import SECRETS
from conformance.rules.registry import Violation, invariant
from conformance.run.bases import RunOp
from conformance.run.case import Case
from conformance.run.trace import Position

DISTINCT = 8  #: characters; a shorter one may be in a text by chance


@invariant("keeps-secrets")
def keeps_secrets(case: Case) -> Iterator[Violation]:
    """The password that the application gave is in no text that the client reports or logs.

    Why:
        Logs and error reports are read by many, and are kept: each of their readers can log in.

    Rests on:
        common sense: credentials in logs are a known weakness (CWE-532), and the application has no way to
            take them out of each error.
        RabbitMQ Stream: the password is in SaslAuthenticate alone (docs/protocols/rabbitmq-stream.md, 5).

    Example:
        the error of connect contains the password.
    """
    for secret in _secrets(case):
        for what, said, at in _texts(case):
            if any(form in said for form in secret):
                yield f"{what} contains the password", at


def _secrets(case: Case) -> Iterator[tuple[str, ...]]:
    """The credentials that can only be those of the application, each in the forms in which it may be shown.

    A word of letters alone, and what the application has given elsewhere too, as a user's name or an address,
    may be in a text for another reason; and so may what has come from the server.
    """
    logins = (login for done in case.done("connect") for login in _logins(done))
    given = {(user, value) for user, value in logins if len(value) >= DISTINCT and not value.isalpha()}
    if not given:
        return
    others = [text for done in case.ops for text in _without_secrets(done)]
    came = [row.data for row in case.rows if row.what == "out"]
    for user, value in sorted(given):
        raw = value.encode()
        is_ours = not any(value in other for other in others)
        if is_ours and not any(raw in part for data in came for part in _parts(data)):
            pairs = (f"{user}:{value}".encode(), f"\0{user}\0{value}".encode(), raw)
            yield value, quote(value, safe=""), raw.hex(), *(b64encode(pair).decode() for pair in pairs)


def _logins(done: RunOp) -> Iterator[tuple[str, str]]:
    """The users' names and the secrets in the options of a connect, or in its addresses."""
    options = done.args.get("options") or {}
    for name, value in options.items():
        if name in SECRETS and isinstance(value, str):
            yield str(options.get("user", "")), value
    for address in _strings([done.args.get("endpoints"), options]):
        if "://" in address and "@" in address:
            parts = urlsplit(address)
            yield parts.username or "", unquote(parts.password or "")


def _parts(data: Any) -> tuple[bytes, ...]:
    return tuple(map(bytes, data)) if isinstance(data, tuple | list) else (bytes(data),)


def _without_secrets(done: RunOp) -> Iterator[str]:
    """What else an op was given: of addresses with a login only what follows it."""
    options = done.args.get("options") or {}
    others = {**done.args, "options": {name: options[name] for name in options if name not in SECRETS}}
    for text in _strings(others):
        yield text.rpartition("@")[2] if "://" in text else text


def _texts(case: Case) -> Iterator[tuple[str, str, Position | None]]:
    """All that the client has said: what, the text, and when."""
    for done in case.ops:
        if done.result is not None:
            said = msgspec.to_builtins((done.result.error, done.result.value))
            what = "error" if done.result.error is not None else "result"
            yield f"the {what} of {done.op}", "\n".join(_strings(said)), done.ended
    for heard in case.events:
        yield f"an event {heard.what}", "\n".join(_strings(heard.event.fields)), heard.at
    yield "what the client wrote to stderr", f"{case.client_log}\n{case.complaints}\n{case.last_words}", None


def _strings(value: Any) -> Iterator[str]:
    """All strings in a value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for one in value.values():
            yield from _strings(one)
    elif isinstance(value, list | tuple):
        for one in value:
            yield from _strings(one)
