"""Old names go on working, with a `DeprecationWarning` that says the new one."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Iterable
from typing import Any, ParamSpec, TypeVar

#: Of `FakeServer`: what was public although only protocols and this package use it.
HOOKS = (
    "bound",
    "closed",
    "companions",
    "endpoints",
    "forked",
    "is_companion",
    "make_broker",
    "new_listeners",
    "options_from_environ",
    "released",
    "serve",
    "started",
    "stopped",
    "stopping",
    "unserve",
    "watcher",
    "wires",
)

P = ParamSpec("P")
T = TypeVar("T")


def warn_of_old(old: str, new: str, depth: int = 2) -> None:
    """Warn of an old name.

    Args:
        depth: Calls between the user's line and this one.
    """
    warnings.warn(f"{old} is an old name: use {new}", DeprecationWarning, stacklevel=depth + 1)


class OldName:
    """An attribute under its old name, to be read and set."""

    def __init__(self, new: str) -> None:
        self._new = new
        self._old = ""

    def __set_name__(self, owner: type, name: str) -> None:
        self._old = name

    def __get__(self, instance: object, owner: type) -> Any:
        if instance is None:  # something looks through the class
            return self
        warn_of_old(f"{owner.__name__}.{self._old}", self._new)
        return getattr(instance, self._new)

    def __set__(self, instance: object, value: object) -> None:
        warn_of_old(f"{type(instance).__name__}.{self._old}", self._new)
        setattr(instance, self._new, value)


def keep_old_names(kind: type, names: Iterable[str]) -> None:
    """Let attributes that have an underscore now be used under their names without it."""
    for name in names:
        old = OldName(f"_{name}")
        old.__set_name__(kind, name)
        setattr(kind, name, old)


def take_old_names(kind: type, names: Iterable[str]) -> None:
    """Let a class of another project that overrides methods under old names override them."""
    for name in vars(kind).keys() & set(names):
        warn_of_old(f"{kind.__name__}.{name}", f"_{name}", depth=4)
        setattr(kind, f"_{name}", vars(kind)[name])


def formerly(old: str, act: Callable[P, T]) -> Callable[P, T]:
    """A method under its old name."""

    @functools.wraps(act)
    def method(*args: P.args, **options: P.kwargs) -> T:
        owner = type(args[0]).__name__
        warn_of_old(f"{owner}.{old}", f"{owner}.{act.__name__}")
        return act(*args, **options)

    method.__name__ = old
    method.__doc__ = f"Old name of `{act.__name__}`."
    return method
