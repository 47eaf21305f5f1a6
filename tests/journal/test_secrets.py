"""Credentials that clients send in headers, queries and properties stay out of the journal."""

from __future__ import annotations

import http.client
import socket
from pathlib import Path
from typing import Any

import msgspec
import pytest

from fakebrokers import Narconi, RabbitMQStream
from fakebrokers.journal import RunJournal
from fakebrokers.journal.secrets import without_secrets
from fakebrokers.proxy import Proxy
from fakebrokers.rabbitmq_stream import frames
from fakebrokers.rabbitmq_stream.codec import StreamCodec
from tests.eventually import PATIENCE_S
from tests.marked import PASSWORD
from tests.toy import Toy

SECRET = PASSWORD


def told(journal: Any) -> str:
    """All that a reader of a journal sees."""
    return " ".join(
        f"{msgspec.structs.asdict(record)} {record!r} {record.frame!r} {record}" for record in journal
    )


@pytest.mark.parametrize(
    ("headers", "query"),
    [
        ({"Authorization": f"Bearer {SECRET}"}, ""),
        ({"X-Auth-Token": SECRET}, ""),
        ({"x-api-key": SECRET}, ""),
        ({"Cookie": f"sid={SECRET}"}, ""),
        ({"Sec-WebSocket-Protocol": f"chat, bearer.{SECRET}"}, ""),
        ({"X-Forwarded": f"Basic {SECRET}"}, ""),
        ({}, f"?a=1&access_token={SECRET}&b=2"),
        ({}, f"?password={SECRET}"),
    ],
    ids=str,
)
def test_headers_and_query_of_http(headers: dict[str, str], query: str) -> None:
    with Narconi() as broker:
        broker.create_queue("p", "q")
        client = http.client.HTTPConnection("127.0.0.1", broker.port, timeout=PATIENCE_S)
        client.request("POST", f"/v2/p/queues/q/messages{query}", b"x", {"X-Plain": "seen", **headers})
        assert client.getresponse().status == 201
        client.close()
        text = told(broker.journal)
    assert SECRET not in text
    assert "seen" in text and "***" in text


def test_peer_properties_of_rabbitmq() -> None:
    properties = {"product": "shop", "password": SECRET, "connection_name": "billing"}
    with RabbitMQStream() as broker, socket.create_connection((broker.host, broker.port)) as sock:
        sock.sendall(StreamCodec().encode(frames.PeerProperties(1, properties)))
        (record,) = broker.wait_for(kind="PeerProperties")
        broker.wait_for(kind="PeerPropertiesResponse")
        (session,) = [connection.session for connection in broker.engine.connections.values()]
        assert session.client_properties == properties  # type: ignore[attr-defined] # what was said
    assert isinstance(record.frame, frames.PeerProperties)
    assert record.frame.properties == {**properties, "password": "***"}
    assert SECRET not in told(broker.journal)


def test_a_journal_on_disk_with_whole_frames(tmp_path: Path) -> None:
    with Narconi() as broker:
        broker.create_queue("p", "q")
        written = RunJournal(tmp_path, "run", protocol="narconi", frames=True)
        broker.call(lambda: setattr(broker.journal, "sink", written))
        client = http.client.HTTPConnection("127.0.0.1", broker.port, timeout=PATIENCE_S)
        client.request("POST", f"/v2/p/queues/q/messages?token={SECRET}", b"x", {"X-Api-Key": SECRET})
        client.getresponse().read()
        client.close()
        broker.call(lambda: setattr(broker.journal, "sink", None))
        written.close()
    content = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    assert b"messages?token=***" in content
    assert SECRET.encode() not in content


def test_a_proxy_keeps_no_bytes() -> None:
    """It does not know what they mean."""
    with Toy() as toy, Proxy(f"127.0.0.1:{toy.port}") as proxy:
        with socket.create_connection(("127.0.0.1", proxy.port), timeout=PATIENCE_S) as sock:
            sock.sendall(f"hello {SECRET}\n".encode())
            assert sock.recv(100)
        assert len(proxy.journal.select(kind="ClientBytes")) == 1
        assert SECRET not in told(proxy.journal)


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        ("/v2/p?token=abc", "/v2/p?token=***"),
        ("/v2/p?a=token&b=2#token=1", "/v2/p?a=token&b=2#token=***"),
        ("http://me:pw@host/x", "http://me:***@host/x"),
        ({"api_key": "k", "n": 1}, {"api_key": "***", "n": 1}),
        ({"password": ""}, {"password": ""}),
        ({"private-key": b"k"}, {"private-key": b"***"}),
        ((("a", "1"), ("X-Token", "t")), (("a", "1"), ("X-Token", "***"))),
        ({"note": "Bearer abc, Basic def"}, {"note": "Bearer ***, Basic ***"}),
    ],
)
def test_what_is_shown_instead(value: Any, shown: Any) -> None:
    assert without_secrets(value) == shown


@pytest.mark.parametrize(
    "value",
    [
        {"product": "x", "author": "y", "connection_name": "z", "compass": "n", "keys": "k", "monkey": "m"},
        {"capabilities": "authentication_failure_close", "basic": "a basic one"},
        "/v2/p/queues/q/messages?limit=10",
        (("Content-Type", "text/plain"), ("X-Msg-X-N", "1")),
        {},
        (),
        "",
    ],
)
def test_what_is_no_secret_is_left_as_it_is(value: Any) -> None:
    assert without_secrets(value) is value
