"""The sweep finds nothing at a correct client that does something in its own manner."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from conformance.clients.reference.kit import adapter_of
from conformance.clients.reference.narconi.api import PREFIX, HttpApi, Metadata
from conformance.clients.reference.narconi.http import Response
from conformance.clients.reference.pzq.producer import Producer
from conformance.clients.reference.registry import definition, without_sockets
from conformance.rules import judge
from conformance.run.inprocess import run
from conformance.run.specs import Injection, Spec
from tests.scenarios.pzq_ways import StatusIsEnough


class CountsFromOne(Producer):
    """Numbers the messages of each session from 1: the daemon answers to the socket that has sent them."""

    def new_id(self) -> bytes:
        super().new_id()
        return b"%d" % self._number


class SendsEveryName(Metadata):
    """Sends names that the server does not keep as they are, as HTTP libraries do; none of them ends it."""

    def check(self, headers: Mapping[str, Any]) -> None:
        if "Content-Type" in headers:
            super().check({"Content-Type": headers["Content-Type"]})


class AddsThePrefix(HttpApi):
    """Gives the prefix to names that the server would not keep."""

    async def post(self, queue: str, body: bytes, headers: Mapping[str, Any]) -> None:
        kept = ("content-type", "x-msg-")
        named = {name if name.lower().startswith(kept) else PREFIX + name: headers[name] for name in headers}
        await super().post(queue, body, named)


class EverySuccess(HttpApi):
    """Takes each 2xx for a yes (RFC 9110, 15.3), as HTTP libraries do."""

    def expect(self, response: Response, *wanted: int) -> None:
        if not 200 <= response.status < 300:
            super().expect(response, *wanted)


@pytest.mark.parametrize(
    "injection",
    [None, Injection("c1", "out", 1, "torn", [3]), Injection("c1", "out", 1, "refusal", ["code", b"0"])],
    ids=["no fault", "a confirm is torn", "a message is refused"],
)
def test_ids_belong_to_a_session(injection: Injection | None) -> None:
    client = without_sockets(adapter_of(definition("pzq"), [CountsFromOne]))
    case = run(client, Spec("pzq", "two-sessions", () if injection is None else (injection,)))
    ids = [one.place[-1] for one in case.facts.written]
    assert len(set(ids)) < len(ids)
    assert judge(case) == []


@pytest.mark.parametrize(
    ("parts", "sent"),
    [((SendsEveryName,), "x-other"), ((SendsEveryName, AddsThePrefix), "x-msg-x-x-other")],
    ids=["as it is", "with the prefix"],
)
def test_a_name_that_the_server_drops_may_be_sent(parts: tuple[type, ...], sent: str) -> None:
    client = without_sockets(adapter_of(definition("narconi"), parts))
    case = run(client, Spec("narconi", "posts"))
    frames: list[Any] = [seen.frame for conn in case.conns.values() for seen in conn.of("in")]
    assert sent in {name for frame in frames for name, _ in frame.headers}
    assert judge(case) == []


@pytest.mark.parametrize("parts", [(), (EverySuccess,)], ids=["only that of the server", "every 2xx"])
@pytest.mark.parametrize("act", [("type", ["HttpDeliver", "instead"]), ("contradict", ["instead", 202])])
def test_another_success_may_be_one(parts: tuple[type, ...], act: tuple[str, Any]) -> None:
    client = without_sockets(adapter_of(definition("narconi"), parts))
    case = run(client, Spec("narconi", "posts", (Injection("c1", "out", 1, *act),)))
    posted = next(case.done("narc.post")).result
    assert posted is not None
    assert posted.ok is bool(parts)
    assert judge(case) == []


@pytest.mark.parametrize("parts", [(), (StatusIsEnough,)], ids=["cannot be read", "is a confirm"])
def test_a_confirm_without_a_delimiter_may_be_one(parts: tuple[type, ...]) -> None:
    client = without_sockets(adapter_of(definition("pzq"), parts))
    case = run(client, Spec("pzq", "unwaited", (Injection("c1", "out", 2, "part", ["digits", 2]),)))
    assert [one.is_open for one in case.facts.settled].count(False) == 1
    assert judge(case) == []


def test_a_client_need_not_have_every_kind_of_callback() -> None:
    class OnlyMessages(without_sockets(adapter_of(definition("narconi")))):  # type: ignore[misc]
        callbacks = ("message",)

    case = run(OnlyMessages, Spec("narconi", "raising-session-1"))
    assert [done.result.value for done in case.done("raise_next") if done.result] == [{"armed": False}] * 2
    assert judge(case) == []
