"""A client of the control API, and one of the proxied server."""

from __future__ import annotations

import json
import socket
import urllib.error
import urllib.request
from typing import Any

from tests.eventually import PATIENCE_S

Answer = tuple[int, Any, dict[str, str]]


class Api:
    """A small HTTP client."""

    def __init__(self, url: str) -> None:
        self.url = url

    def __call__(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        data = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=PATIENCE_S) as answer:
                text, status, got = answer.read(), answer.status, answer.headers
        except urllib.error.HTTPError as error:
            with error:
                text, status, got = error.read(), error.code, error.headers
        try:
            return status, json.loads(text) if text else None, dict(got)
        except ValueError:
            return status, text.decode(), dict(got)


def connect(proxy: dict[str, Any]) -> socket.socket:
    host, _, port = proxy["listen"].rpartition(":")
    sock = socket.create_connection((host, int(port)), PATIENCE_S)
    sock.settimeout(PATIENCE_S)
    return sock


def talk(sock: socket.socket, line: bytes = b"put a\n", size: int = 9) -> bytes:
    sock.sendall(line)
    got = b""
    while len(got) < size and (data := sock.recv(size - len(got))):
        got += data
    return got
