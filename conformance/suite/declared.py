"""Which ids the criteria of a scenario can have.

An id is written beside its criterion, so it is a constant of the script's code, or of what of the scenarios
the script uses. All constants there are taken for ids: that is more than there is, and never less.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Hashable, Iterator, Mapping
from functools import cache
from types import CodeType, FunctionType, ModuleType
from typing import NamedTuple, cast

from conformance.suite import outside
from conformance.suite.expect import ID_LENGTH, slug
from conformance.suite.scenario import Scenario, Script

#: Criteria of the judge itself, which every scenario has; those of steps that prepare begin with `SETUP`.
GENERAL = frozenset(
    {
        "acked-is-confirmed",
        "adapter-protocol",
        "answer",
        "fault-never-fired",
        "in-time",
        "no-connection",
        "nothing-demanded",
        "op-ends",
        "process-lives",
        "script-ended",
    }
)
SETUP = "setup-"
_HOLE = re.compile(r"-?\{\}-?")  #: what is put there may come to nothing
_ID = re.compile(r"[a-z0-9]+(-[a-z0-9]+)*")
_EDGE = re.compile(r"^[^a-z0-9]|[^a-z0-9]$", re.IGNORECASE)  #: a piece of an f-string begins or ends so
_CUT = 40  #: where a template was cut off, at least so many characters are left


class Declared(NamedTuple):
    """The ids of a scenario's criteria.

    Attributes:
        ids: Those that are written as they are, and in scenarios from outside those that words make.
        templates: What `slug` makes ids of.
        parts: What is put together otherwise, in scenarios from outside.
    """

    ids: frozenset[str]
    templates: frozenset[str]
    parts: frozenset[str]

    def has(self, wanted: str) -> bool:
        """Whether a criterion may have this id."""
        if wanted in self.ids or wanted in GENERAL or wanted.startswith(SETUP):
            return True
        return any(_fits(wanted, each) for each in self.templates) or any(
            each in wanted for each in self.parts
        )


def declared_by(item: Scenario) -> Declared:
    """All ids that a scenario's criteria can have."""
    return _declared(item.script, cast(Hashable, item.subject))


@cache
def _declared(script: Script, subject: Hashable) -> Declared:
    texts = set(_texts(script, subject))
    ids = frozenset(each for each in texts if _ID.fullmatch(each))
    templates = frozenset(each for each in texts if "{}" in each and _ID.fullmatch(each.replace("{}", "n")))
    if outside.is_bundled(script.__module__):
        return Declared(ids, templates, frozenset())
    words = frozenset(slug("{}", each) for each in texts)
    parts = frozenset(slug("{}", each) for each in texts if _EDGE.search(each))
    return Declared(ids | words - {""}, templates, parts - {""})


def _fits(wanted: str, template: str) -> bool:
    """Whether it is made of the template, the end of which may have been cut off."""
    words = template.split("-")
    for count in range(len(words), 0, -1):
        head = "-".join(words[:count])
        if re.fullmatch(".*".join(map(re.escape, _HOLE.split(head))), wanted):
            left = words[count:]
            return not left or "{}" in left[0] or len(f"{wanted}-{left[0]}") >= ID_LENGTH
        if len(wanted) < _CUT:
            return False
    return False


def _texts(*start: object) -> Iterator[str]:
    """The texts in functions and classes of the scenarios, and in what these name."""
    waiting, seen = list(start), set[int]()
    while waiting:
        what = waiting.pop()
        if id(what) in seen:
            continue
        seen.add(id(what))
        match what:
            case str():
                yield what
            case Mapping():
                waiting += [*what.keys(), *what.values()]
            case list() | tuple() | set() | frozenset():
                waiting += what
            case property() if what.fget is not None:
                waiting.append(what.fget)
            case staticmethod() | classmethod():
                waiting.append(what.__func__)
            case type() if _is_ours(what):
                waiting += [part for base in what.__mro__ if _is_ours(base) for part in vars(base).values()]
            case FunctionType() if _is_ours(what):
                waiting += _used(inspect.unwrap(what))


def _used(function: FunctionType) -> Iterator[object]:
    """What is in a function, and what its names mean."""
    yield from (function.__defaults__, function.__kwdefaults__ or ())
    codes = [function.__code__]
    for code in codes:
        codes += [each for each in code.co_consts if isinstance(each, CodeType)]
        yield code.co_consts
        named = [function.__globals__.get(name) for name in code.co_names]
        yield from named
        modules = [each for each in named if isinstance(each, ModuleType)]
        yield from (getattr(module, name, None) for module in modules for name in code.co_names)


def _is_ours(what: type | FunctionType) -> bool:
    return str(what.__module__).partition(".")[0] == "scenarios"
