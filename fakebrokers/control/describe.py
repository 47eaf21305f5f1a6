"""How a protocol describes what its fakes can be told from outside the process.

    CONTROL = Control(
        options=Options,                      # what a fake is made with, see `BrokerOptions`
        operations=(
            Operation("create_stream"),       # a method of the server class: name, arguments and docstring
            Operation("streams"),        # a property
            Operation(messages, reads=True),  # a function whose first argument is the fake
        Operation(node_call),             # one that waits is a coroutine function: it runs on the fake's loop
        ),
    )

Arguments, their types, defaults and texts are those of the method or function; `bytes` become bodies
(`values.Body`). Functions are for what has no method, or returns what is no plain value.
"""

from __future__ import annotations

import inspect
import types
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from functools import cache
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import msgspec
from msgspec import Meta

from fakebrokers.control.values import Body, without_bodies
from fakebrokers.core.tls import Certificate
from fakebrokers.errors import UsageError
from fakebrokers.options import Port, Seconds

#: Seconds that a request may wait for something to happen, at most.
LONGEST_WAIT_S = 3600
Timeout = Annotated[float, Meta(ge=0, le=LONGEST_WAIT_S)]
#: Where a whole API is switched on: at any free port, or at this one.
Switch = bool | Port
#: TLS listeners besides: with a good certificate, or with one of these.
TlsOption = bool | Certificate

_UNBOUND = inspect.Parameter.empty


class BrokerOptions(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What every fake can be made with; a protocol adds its own as fields.

    Attributes:
        port: Where it listens; 0 takes any free port.
        profile: Which server it resembles: ``real``, ``seed`` or a version.
        faults: A fault plan: a table with ``seed`` and ``faults``.
        seed: Of the random decisions of its faults; goes before that of the plan.
        journal_limit: Records that the journal keeps.
        body_limit: Frames with bodies above this many bytes are journalled without them.
        exact: Each frame has an answer of its own, as while there are faults; else what one read brings may
            be answered together.
    """

    port: Port = 0
    profile: str = "real"
    faults: dict[str, Any] | None = None
    seed: int | None = None
    journal_limit: Annotated[int, Meta(ge=1, le=100_000_000)] = 100_000
    body_limit: Annotated[int, Meta(ge=0, le=1 << 40)] | None = None
    exact: bool = False

    def keywords(self) -> dict[str, Any]:
        """The keywords for the server class: those that are not the default."""
        return {
            field.name: value
            for field in msgspec.structs.fields(self)
            if (value := getattr(self, field.name)) != field.default
            and not (field.default_factory is not msgspec.NODEFAULT and value == field.default_factory())
        }

    def prepare(self, server: Any) -> None:
        """Do what can be done only once the fake listens; nobody was told its address yet."""


def name_and_password(user: str) -> tuple[str, str]:
    """The two of ``NAME:PASSWORD``.

    Raises:
        UsageError: It is not written so.
    """
    name, colon, password = user.partition(":")
    if not (name and colon):
        raise UsageError(f"expected a user as NAME:PASSWORD, got {user!r}")
    return name, password


@dataclass(frozen=True)
class Operation:
    """One thing that a fake can do; see the module's text.

    Attributes:
        act: Name of a method or property of the server class, or a function.
        reads: It changes nothing, so that GET will do.
        old: A name that it had before; it stays.
    """

    act: str | Callable[..., Any]
    reads: bool = False
    old: str = ""

    @property
    def name(self) -> str:
        """As in the URL."""
        return self.act if isinstance(self.act, str) else self.act.__name__

    def bind(self, server: type[object]) -> BoundOperation:
        """The operation for one class of fakes."""
        return _bind(self, server)

    def bind_all(self, server: type[object]) -> dict[str, BoundOperation]:
        """The same by each of its names."""
        bound = self.bind(server)
        return {bound.name: bound, **({self.old: _under_its_old_name(bound, self.old)} if self.old else {})}


@dataclass(frozen=True)
class Control:
    """What the fakes of a protocol can do; see the module's text.

    Attributes:
        options: What they are made with.
        operations: What they can do besides what all can.
    """

    options: type[BrokerOptions] = BrokerOptions
    operations: Sequence[Operation] = ()


@dataclass(frozen=True, eq=False)
class BoundOperation:
    """An operation whose arguments and result have types.

    Attributes:
        arguments: What a request has to hold.
        returns: Type of the result; None for none.
        about: Its docstring.
        reads: See `Operation`.
        is_old: It is an old name of another one.
        waits: `carry_out` returns a coroutine, for the fake's loop; the others may block for a moment.
    """

    name: str
    arguments: type[msgspec.Struct]
    returns: Any
    about: str
    reads: bool
    waits: bool
    _call: Callable[..., Any]
    _parameters: tuple[inspect.Parameter, ...]
    is_old: bool = False

    def carry_out(self, server: object, arguments: msgspec.Struct) -> Any:
        """Do it; returns what the method returns, and raises what it raises."""
        placed: list[Any] = []
        named: dict[str, Any] = {}
        for parameter in self._parameters:
            value = without_bodies(getattr(arguments, parameter.name))
            if parameter.kind is parameter.VAR_POSITIONAL:
                placed += value
            elif parameter.kind is parameter.VAR_KEYWORD:
                self._check_names(value, parameter.name)
                named |= value
            elif parameter.kind is parameter.KEYWORD_ONLY:
                named[parameter.name] = value
            else:
                placed.append(value)
        return self._call(server, *placed, **named)

    def _check_names(self, given: Mapping[str, Any], where: str) -> None:
        """No further argument may be called like one that there is already."""
        for name in inspect.signature(self._call).parameters.keys() & given.keys():
            raise UsageError(f"{where}: expected names of its own, got {name!r}")


def _bind(operation: Operation, server: type[object]) -> BoundOperation:
    act: Any = operation.act
    reads = operation.reads
    if isinstance(act, str):
        found = inspect.getattr_static(server, act)
        reads = reads or isinstance(found, property)
        act = found.fget if isinstance(found, property) else found
    return _bound(act, reads)


@cache
def _under_its_old_name(bound: BoundOperation, name: str) -> BoundOperation:
    return replace(bound, name=name, about=f"Old name of `{bound.name}`. {bound.about}", is_old=True)


@cache
def _bound(act: Callable[..., Any], reads: bool) -> BoundOperation:
    hints = get_type_hints(act, include_extras=True)
    parameters = tuple(inspect.signature(act).parameters.values())[1:]
    fields = [_field(parameter, hints[parameter.name]) for parameter in parameters]
    name = act.__qualname__ if "." in act.__qualname__ else f"{act.__module__.split('.')[-2]}.{act.__name__}"
    arguments = msgspec.defstruct(name, fields, forbid_unknown_fields=True, frozen=True, kw_only=True)
    returns = hints.get("return")
    return BoundOperation(
        act.__name__,
        arguments,
        None if returns is types.NoneType else accepted(returns),
        inspect.cleandoc(act.__doc__ or ""),
        reads,
        inspect.iscoroutinefunction(act),
        act,
        parameters,
    )


def _field(parameter: inspect.Parameter, hint: Any) -> Any:
    kind = accepted(hint)
    if parameter.name in ("timeout", "timeout_s"):
        kind = _in_seconds(kind, Timeout)
    elif parameter.name.endswith("_s"):
        kind = _in_seconds(kind, Seconds)
    if parameter.kind is parameter.VAR_POSITIONAL:
        return (parameter.name, list[kind], msgspec.field(default_factory=list))  # type: ignore[valid-type]
    if parameter.kind is parameter.VAR_KEYWORD:
        return (parameter.name, dict[str, kind], msgspec.field(default_factory=dict))  # type: ignore[valid-type]
    if parameter.default is _UNBOUND:
        return (parameter.name, kind)
    if isinstance(parameter.default, list | dict | set):
        return (parameter.name, kind, msgspec.field(default_factory=type(parameter.default)))
    return (parameter.name, kind, parameter.default)


def _in_seconds(kind: Any, time: Any) -> Any:
    """A number as a time; None may stay."""
    if get_origin(kind) in (Union, types.UnionType):
        return Union[tuple(_in_seconds(each, time) for each in get_args(kind))]  # noqa: UP007 - of a tuple
    return time if kind is float else kind


def accepted(hint: Any) -> Any:
    """A type of Python's as requests have it: lists, dictionaries, bodies, and no text beside an enum."""
    if hint is bytes:
        return Body
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated or origin is Literal or origin is None:
        return hint
    parts = tuple(accepted(each) for each in inner if each is not ...)
    if origin in (Union, types.UnionType):
        if any(isinstance(each, type) and issubclass(each, Enum) for each in parts):
            parts = tuple(each for each in parts if each is not str)
        return Union[parts]  # noqa: UP007 - of a tuple
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return dict[parts[0], parts[1]]  # type: ignore[valid-type]
    if origin in (list, tuple) or origin.__module__ == "collections.abc":
        return list[parts[0]]  # type: ignore[valid-type]
    return hint
