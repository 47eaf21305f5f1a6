"""The serving side of a fake node: requests and events to functions, and what they return to packets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec
from msgspec import UNSET

from fakebrokers.moleculer import packets as p
from fakebrokers.moleculer.services import (
    NO_ANSWER,
    Action,
    Context,
    MoleculerError,
    Stream,
    error_of,
    matches,
    not_available,
    not_found,
)
from fakebrokers.moleculer.speaker import Speaker
from fakebrokers.moleculer.streams import Incoming, cut, is_chunk


class Answers:
    """What one node does with the requests and events that reach it."""

    def __init__(self, node: Speaker) -> None:
        self._node = node
        self._uploads: dict[str, Incoming] = {}

    def find(self, action: Any) -> Action | None:
        """The function of an action."""
        for service in self._node.services:
            for name, act in service.actions.items():
                if action == f"{service.full_name}.{name}":
                    return act
        return None

    # requests

    def request(self, packet: p.Request, now: float) -> None:
        """A request came, or a chunk of an upload."""
        if not is_chunk(packet):
            self._answer(packet, None, now)
            return
        key = str(packet.id)
        upload = self._uploads.setdefault(key, Incoming())
        if upload.add(packet):
            del self._uploads[key]
            self._answer(upload.opening, upload.stream, now)

    def forget(self, peer: str) -> None:
        """A node is gone, and with it what it was sending."""
        for key, upload in tuple(self._uploads.items()):
            if upload.opening is not None and upload.opening.sender == peer:
                del self._uploads[key]

    def _answer(self, packet: p.Request, stream: Stream | None, now: float) -> None:
        node = self._node
        context = _context(packet, packet.action, packet.params, stream)
        act = self.find(packet.action)
        known = act is not None and not node.stopping
        try:
            if act is None:
                raise not_found(packet.action, node.id)
            if node.stopping:
                raise not_available(packet.action, node.id)
            result = act(context)
        except MoleculerError as error:
            self._refuse(packet, context, error, known, now)
        except Exception as error:
            node.failures.append(error)
            self._refuse(packet, context, error, known, now)
        else:
            if isinstance(result, Stream):
                self._send_stream(packet, context, result, now)
            elif result is not NO_ANSWER:
                self._reply(packet, self._response(packet, context, success=True, data=result), now)

    def _response(self, packet: p.Request, context: Context, **fields: Any) -> p.Response:
        headers = context.response_headers if packet.ver not in ("3", "4") else UNSET
        return p.Response(id=packet.id, meta=context.meta, **{"headers": headers, **fields})

    def _refuse(self, packet: p.Request, context: Context, error: Exception, known: bool, now: float) -> None:
        """In protocol 5 an error from before the action has null in place of headers."""
        fields: dict[str, Any] = {"success": False, "data": None, "error": error_of(error, self._node.id)}
        if not known and packet.ver not in ("3", "4"):
            fields["headers"] = None
        self._reply(packet, self._response(packet, context, **fields), now)

    def _send_stream(self, packet: p.Request, context: Context, stream: Stream, now: float) -> None:
        if stream.object_mode:
            where = context.meta if packet.ver in ("3", "4") else context.response_headers
            where["$streamObjectMode"] = True
        number = 0
        self._reply(packet, self._chunk(packet, context, None, True, number), now)
        for chunk in cut(stream.chunks):
            number += 1
            self._reply(packet, self._chunk(packet, context, chunk, True, number), now)
        end = self._chunk(packet, context, None, False, number + 1)
        if stream.error is not None:
            end = msgspec.structs.replace(end, success=False, error=stream.error)
        self._reply(packet, end, now)

    def _chunk(self, packet: p.Request, context: Context, data: Any, more: bool, seq: int) -> p.Response:
        return self._response(packet, context, success=True, data=data, stream=more, seq=seq)

    def _reply(self, packet: p.Request, answer: p.Response, now: float) -> None:
        """To who asked; without a sender real nodes answer to nobody's topic."""
        target = packet.sender if isinstance(packet.sender, str) else ""
        self._node.send(answer, target, now, packet.ver if isinstance(packet.ver, str) else "")

    # events

    def event(self, packet: p.Event, now: float) -> None:
        """An event came: all functions for it run that are in its groups; of a balanced one those that one
        node runs, too."""
        if self._node.stopping:
            return
        groups = packet.groups if isinstance(packet.groups, list) and packet.groups else None
        context = _context(packet, packet.event, packet.data, None)
        for service in self._node.services:
            for group, pattern, act in service.handlers:
                if matches(pattern, str(packet.event)) and (groups is None or group in groups):
                    try:
                        act(context)
                    except Exception as error:  # real nodes log it; nobody is told
                        self._node.failures.append(error)


def _context(packet: Any, name: Any, params: Any, stream: Stream | None) -> Context:
    meta = dict(packet.meta) if isinstance(packet.meta, Mapping) else {}
    headers = dict(packet.headers) if isinstance(packet.headers, Mapping) else {}
    for flags in (meta, headers):
        flags.pop("$streamObjectMode", None)
    sender = packet.sender if isinstance(packet.sender, str) else ""
    return Context(str(name), None if params is UNSET else params, meta, headers, sender, packet, stream)
