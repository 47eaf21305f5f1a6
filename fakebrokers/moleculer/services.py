"""What fake nodes offer: services as small Python functions.

def add(ctx):
    return ctx.params["a"] + ctx.params["b"]

moleculer.node("fake-1", services={"math": {"add": add}})
moleculer.node("fake-2", services=[Service("users", version=2, events={"user.*": print})])
"""

from __future__ import annotations

import re
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from msgspec import UNSET

Action = Callable[["Context"], Any]


class _NoAnswer:
    def __repr__(self) -> str:
        return "NO_ANSWER"


#: What a function returns that leaves the request without an answer.
NO_ANSWER = _NoAnswer()


@dataclass(frozen=True)
class Stream:
    """A stream, as a function returns it, or as it came.

    Attributes:
        chunks: Bytes; with `object_mode` anything.
        object_mode: Whether the chunks are objects.
        error: The error with which it ends, as on the wire; None for a proper end.
    """

    chunks: Sequence[Any]
    object_mode: bool = False
    error: Mapping[str, Any] | None = None


@dataclass
class Context:
    """What a function gets: one request, or one event.

    Attributes:
        name: The action, or the event.
        params: What the caller sent: parameters, or the event's data.
        meta: Goes back with the answer, with what the function puts in.
        headers: Protocol 5 only.
        caller: The node that sent it.
        stream: What was uploaded, if anything; the function is called when all of it has come.
        response_headers: Go back with the answer (protocol 5).
        packet: The packet itself (the opening one of a stream).
    """

    name: str
    params: Any
    meta: dict[str, Any]
    headers: dict[str, Any]
    caller: str
    packet: Any
    stream: Stream | None = None
    response_headers: dict[str, Any] = field(default_factory=dict)


class MoleculerError(Exception):
    """What a function raises to answer with an error of Moleculer's.

    Args:
        message: Its text.
        code, type, data: Its fields; `UNSET` ones are not there.
        name: Its class, by which the caller restores it.
        retryable: Whether the caller may try again.
        fields: The whole error as on the wire, in place of all that.
    """

    def __init__(
        self,
        message: str = "",
        code: Any = 500,
        type: Any = UNSET,
        data: Any = UNSET,
        *,
        name: str = "MoleculerError",
        retryable: Any = False,
        fields: Mapping[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.fields = {
            "name": name,
            "message": message,
            "code": code,
            "type": type,
            "retryable": retryable,
            "data": data,
            **(fields or {}),
        }


_ERROR_ORDER = ("name", "message", "nodeID", "code", "type", "retryable", "stack", "data")


def error_of(error: BaseException, node: str) -> dict[str, Any]:
    """The error object of an answer; undefined fields are absent, as of a plain error of JavaScript."""
    if isinstance(error, MoleculerError):
        found: dict[str, Any] = dict(error.fields)
    else:
        found = {"name": type(error).__name__, "message": str(error)}
    found.setdefault("nodeID", node)
    found.setdefault("stack", _stack(error, found))
    ordered = {name: found.pop(name, UNSET) for name in _ERROR_ORDER}
    return {name: value for name, value in {**ordered, **found}.items() if value is not UNSET}


def _stack(error: BaseException, found: Mapping[str, Any]) -> str:
    """As JavaScript has it: the error's line, then where it was.

    Without the folders of this machine: the same run has the same bytes on another one.
    """
    frames = traceback.extract_tb(error.__traceback__)
    where = [f"    at {each.name} ({Path(each.filename).name}:{each.lineno})" for each in reversed(frames)]
    return "\n".join([f"{found['name']}: {found['message']}", *where])


def _where(action: Any, node: str) -> dict[str, Any]:
    """The data of an error about an action, which the request may not have named."""
    return {"nodeID": node} if action is UNSET else {"action": action, "nodeID": node}


def _named(action: Any) -> str:
    return "undefined" if action is UNSET else str(action)


def not_found(action: Any, node: str) -> MoleculerError:
    """What a node answers that does not have the action."""
    return MoleculerError(
        f"Service '{_named(action)}' is not found on '{node}' node.",
        404,
        "SERVICE_NOT_FOUND",
        _where(action, node),
        name="ServiceNotFoundError",
        retryable=True,
    )


def not_available(action: Any, node: str) -> MoleculerError:
    """What a node answers that stops."""
    return MoleculerError(
        f"Service '{_named(action)}' is not available on '{node}' node.",
        404,
        "SERVICE_NOT_AVAILABLE",
        _where(action, node),
        name="ServiceNotAvailableError",
        retryable=True,
    )


@dataclass(frozen=True)
class Service:
    """A service.

    Attributes:
        name: Its name.
        actions: Functions by the names of the actions.
        events: Functions by the patterns of the events they are for; one with a group of its own has the
            name ``group:pattern``.
        version: A number or a word; part of the names of the actions.
        settings, metadata, dependencies: What INFO tells besides.
    """

    name: str
    actions: Mapping[str, Action] = field(default_factory=dict)
    events: Mapping[str, Action] = field(default_factory=dict)
    version: int | str | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)
    dependencies: Any = UNSET

    @property
    def full_name(self) -> str:
        """The name with the version in front."""
        if self.version is None:
            return self.name
        return (
            f"v{self.version}.{self.name}" if isinstance(self.version, int) else f"{self.version}.{self.name}"
        )

    @property
    def handlers(self) -> list[tuple[str, str, Action]]:
        """Group, pattern and function of each event."""
        found = []
        for name, act in self.events.items():
            group, mark, pattern = name.rpartition(":")
            found.append((group if mark else self.name, pattern, act))
        return found

    def info(self) -> dict[str, Any]:
        """What INFO has of it (docs/protocols/moleculer.md, 4.2)."""
        actions = {
            f"{self.full_name}.{raw}": {"rawName": raw, "name": f"{self.full_name}.{raw}"}
            for raw in self.actions
        }
        events = {
            pattern: {**({"group": group} if group != self.name else {}), "name": pattern}
            for group, pattern, _ in self.handlers
        }
        found = {
            "name": self.name,
            "version": UNSET if self.version is None else self.version,
            "fullName": self.full_name,
            "settings": dict(self.settings),
            "metadata": dict(self.metadata),
            "dependencies": self.dependencies,
            "actions": actions,
            "events": events,
        }
        return {name: value for name, value in found.items() if value is not UNSET}


def services_from(given: Iterable[Service] | Mapping[str, Mapping[str, Action]] | None) -> list[Service]:
    """Services from what tests write."""
    if given is None:
        return []
    if isinstance(given, Mapping):
        return [Service(name, dict(actions)) for name, actions in given.items()]
    return list(given)


def matches(pattern: str, event: str) -> bool:
    """Whether an event fits a pattern: ``*`` one segment, ``**`` anything, ``?`` one character."""
    return _pattern(pattern).fullmatch(event) is not None


@lru_cache(maxsize=512)
def _pattern(pattern: str) -> re.Pattern[str]:
    words = {"**": ".*", "*": r"[^.]*", "?": "."}
    parts = re.split(r"(\*\*|\*|\?)", pattern)
    return re.compile("".join([words.get(part) or re.escape(part) for part in parts]), re.DOTALL)
