"""The proxies of a Toxiproxy API: what its requests do. On the loop thread; raises `ApiError`."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec

from fakebrokers.errors import UsageError
from fakebrokers.journal.secrets import without_secrets
from fakebrokers.proxy.server import Proxy
from fakebrokers.proxy.toxics import DIRECTIONS, TOXICS, SlowCloseToxic, TimeoutToxic, Toxic


class ApiError(Exception):
    """An error answer with Toxiproxy's status and text.

    Args:
        status: Of the HTTP answer.
    """

    def __init__(self, status: int, text: str, **more: Any) -> None:
        super().__init__(text)
        self.status = status
        self.more = more

    def as_json(self) -> dict[str, Any]:
        """The JSON body of the answer."""
        return {"error": str(self), "status": self.status, **self.more}


#: Makes a proxy for an upstream; gets ``host``, ``port`` and ``seed`` as keywords.
MakeProxy = Callable[..., Proxy]


#: A host name; its last part is no number, or it would be an address.
_NAME = re.compile(r"(?i:(?:[a-z0-9_-]{1,63}\.)*(?![0-9]+\.?$)[a-z0-9_-]{1,63}\.?)", re.ASCII)


class ManagedProxy:
    """A proxy by name, with its toxics; can be switched off and on, and keeps its faults and its journal.

    Args:
        make: Makes the proxy when it is first switched on.
    """

    def __init__(self, name: str, listen: str, upstream: str, make: MakeProxy) -> None:
        self.name = name
        self.listen = listen
        self.upstream = upstream
        self.toxics: dict[str, Toxic] = {}
        self.proxy: Proxy | None = None
        self._make = make

    @property
    def enabled(self) -> bool:
        """Whether it listens."""
        return self.proxy is not None and self.proxy.runs

    def start(self) -> None:
        """Listen; all toxics act from the first connection on."""
        if self.enabled:
            return
        host, port = _listen_address(self.listen)
        try:
            if self.proxy is None:
                self.proxy = self._made(host, port)
            else:
                self.proxy.move(self.upstream, host, port)
            self.proxy.start()
        except (UsageError, UserWarning) as error:  # the latter where warnings are errors
            raise ApiError(400, f"bad request body: {error}") from None
        except OSError as error:
            text = (error.strerror or str(error)).lower()
            raise ApiError(500, f"listen tcp {self.listen}: bind: {text}") from None
        self.listen = self.proxy.address

    def _made(self, host: str, port: int) -> Proxy:
        proxy = self._make(self.upstream, host=host, port=port)
        for toxic in self.toxics.values():
            _add_faults(proxy, toxic)
        return proxy

    def stop(self) -> None:
        """Refuse new connections and cut the open ones."""
        if self.proxy is not None:
            self.proxy.kill()
            self.proxy.stop()

    def update(self, listen: str, upstream: str, enabled: bool) -> None:
        """Set address, server, on or off; cuts open connections if an address changes."""
        if (listen, upstream) != (self.listen, self.upstream):
            _listen_address(listen)  # refused while nothing is cut yet
            self.stop()
            self.listen, self.upstream = listen, upstream
        if enabled:
            self.start()
        else:
            self.stop()

    def add(self, toxic: Toxic) -> None:
        """Add a toxic; it acts on open connections too."""
        self.toxics[toxic.name] = toxic
        if self.proxy is not None:
            _add_faults(self.proxy, toxic)

    def remove(self, name: str) -> None:
        """Remove a toxic; what it held back is sent now."""
        toxic = self.toxics.pop(name)
        if self.proxy is not None:
            _remove_faults(self.proxy, toxic)
            if isinstance(toxic.attributes, TimeoutToxic):
                self.proxy.kill()  # the data that it lost would leave a hole

    def change(self, toxic: Toxic, attributes: Any, toxicity: float) -> None:
        """Other attributes; whether a connection is affected was drawn once and stays."""
        if self.proxy is not None:
            _remove_faults(self.proxy, toxic)
        toxic.attributes = attributes
        toxic.toxicity = toxicity
        if self.proxy is not None:
            _add_faults(self.proxy, toxic)

    def as_json(self) -> dict[str, Any]:
        """The proxy as Toxiproxy prints it: upstream toxics first."""
        toxics = sorted(self.toxics.values(), key=lambda toxic: toxic.direction)
        return {
            "name": self.name,
            "listen": self.listen,
            "upstream": without_secrets(self.upstream),
            "enabled": self.enabled,
            "Logger": {},
            "toxics": [toxic.as_json() for toxic in toxics],
        }


def _add_faults(proxy: Proxy, toxic: Toxic) -> None:
    proxy.faults.add(*toxic.faults())
    if isinstance(toxic.attributes, SlowCloseToxic):
        proxy.linger[toxic.direction] = toxic.attributes.delay / 1000


def _remove_faults(proxy: Proxy, toxic: Toxic) -> None:
    for name in toxic.fault_names():
        proxy.faults.remove(name)
    if isinstance(toxic.attributes, SlowCloseToxic):
        proxy.linger[toxic.direction] = 0.0


def _listen_address(listen: str) -> tuple[str, int]:
    """Host and port; loopback where none is given (Toxiproxy itself takes all addresses)."""
    host, _, port = listen.rpartition(":")
    where = f"listen tcp: address {listen:.100}:"
    if not (port.isascii() and port.isdecimal()):
        raise ApiError(400, f"{where} missing port in address")
    if len(port) > 5 or int(port) >= 1 << 16:
        raise ApiError(400, f"{where} invalid port")
    host = host.strip("[]")
    if host in ("", "localhost"):
        return "127.0.0.1", int(port)
    if not _is_host(host):
        raise ApiError(400, f"{where} expected an IP address or a host name, got {host!r:.100}")
    return host, int(port)


def _is_host(text: str) -> bool:
    """Whether it is written like an address or a name: a resolver waits, or takes ``1`` for ``0.0.0.1``."""
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return len(text) < 254 and _NAME.fullmatch(text) is not None
    return text.isascii() and text.isprintable()  # the name of an interface may be part of it


class Proxies:
    """All proxies of one API.

    Args:
        seed: Of the random decisions of all toxics: same seed, same connections hit.
        make: Makes each proxy.
    """

    def __init__(self, seed: int = 0, make: MakeProxy = Proxy) -> None:
        self._make = partial(make, seed=seed)
        self.by_name: dict[str, ManagedProxy] = {}

    def find(self, name: str) -> ManagedProxy:
        """The proxy of that name; 404 if there is none."""
        if name not in self.by_name:
            raise ApiError(404, "proxy not found")
        return self.by_name[name]

    def create(self, body: Mapping[str, Any]) -> ManagedProxy:
        """A new proxy from a request body. Its toxics act from the first connection on."""
        wanted = _proxy_fields(body)
        _demand(wanted, "")
        toxics = body.get("toxics") or []
        if not isinstance(toxics, list):
            raise ApiError(400, f"bad request body: expected a list of toxics, got {toxics!r:.100}")
        if wanted["name"] in self.by_name:
            raise ApiError(409, "proxy already exists")
        listen = wanted.get("listen") or "127.0.0.1:0"
        managed = ManagedProxy(wanted["name"], listen, wanted["upstream"], self._make)
        for row in toxics:
            managed.add(self._read_toxic(managed, row))
        if wanted.get("enabled", True):
            managed.start()
        self.by_name[managed.name] = managed
        return managed

    def add(self, name: str, listen: str, upstream: str, make: MakeProxy) -> ManagedProxy:
        """A proxy of its own making, started."""
        managed = ManagedProxy(name, listen, upstream, make)
        managed.start()
        self.by_name[name] = managed
        return managed

    def update(self, name: str, body: Mapping[str, Any]) -> ManagedProxy:
        """Change a proxy; what the body does not name stays."""
        managed = self.find(name)
        wanted = _proxy_fields(body)
        managed.update(
            wanted.get("listen") or managed.listen,
            wanted.get("upstream") or managed.upstream,
            wanted.get("enabled", managed.enabled),
        )
        return managed

    def populate(self, rows: Any) -> list[ManagedProxy]:
        """Create or replace many; one with the same addresses is left as it is."""
        if not isinstance(rows, Sequence) or isinstance(rows, str):
            raise ApiError(400, f"bad request body: expected a list of proxies, got {rows!r}", proxies=None)
        try:
            for number, row in enumerate(rows, 1):
                _demand(_proxy_fields(row), f" at proxy {number}")
        except ApiError as error:
            raise ApiError(error.status, str(error), proxies=None) from None
        done: list[ManagedProxy] = []
        for row in rows:
            try:
                done.append(self._populate_one(row))
            except ApiError as error:
                proxies = [managed.as_json() for managed in done]
                raise ApiError(error.status, str(error), proxies=proxies) from None
        return done

    def _populate_one(self, row: Mapping[str, Any]) -> ManagedProxy:
        present = self.by_name.get(row["name"])
        if present is not None:
            if (row.get("listen") or present.listen, row["upstream"]) == (present.listen, present.upstream):
                return present
            self.delete(present.name)
        return self.create(row)

    def delete(self, name: str) -> None:
        """Stop and forget a proxy."""
        self.find(name).stop()
        del self.by_name[name]

    def reset(self) -> None:
        """Remove all toxics, and start the proxies that are stopped."""
        for managed in self.by_name.values():
            for name in tuple(managed.toxics):
                managed.remove(name)
            managed.start()

    def close(self) -> None:
        """Stop and forget all proxies."""
        for name in tuple(self.by_name):
            self.delete(name)

    # toxics

    def find_toxic(self, proxy: str, name: str) -> tuple[ManagedProxy, Toxic]:
        """The proxy and the toxic of these names; 404 if there is none."""
        managed = self.find(proxy)
        if name not in managed.toxics:
            raise ApiError(404, "toxic not found")
        return managed, managed.toxics[name]

    def add_toxic(self, proxy: str, body: Any) -> Toxic:
        """A new toxic from a request body; 409 if the name is taken."""
        managed = self.find(proxy)
        toxic = self._read_toxic(managed, body)
        managed.add(toxic)
        return toxic

    def _read_toxic(self, managed: ManagedProxy, body: Any) -> Toxic:
        wanted = _read(_ToxicFields, body)
        stream = wanted.stream or "downstream"
        if stream.lower() not in DIRECTIONS:
            raise ApiError(400, "stream was invalid, can be either upstream or downstream")
        if wanted.type not in TOXICS:
            raise ApiError(400, "invalid toxic type")
        name = wanted.name or f"{wanted.type}_{stream}"
        if name in managed.toxics:
            raise ApiError(409, "toxic already exists")
        attributes = _read(TOXICS[wanted.type], wanted.attributes)
        return Toxic(attributes, name, wanted.type, stream, wanted.toxicity)

    def change_toxic(self, proxy: str, name: str, body: Any) -> Toxic:
        """Other attributes or another toxicity; what the body does not name stays."""
        managed, toxic = self.find_toxic(proxy, name)
        wanted = _read(_ToxicChange, body)
        attributes = {**msgspec.to_builtins(toxic.attributes), **wanted.attributes}
        toxicity = toxic.toxicity if wanted.toxicity is None else wanted.toxicity
        managed.change(toxic, _read(type(toxic.attributes), attributes), toxicity)
        return toxic


class _ProxyFields(msgspec.Struct, omit_defaults=True):
    name: str | None = None
    listen: str | None = None
    upstream: str | None = None
    enabled: bool | None = None


class _ToxicFields(msgspec.Struct):
    type: str = ""
    name: str | None = None
    stream: str | None = None
    toxicity: float = 1.0
    attributes: dict[str, Any] = {}


class _ToxicChange(msgspec.Struct):
    toxicity: float | None = None
    attributes: dict[str, Any] = {}


def _read(kind: Any, body: Any) -> Any:
    try:
        return msgspec.convert(body, kind)
    except msgspec.ValidationError as error:
        raise ApiError(400, f"bad request body: {error}") from None


def _proxy_fields(body: Any) -> dict[str, Any]:
    """The known fields that the body has."""
    fields: dict[str, Any] = msgspec.to_builtins(_read(_ProxyFields, body))
    return fields


def _demand(wanted: Mapping[str, Any], where: str) -> None:
    for name in ("name", "upstream"):
        if not wanted.get(name):
            raise ApiError(400, f"missing required field: {name}{where}")
