"""Queues and messages over HTTP by Python's standard library, whose calls wait: each has a thread."""

from __future__ import annotations

import asyncio
import select
import socket
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from http.client import HTTPConnection, HTTPException, IncompleteRead, RemoteDisconnected
from typing import Any

from conformance.clients.adapter.kit import host_port
from conformance.clients.reference.kit import ClientError, Network, Runtime
from conformance.clients.reference.narconi.api import HttpApi
from conformance.clients.reference.narconi.http import Response
from conformance.clients.reference.narconi.settings import Addresses, Settings

REQUESTS_MAX = 64  #: at a time; others wait


def problem(error: Exception, *, sent: bool) -> ClientError:
    """What the library has raised. `sent`: the server may have done what it was asked for."""
    text = f"{type(error).__name__}: {error}"
    if isinstance(error, HTTPException) and not isinstance(error, IncompleteRead | RemoteDisconnected):
        return ClientError("protocol", text, definite=not sent)
    if isinstance(error, ValueError) and not isinstance(error, OSError):
        return ClientError("invalid", text)
    return ClientError("connection", text, definite=not sent)


class Connection:
    """One request at a time; kept for the next one where the server allows it."""

    def __init__(self, network: Network, endpoint: str) -> None:
        host, port = host_port(endpoint)
        self._network = network
        self._http = HTTPConnection(host, port)
        self._socket: socket.socket | None = None
        self._is_dropped = False
        self.has_sent = False

    @property
    def is_reusable(self) -> bool:
        """Whether the server has left it open, and silent."""
        return self._http.sock is not None and not select.select([self._http.sock], [], [], 0)[0]

    def _connect(self) -> None:
        http, tls = self._http, self._network.tls
        self._socket = http.sock = socket.create_connection((http.host, http.port))
        if tls is not None and not self._is_dropped:
            name = self._network.server_name or http.host
            self._socket = http.sock = tls.wrap_socket(self._socket, server_hostname=name)

    def exchange(self, method: str, path: str, body: bytes, headers: Mapping[str, str]) -> Response:
        """Send a request and read its answer; called in a thread."""
        self.has_sent = False
        try:
            if self._http.sock is None:
                self._connect()
            self._check()
            self.has_sent = True
            self._http.request(method, path, body or None, dict(headers))
            answer = self._http.getresponse()
            response = Response(answer.status, answer.getheaders(), answer.read())
            self._check()  # http.client takes what was cut off in its head for an answer
            return response
        except BaseException:
            self._http.close()
            raise

    def _check(self) -> None:
        if self._is_dropped:
            raise ConnectionAbortedError("no request waits for the answer")

    def drop(self) -> None:
        """Whatever it does, in another thread, ends now."""
        self._is_dropped = True
        if self._socket is not None:
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        """While no thread is in it."""
        self._http.close()


class Api(HttpApi):
    """HTTP by the standard library."""

    def __init__(self, runtime: Runtime, settings: Settings, addresses: Addresses) -> None:
        super().__init__(runtime, settings, addresses)
        self._threads = ThreadPoolExecutor(REQUESTS_MAX)
        self._kept: list[Connection] = []
        self._used: set[Connection] = set()

    async def request(
        self, method: str, path: str, headers: Mapping[str, str] | None = None, body: bytes = b""
    ) -> Response:
        connection = self._kept_one() or Connection(self._runtime.network, self._endpoint)
        self._used.add(connection)
        work: Any = (self._threads, connection.exchange, method, path, body, headers or {})
        try:
            response = await asyncio.get_running_loop().run_in_executor(*work)
        except (HTTPException, OSError, ValueError) as error:
            raise problem(error, sent=connection.has_sent) from error
        except BaseException:
            connection.drop()
            raise
        finally:
            self._used.discard(connection)
        self._kept.append(connection)
        return response

    def _kept_one(self) -> Connection | None:
        while self._kept:
            connection = self._kept.pop()
            if connection.is_reusable:
                return connection
            connection.close()
        return None

    def abort(self) -> None:
        for connection in self._kept:
            connection.close()
        for connection in self._used:
            connection.drop()
        self._kept.clear()
        self._threads.shutdown(wait=False)
