"""A client of the control API, for the command line."""

from __future__ import annotations

from http.client import HTTPException
from typing import Any
from urllib.error import HTTPError, URLError
from urllib.parse import quote, urlencode, urlsplit
from urllib.request import ProxyHandler, Request, build_opener

import msgspec

from fakebrokers.errors import FakeBrokerError, UsageError

#: Seconds that an answer may take.
_TIMEOUT_S = 60.0


class Unreachable(FakeBrokerError):
    """Nothing that speaks for a control API answers at its URL."""


class ControlClient:
    """One broker behind a control API.

    Args:
        url: As in ``control=`` of the READY line.
        broker: Its name; empty: the only one.

    Raises:
        UsageError: The URL is none, or the API refuses a request: its path and its problem.
        Unreachable: Nothing answers there.
    """

    def __init__(self, url: str, broker: str = "") -> None:
        parts = urlsplit(url)
        if parts.scheme != "http" or not parts.hostname:
            raise UsageError(f"expected the URL of a control API, such as http://127.0.0.1:9090, got {url!r}")
        self._url = url.rstrip("/")
        self._broker = broker
        # the API is on this machine: a proxy that the environment names could not reach it
        self._opener = build_opener(ProxyHandler({}))

    @property
    def broker(self) -> str:
        """The name of the broker that is spoken of."""
        if not self._broker:
            names = [row["name"] for row in self.request("GET", "/brokers")]
            if len(names) != 1:
                there = ", ".join(names) or "none"
                raise UsageError(f"expected one broker, or --broker with the name of one; there are: {there}")
            self._broker = names[0]
        return self._broker

    def get(self, path: str, **query: Any) -> Any:
        """What is at a path below the broker's."""
        return self.request("GET", self._below(path) + (f"?{urlencode(query)}" if query else ""))

    def delete(self, path: str) -> Any:
        """Delete what is at a path below the broker's."""
        return self.request("DELETE", self._below(path))

    def tell(self, operation: str, /, **arguments: Any) -> Any:
        """Carry out an operation; what it returns."""
        return self.request("POST", self._below(operation), arguments)

    def _below(self, path: str) -> str:
        return f"/brokers/{quote(self.broker, safe='')}/{quote(path)}"

    def request(self, method: str, path: str, body: Any = None) -> Any:
        """The JSON value in the answer; None: there is none."""
        data = None if body is None else msgspec.json.encode(body)
        try:
            with self._opener.open(
                Request(self._url + path, data, method=method), timeout=_TIMEOUT_S
            ) as answer:
                text = answer.read()
        except HTTPError as error:
            with error:
                raise UsageError(_refusal(error.read(), str(error))) from None
        except (URLError, HTTPException, OSError) as error:
            reason = error.reason if isinstance(error, URLError) else error
            raise Unreachable(f"no control API answers at {self._url}: {reason}") from None
        try:
            return msgspec.json.decode(text) if text else None
        except msgspec.DecodeError:
            raise Unreachable(f"what answers at {self._url} is no control API") from None


def _refusal(text: bytes, otherwise: str) -> str:
    try:
        told = msgspec.json.decode(text, type=dict[str, Any])
        return f"{told['path']}: {told['problem']}"
    except (msgspec.MsgspecError, KeyError):
        return otherwise
