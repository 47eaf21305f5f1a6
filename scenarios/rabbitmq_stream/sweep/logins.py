"""Base scripts about logins."""

from __future__ import annotations

from conformance.run.bases import ScriptContext, base, text
from fakebrokers.rabbitmq_stream.operations_access import add_user
from scenarios.rabbitmq_stream.sweep._shared import ASK, PROBE, PUBLISH

LETTERS = "schlüssel-漢字"
#: No user's name, and no word that could be in a text by chance.
PASSWORD, WRONG = "c0rrect-H0rse/7", "inc0rrect-H0rse/8"


@base(role="publisher", handshake=True)
async def own_login(context: ScriptContext) -> None:
    """A user with a password of its own: a wrong one is refused, the right one is not, after a loss too."""
    context.broker.create_stream("S")
    add_user(context.broker, "app", PASSWORD)
    context.notes.reconnects = True
    endpoints = [context.endpoint]
    for options in ({"user": "app", "password": WRONG}, {"user": "nobody", "password": PASSWORD}):
        await context.op("connect", 5.0, endpoints=endpoints, options=options)
        await context.op("rmqs.query_sequence", **ASK)
    context.notes.reconnects = None
    await context.connect(user="app", password=PASSWORD)
    await context.op("publish", body=text("a"), **PUBLISH)
    context.kill()
    await context.op("publish", 8.0, body=text("b"), **PUBLISH)
    await context.finale("publish", **PROBE)


@base(role="publisher", handshake=True)
async def letters(context: ScriptContext) -> None:
    """A user whose name and password are longer in bytes than in letters, also after a loss."""
    context.broker.create_stream("S")
    add_user(context.broker, "müller", LETTERS)
    await context.connect(user="müller", password=LETTERS)
    await context.op("publish", body=text("a"), **PUBLISH)
    context.kill()
    await context.op("publish", 8.0, body=text("b"), **PUBLISH)
    await context.finale("publish", **PROBE)
