"""Lines of an application: which there are, and which a run has reached."""

from __future__ import annotations

import inspect
import os
import sys
from asyncio import _get_running_loop
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

from fakebrokers.errors import UsageError

#: A file, and the number of a line in it.
Place = tuple[str, int]
#: Tools of `sys.monitoring` that nobody has reserved come first.
_TOOLS = (3, 4, 1, 2)


def lines_of(modules: Iterable[str]) -> dict[str, list[int]]:
    """The lines in functions of these modules, by file; of a package all that is in its folder.

    Lines outside of functions run when a module is imported, whatever a seed draws.

    Raises:
        UsageError: There is no such module, or it is not written in Python.
    """
    found = {}
    for module in modules:
        for file in _files(module):
            code = compile(Path(file).read_bytes(), file, "exec")
            found[file] = sorted(_in_functions(code))
    return found


def _files(module: str) -> list[str]:
    try:
        spec = find_spec(module)
    except (ImportError, ValueError):
        spec = None
    if spec is None:
        raise UsageError(f"--coverage: there is no module {module!r}")
    import_module(module)
    if spec.submodule_search_locations:
        folders = map(Path, spec.submodule_search_locations)
        return [str(file) for folder in folders for file in sorted(folder.rglob("*.py"))]
    if spec.origin is None or not spec.origin.endswith(".py"):
        raise UsageError(f"--coverage: {module!r} is not written in Python")
    return [os.path.abspath(spec.origin)]


def _in_functions(code: CodeType) -> set[int]:
    found: set[int] = set()
    if code.co_flags & inspect.CO_OPTIMIZED:  # a function, not a module or the body of a class
        found = {line for *_, line in code.co_lines() if line not in (None, code.co_firstlineno)}
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            found |= _in_functions(constant)
    return found


@contextmanager
def reaching(files: Iterable[str]) -> Iterator[dict[Place, float]]:
    """Which lines of these files this thread reaches inside, and the loop's time when each first was."""
    seen: dict[Place, float] = {}
    wanted = frozenset(files)
    if sys.version_info >= (3, 12):
        with _monitored(wanted, seen):
            yield seen
    else:
        before = sys.gettrace()
        sys.settrace(_tracer(wanted, seen))
        try:
            yield seen
        finally:
            sys.settrace(before)


def _now() -> float:
    loop = _get_running_loop()
    return 0.0 if loop is None else loop.time()


def _tracer(wanted: frozenset[str], seen: dict[Place, float]) -> Callable[[FrameType, str, Any], Any]:
    def line(frame: FrameType, event: str, argument: Any) -> Any:
        place = frame.f_code.co_filename, frame.f_lineno
        if event == "line" and place not in seen:
            seen[place] = _now()
        return line

    def call(frame: FrameType, event: str, argument: Any) -> Any:
        return line if frame.f_code.co_filename in wanted else None

    return call


if sys.version_info >= (3, 12):

    @contextmanager
    def _monitored(wanted: frozenset[str], seen: dict[Place, float]) -> Iterator[None]:
        """Each line reports once, and code of other files once when it begins: a run takes a fifth longer."""
        monitoring = sys.monitoring
        events = monitoring.events
        tool = next((each for each in _TOOLS if monitoring.get_tool(each) is None), None)
        if tool is None:
            raise UsageError("--coverage: all tools of sys.monitoring are in use")

        def begins(code: CodeType, offset: int) -> Any:
            if code.co_filename in wanted:
                monitoring.set_local_events(tool, code, events.LINE)
            return monitoring.DISABLE

        def line(code: CodeType, number: int) -> Any:
            seen.setdefault((code.co_filename, number), _now())
            return monitoring.DISABLE

        monitoring.use_tool_id(tool, "fakebrokers")
        monitoring.register_callback(tool, events.PY_START, begins)
        monitoring.register_callback(tool, events.PY_RESUME, begins)
        monitoring.register_callback(tool, events.LINE, line)
        monitoring.restart_events()
        monitoring.set_events(tool, events.PY_START | events.PY_RESUME)
        try:
            yield
        finally:
            monitoring.set_events(tool, 0)
            for event in (events.PY_START, events.PY_RESUME, events.LINE):
                monitoring.register_callback(tool, event, None)
            monitoring.free_tool_id(tool)


def ranges(numbers: Iterable[int]) -> str:
    """Numbers for people: ``17, 31-34``."""
    parts: list[list[int]] = []
    for number in sorted(numbers):
        if parts and number == parts[-1][-1] + 1:
            parts[-1][1:] = [number]
        else:
            parts.append([number])
    return ", ".join("-".join(map(str, part)) for part in parts)
