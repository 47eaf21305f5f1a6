"""Who asked what of a fake: the calls of its public methods and of those of its faults, as they are made."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import wraps
from inspect import getmembers, iscoroutinefunction, isfunction
from typing import Any

#: Methods that belong to the life of the fake itself, or that code on its own thread calls.
OF_ITS_LIFE = frozenset(
    {
        *("call", "check", "start", "start_async", "stop", "stop_async", "check_async"),
        *("started", "stopping", "stopped", "forked"),
        *("bound", "closed", "endpoints", "make_broker", "new_listeners", "released", "serve", "unserve"),
        *("connect_memory", "connect_memory_socket", "connection", "options_from_environ"),
    }
)


class CallListener:
    """Listens to the public methods of a fake and of its faults; what they call themselves is not heard.

    Args:
        unheard: Names of methods that are left out.
    """

    def __init__(self, unheard: Collection[str] = OF_ITS_LIFE) -> None:
        self._unheard = unheard
        self._thread_state = threading.local()

    def begun(self, name: str, method: Callable[..., Any], args: Sequence[Any], options: Any) -> Any:
        """A call begins; what this returns is given to `ended`."""

    def ended(self, begun: Any, error: BaseException | None) -> None:
        """It is over."""

    def listen(self, server: Any, name: str) -> None:
        """Hear the calls of a fake from now on.

        Args:
            name: What the fake is called.
        """
        for owner, called in ((server, name), (server.faults, f"{name}.faults")):
            for method, _ in getmembers(type(owner), isfunction):
                if not method.startswith("_") and method not in self._unheard:
                    setattr(owner, method, self._heard(getattr(owner, method), f"{called}.{method}"))
        server.call = self._heard(server.call, f"{name}.call")

    def _heard(self, method: Callable[..., Any], name: str) -> Callable[..., Any]:
        if iscoroutinefunction(method):

            @wraps(method)
            async def heard_async(*args: Any, **options: Any) -> Any:
                return await self._awaited(name, method, args, options)

            return heard_async

        @wraps(method)
        def heard(*args: Any, **options: Any) -> Any:
            is_ours = name.endswith(".call") and _caller().startswith("fakebrokers.")
            if is_ours or getattr(self._thread_state, "is_inside", False):
                return method(*args, **options)
            self._thread_state.is_inside = True
            begun = self.begun(name, method, args, options)
            error: BaseException | None = None
            try:
                return method(*args, **options)
            except BaseException as caught:
                error = caught
                raise
            finally:
                self._thread_state.is_inside = False
                self.ended(begun, error)

        return heard

    async def _awaited(
        self, name: str, method: Callable[..., Any], args: Sequence[Any], options: Mapping[str, Any]
    ) -> Any:
        begun = self.begun(name, method, args, options)
        error: BaseException | None = None
        try:
            return await method(*args, **options)
        except BaseException as caught:
            error = caught
            raise
        finally:
            self.ended(begun, error)


def _frames() -> Iterator[Any]:
    frame: Any = sys._getframe(1)
    while frame is not None:
        if frame.f_globals.get("__name__") != __name__:
            yield frame
        frame = frame.f_back


def _caller() -> str:
    """The module that called the method."""
    return next((str(frame.f_globals.get("__name__", "")) for frame in _frames()), "")
