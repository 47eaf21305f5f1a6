"""Messages that say more than is known, or something wrong."""

from __future__ import annotations

import pytest

from fakebrokers.faults import Fault, fault
from fakebrokers.narconi.forging import CorruptContent, WithHeaders
from tests.narconi.recording import Answer, Core, Reply

MESSAGES = "/v2/gold/queues/q/messages"


def core(*faults: Fault) -> Core:
    made = Core(faults=faults)
    made.broker.ensure("gold_q")
    return made


def answers(server: Core, body: bytes) -> list[Answer]:
    """What a client gets that publishes and consumes over HTTP; it must be able to read it."""
    client = server.connect()
    length = [["Content-Length", str(len(body))]]
    posted = client.request("POST", MESSAGES, length, body)
    return [posted, client.request("DELETE", MESSAGES, [])]


def replies(server: Core, body: bytes) -> list[Reply]:
    """What a client gets that consumes over a WebSocket."""
    answers_of = server.connect()
    answers_of.request("POST", MESSAGES, [["Content-Length", str(len(body))]], body)
    client = server.websocket(MESSAGES, "consume")
    return list(client.frames())


def test_more_headers_than_known() -> None:
    posted, taken = answers(core(fault(WithHeaders(headers={"X-Future": "1"}), direction="out")), b"hello")
    assert posted.headers[0] == taken.headers[0] == ["X-Future", "1"]
    assert (posted.status_line, taken.body) == ("HTTP/1.1 201 Created", b"hello")


@pytest.mark.parametrize(("seed", "size"), [*((seed, 200) for seed in range(20)), (0, 1), (0, 65_000)])
def test_one_byte_of_a_delivery(seed: int, size: int) -> None:
    server = core(fault(CorruptContent(), kind="WsDeliver", name=f"{seed}"))
    right, wrong = replies(core(), bytes(size)), replies(server, bytes(size))
    assert [(one.opcode, one.fin) for one in wrong] == [(one.opcode, one.fin) for one in right]
    pairs = zip(b"".join(r.payload for r in right), b"".join(r.payload for r in wrong), strict=True)
    assert sum(a != b for a, b in pairs) == 1


@pytest.mark.parametrize("seed", range(20))
def test_one_byte_of_an_answer(seed: int) -> None:
    server = core(fault(CorruptContent(xor=1), kind="HttpDeliver", name=f"{seed}"))
    right, wrong = answers(core(), b"hello")[1], answers(server, b"hello")[1]
    shown = [[one.status_line, *map(":".join, one.headers), one.body.decode()] for one in (right, wrong)]
    assert sum(a != b for a, b in zip("\n".join(shown[0]), "\n".join(shown[1]), strict=True)) == 1


def test_a_confirm_says_nothing_that_could_be_wrong() -> None:
    client = core(fault(CorruptContent(), kind="WsConfirm")).websocket(MESSAGES, "publish")
    client.send_frame(2, b"hello")
    assert list(client.frames()) == [Reply(1, 1, b"")]
