"""Which tests use real time: real sleeps, time-outs below a minute, and clocks on the wall.

Each is in ``real_time.toml`` with its reason, by ``FILE::NAME``, or by ``FILE`` where one reason holds for
all of it; `NAME` is a function or class of the module. `uses_in` finds them in the source, and in the
programs of the findings, in whatever language. What asyncio
does on a loop with virtual time takes no time, which no source tells: `guard` looks while tests run.
"""

from __future__ import annotations

import ast
import asyncio
import functools
import re
import sys
import tomllib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import CodeType
from typing import Any, NamedTuple

from fakebrokers.core.virtual import VirtualTime

TESTS = Path(__file__).parent
_HERE, _BENCHMARKS = f"{TESTS}/", f"{TESTS}/benchmarks/"
FINDINGS = TESTS.parent / "docs" / "findings"
LIST = TESTS / "real_time.toml"
LANGUAGES = ("py", "mjs", "go", "java", "rs")
SHORT_S = 60.0
CLOCKS = {f"time.{name}{unit}" for name in ("monotonic", "perf_counter", "time") for unit in ("", "_ns")}
SLEEPS = {"time.sleep", "threading.Timer"}
#: By function: the place of a time-out among its arguments.
PLACES = {
    "create_connection": 1,
    "join": 0,
    "result": 0,
    "select": 3,
    "settimeout": 0,
    "wait": 0,
    "within": 0,
}
#: By argument, or by key: its unit in seconds.
NAMES: dict[object, float] = {
    "hello_s": 1,
    "limit_s": 1,
    "open_timeout": 1,
    "rcvtimeo": 0.001,
    "timeout": 1,
    "timeout_ms": 0.001,
    "timeout_s": 1,
}
_ASLEEP = re.compile(r"\bsleep[( ]\d")
#: How programs that are not in Python sleep, or give up after a time.
_IN_OTHER_LANGUAGES = re.compile(
    r"\b(setTimeout|Thread\.sleep|time\.Sleep|time\.After|sleep\(Duration|timeout\(Duration)\b"
)
#: What `guard` looks at while tests run; by name, the place of the seconds among the arguments.
_ON_A_LOOP = {"sleep": 0, "timeout": 0, "wait_for": 1}
SEEN_WHILE_TESTS_RUN = {"loop.time", *(f"asyncio.{name}" for name in _ON_A_LOOP)}


#: Numbers that a module gives names.
Known = dict[str, float]


class Use(NamedTuple):
    """Something that takes real time, or measures it."""

    file: str
    name: str
    what: str
    line: int

    @property
    def rows(self) -> tuple[str, str]:
        """Where it may stand on the list."""
        return f"{self.file}::{self.name}", self.file


def listed() -> dict[str, str]:
    """The reasons."""
    return tomllib.loads(LIST.read_text())


def sources() -> Iterator[Path]:
    """All but the benchmarks, which are there to measure, and what runs on virtual time alone."""
    left_out = {"benchmarks", "planted"}
    yield from (path for path in sorted(TESTS.rglob("*.py")) if not left_out.intersection(path.parts))
    yield from (path for each in LANGUAGES for path in sorted(FINDINGS.glob(f"*.{each}")))


def file_of(path: Path) -> str:
    """The name of a source on the list."""
    return path.relative_to(TESTS if path.is_relative_to(TESTS) else FINDINGS.parent).as_posix()


def uses_in(source: str, file: str) -> Iterator[Use]:
    """What a program uses; a module of asyncio only where it may be."""
    if not file.endswith(".py"):
        for number, text in enumerate(source.splitlines(), 1):
            yield from (Use(file, "", match[1], number) for match in _IN_OTHER_LANGUAGES.finditer(text))
        return
    module = ast.parse(source)
    known = {
        target.id: value
        for statement in module.body
        if isinstance(statement, ast.Assign) and (value := _number(statement.value, {})) is not None
        for target in statement.targets
        if isinstance(target, ast.Name)
    }
    for top in module.body:
        for node in ast.walk(top):
            if look := _LOOKS.get(type(node)):
                line = getattr(node, "lineno", top.lineno)
                yield from (Use(file, getattr(top, "name", ""), what, line) for what in look(node, known))


def _call(node: ast.Call, known: Known) -> Iterator[str]:
    match node.func:
        case ast.Attribute(value=ast.Name(id=module), attr=name):
            whole = f"{module}.{name}"
        case ast.Attribute(value=value, attr=name):
            whole = "loop.time" if name == "time" and _is_loop(value) else name
        case ast.Name(id=name):
            whole = name
        case _:
            return
    if whole in CLOCKS | SLEEPS | SEEN_WHILE_TESTS_RUN:
        yield whole
        return
    for each in node.keywords:
        yield from _short(each.arg, each.value, known)
    place = PLACES.get(name, len(node.args))
    if place == len(node.args) - 1:
        yield from _short("timeout", node.args[place], known)


def _is_loop(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and ast.unparse(node.func).endswith("get_running_loop")


def _constant(node: ast.Constant, known: Known) -> Iterator[str]:
    if isinstance(node.value, str) and _ASLEEP.search(node.value):
        yield "sleep in a program"


def _dict(node: ast.Dict, known: Known) -> Iterator[str]:
    for key, value in zip(node.keys, node.values, strict=True):
        if isinstance(key, ast.Constant):
            yield from _short(key.value, value, known)


def _assign(node: ast.Assign, known: Known) -> Iterator[str]:
    for target in node.targets:
        if isinstance(target, ast.Attribute):
            yield from _short(target.attr, node.value, known)


def _arguments(node: ast.arguments, known: Known) -> Iterator[str]:
    for arg, value in _defaults(node):
        yield from _short(arg.arg, value, known)


_LOOKS: dict[type[ast.AST], Callable[[Any, Known], Iterator[str]]] = {
    ast.Call: _call,
    ast.Constant: _constant,
    ast.Dict: _dict,
    ast.Assign: _assign,
    ast.arguments: _arguments,
}


def _defaults(node: ast.arguments) -> Iterator[tuple[ast.arg, ast.expr]]:
    positional = [*node.posonlyargs, *node.args]
    yield from zip(positional[len(positional) - len(node.defaults) :], node.defaults, strict=True)
    yield from ((arg, value) for arg, value in zip(node.kwonlyargs, node.kw_defaults, strict=True) if value)


def _short(name: object, node: ast.expr, known: Known) -> Iterator[str]:
    if name in NAMES and 0 < ((_number(node, known) or 0) * NAMES[name]) < SHORT_S:
        yield f"{name} of {ast.unparse(node)}"


def _number(node: ast.expr, known: Known) -> float | None:
    match node:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            return value
        case ast.Name(id=name):
            return known.get(name)
        case ast.IfExp(body=body, orelse=other):
            return min((each for each in (_number(body, known), _number(other, known)) if each), default=None)
        case ast.BinOp(left, ast.Mult(), right):
            factors = _number(left, known), _number(right, known)
            return None if None in factors else factors[0] * factors[1]  # type: ignore[operator]
    return None


def guard() -> None:
    """From now on whoever sleeps on a real loop, waits there for less than a minute, or asks it for the
    time fails unless it is listed.
    """
    rows = set(listed())
    for name, place in _ON_A_LOOP.items():
        setattr(asyncio, name, _guarded(getattr(asyncio, name), place, rows, sleeps=name == "sleep"))
    loop = asyncio.BaseEventLoop  # that with virtual time has a clock of its own
    loop.time = _guarded_clock(loop.time, rows)  # type: ignore[assignment, method-assign]


def _guarded(function: Callable[..., Any], place: int, rows: set[str], *, sleeps: bool) -> Callable[..., Any]:
    @functools.wraps(function)
    def look(*args: Any, **options: Any) -> Any:
        if _is_test(code := sys._getframe(1).f_code):
            seconds = args[place] if len(args) > place else options.get("delay", options.get("timeout"))
            if seconds and (sleeps or seconds < SHORT_S) and not _is_virtual():
                _require(code, rows, f"{function.__name__} of {seconds} s")
        return function(*args, **options)

    return look


def _guarded_clock(clock: Callable[[Any], float], rows: set[str]) -> Callable[[Any], float]:
    def time(loop: Any) -> float:
        if _is_test(code := sys._getframe(1).f_code):
            _require(code, rows, "the time")
        return clock(loop)

    return time


def _is_test(code: CodeType) -> bool:
    return code.co_filename.startswith(_HERE) and not code.co_filename.startswith(_BENCHMARKS)


def _require(code: CodeType, rows: set[str], what: str) -> None:
    use = Use(code.co_filename.removeprefix(_HERE), code.co_qualname.split(".")[0], "", 0)
    assert rows.intersection(use.rows), (
        f"{use.rows[0]}: {what} on a real loop; wait for what happens (tests/eventually.py), use virtual"
        " time, or give the reason in tests/real_time.toml"
    )


def _is_virtual() -> bool:
    try:
        return isinstance(asyncio.get_running_loop(), VirtualTime)
    except RuntimeError:
        return False
