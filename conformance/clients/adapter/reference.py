"""The tables of ``ADAPTER.md``, from the types of the ops."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from inspect import cleandoc
from pathlib import Path
from types import UnionType
from typing import Any, Literal, Union, get_args, get_origin

import msgspec
from msgspec import NODEFAULT, UNSET, structs

from conformance.clients.adapter.contract import CONTRACT
from conformance.clients.adapter.features import FEATURES, LANGUAGES
from conformance.clients.adapter.limits import LIMITS
from conformance.clients.adapter.messages import Hello, Message
from conformance.clients.adapter.ops import core
from conformance.clients.adapter.ops.define import EVERY_ROLE, Arguments, Nothing, Op
from conformance.clients.adapter.ops.events import EVENTS
from conformance.clients.adapter.profile import profiles
from conformance.clients.adapter.schema import camel, reported, structs_in

GUIDE_FILE = Path(__file__).parents[2] / "ADAPTER.md"

_PART = re.compile(r"(?<=<!-- written from the types: )(\S+)( -->\n).*?(?=<!-- end -->)", re.DOTALL)

Field = structs.FieldInfo
Struct = type[msgspec.Struct]


def guide(text: str) -> str:
    """The guide with its tables as they should be.

    Args:
        text: The guide; tables are between ``<!-- written from the types: NAME -->`` and ``<!-- end -->``.

    Raises:
        KeyError: There is no table of such a name.
    """
    tables = {"roles": _roles(), "capabilities": _capabilities(), "contract": _contract()}
    tables["limits"] = _limits()
    tables["kits"] = _kits()
    tables["events"] = _events()
    tables["ops"] = [*_ops(core.OPS), *_objects(core.OPS)]
    for name, each in profiles().items():
        tables[name] = [*_ops(each.ops), *_objects(each.ops)]
    return _PART.sub(lambda found: f"{found[1]}{found[2]}" + "\n".join([*tables[found[1]], ""]), text)


# The tables.


def _roles() -> list[str]:
    rows = [(_code([name]), _code(each.roles)) for name, each in profiles().items()]
    return _table(("protocol", "roles"), rows)


def _contract() -> list[str]:
    return _table(("word", "true"), [(_code([word]), text) for word, text in CONTRACT.items()])


def _kits() -> list[str]:
    rows = [(each.what, *(_code([name]) if name else "-" for name in each.names)) for each in FEATURES]
    return _table(("", *LANGUAGES), rows)


def _limits() -> list[str]:
    return _table(("limit", "means"), [(_code([word]), text) for word, text in LIMITS.items()])


def _capabilities() -> list[str]:
    rows = [(_code([word]), text) for word, text in core.CAPABILITIES.items()]
    of_some: dict[tuple[str, str], list[str]] = {}
    for name, profile in profiles().items():
        for each in profile.capabilities.items():
            of_some.setdefault(each, []).append(name)
    rows += [(_code([word]), f"{text} ({', '.join(names)})") for (word, text), names in of_some.items()]
    return _table(("capability", "means"), rows)


def _events() -> list[str]:
    shown = {
        name: "those of a message" if kind is Message else _members(kind) for name, kind in EVENTS.items()
    }
    rows = [(_code([name]), shown[name], reported(kind)[0]) for name, kind in EVENTS.items()]
    return _table(("event", "members", ""), rows)


def _ops(ops: Mapping[str, type[Arguments]]) -> list[str]:
    """A row for each op; of one of the core what the protocol adds, if it does."""
    rows = []
    for name, each in ops.items():
        if not _is_more(each):
            rows.append(
                (_code([name]), _need(each.spec), _members(each), _result(each.spec), reported(each)[0])
            )
        elif members := _members(each):
            rows.append((_code([name]), "", members, "", _about(each)))
    return _table(("op", "", "args", "result", ""), rows)


def _objects(ops: Mapping[str, type[Arguments]]) -> list[str]:
    """A row for each object inside arguments and results that is made for these ops."""
    whole = [each for op in ops.values() for each in (op, op.spec.result)]
    places = {each.__module__ for each in ops.values()}
    inside = [each for each in structs_in(whole) if each not in whole and each.__module__ in places]
    rows = [(_code([camel(each.__name__)]), _members(each), _about(each)) for each in inside if _own(each)]
    return ["", *_table(("object", "members", ""), rows)] if rows else []


def _table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [head, ["---"] * len(head), *rows]
    return ["| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |" for cells in lines]


# The cells.


def _need(op: Op) -> str:
    if not op.needed_by:
        return "○"
    marks = ["●" if role == EVERY_ROLE else f"●{role}" for role in op.needed_by]
    unless = f", unless `settles` is `{op.unless_settles}`" if op.unless_settles else ""
    return ", ".join(marks) + unless


def _result(op: Op) -> str:
    return "`{}`" if op.result is Nothing else "section 3" if op.result is Hello else _members(op.result)


def _members(kind: Struct) -> str:
    """The members that it has of its own, those that may be left out with a question mark."""
    about = reported(kind)[1]
    return ", ".join(_member(field, about.get(field.encode_name, "")) for field in _own(kind))


def _member(field: Field, about: str) -> str:
    mark = "" if field.required else "?"
    default = [] if field.default in (NODEFAULT, UNSET, None) else [json.dumps(field.default)]
    words = [str(word) for word in _words(field.type)]
    notes = [_code(words)] * bool(words) + [_sentence(about)] * bool(about)
    if default and default[0].strip('"') not in words:
        notes.insert(0, _code(default))
    return f"`{field.encode_name}{mark}`" + (f" ({': '.join(notes)})" if notes else "")


def _words(kind: Any) -> list[Any]:
    """The words that a member may be, or a list of it may hold; in the order in which they were written."""
    if get_origin(kind) is Literal:
        return list(get_args(kind))
    inner = get_args(kind) if get_origin(kind) in (list, Union, UnionType) else ()
    return [word for each in inner for word in _words(each)]


def _sentence(text: str) -> str:
    """In brackets: without its capital, unless it begins with an abbreviation, and without its full stop."""
    return (text if text[:2].isupper() else text[:1].lower() + text[1:]).removesuffix(".")


def _own(kind: Struct) -> list[Field]:
    """The members that it does not have from the struct of the same name that it extends."""
    known = {field.name for base in _extended(kind) for field in structs.fields(base)}
    return [field for field in structs.fields(kind) if field.name not in known]


def _is_more(kind: Struct) -> bool:
    return bool(_extended(kind))


def _extended(kind: Struct) -> list[Struct]:
    return [base for base in kind.__mro__[1:] if base.__name__ == kind.__name__]


def _about(kind: Struct) -> str:
    """What its own docstring says of it."""
    return " ".join(cleandoc(kind.__doc__ or "").partition("Attributes:")[0].split())


def _code(words: Sequence[str]) -> str:
    return ", ".join(f"`{word}`" for word in words)
