"""Values between JSON and Python: message bodies, requests into structs, anything into an answer.

A body (any ``bytes``) is text where it is UTF-8, and ``{"base64": "AP8="}`` where it is not; both ways.
"""

from __future__ import annotations

import binascii
import math
from base64 import b64decode, b64encode
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from re import Match, compile
from typing import Any, TypeVar

import msgspec

from fakebrokers.control.problems import Refusal

S = TypeVar("S", bound=msgspec.Struct)

_LARGEST, _SMALLEST = (1 << 64) - 1, -(1 << 63)
_STEP = compile(r"\.([^.\[\]]+)|\[(\d+)\]|\[\.\.\.\]")
_TOLD = compile(
    r"(.*) - at `(?:key in )?\$(.*)`",
)
#: Lists and objects that a value of a request may be inside of.
_DEEPEST = 100
#: How much of a value that does not fit is shown.
_SHOWN = 80


class Body(bytes):
    """Bytes, as requests and answers have them; see the module's text."""

    __slots__ = ()


#: What a body looks like in JSON, for the OpenAPI document.
BODY_SCHEMA: dict[str, Any] = {
    "description": "Bytes: as text where they are UTF-8, else in base64.",
    "anyOf": [
        {"type": "string"},
        {
            "type": "object",
            "properties": {"base64": {"type": "string", "format": "byte"}},
            "required": ["base64"],
            "additionalProperties": False,
        },
    ],
}


def read_json(data: bytes) -> Any:
    """The value in the body of a request; nothing at all is an empty object.

    Raises:
        Refusal: It is no JSON, nested too deep, or has a number that no protocol could hold.
    """
    if not data:
        return {}
    try:
        value = msgspec.json.decode(data)
        _check(value, "body", _DEEPEST)
    except RecursionError:
        raise Refusal(400, "body", "expected JSON, got one that is nested too deep") from None
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise Refusal(400, "body", f"expected JSON, got {_short(data)}: {error}") from None
    return value


def _check(value: Any, path: str, deepest: int) -> None:
    """Refuse numbers that no protocol could hold, and what nothing could work on that calls itself."""
    if not deepest:
        raise Refusal(400, "body", f"expected values in at most {_DEEPEST} others, got one that is deeper")
    if isinstance(value, int) and not _SMALLEST <= value <= _LARGEST:
        raise Refusal(400, path, f"expected a whole number of at most 64 bits, got {_short(value)}")
    if isinstance(value, dict):
        for name, each in value.items():
            _check(each, f"{path}.{name}", deepest - 1)
    elif isinstance(value, list):
        for number, each in enumerate(value):
            _check(each, f"{path}[{number}]", deepest - 1)


def read(value: Any, kind: type[S], where: str = "body", *, strict: bool = True) -> S:
    """A struct from plain values.

    Args:
        where: What errors call it: ``body`` or ``query``.
        strict: Numbers have to be numbers; else text will do (in a query there is nothing else).

    Raises:
        Refusal: It does not fit; with the path, what was expected and what came.
    """
    if isinstance(value, Mapping):
        _check_names(value, msgspec.structs.fields(kind), where)
    try:
        return msgspec.convert(value, kind, strict=strict, dec_hook=_body)
    except msgspec.ValidationError as error:
        raise Refusal(400, *_explained(str(error), value, where)) from None


def _check_names(value: Mapping[str, Any], fields: Sequence[Any], where: str) -> None:
    names = [field.encode_name for field in fields]
    for name in value:
        if name not in names:
            close = get_close_matches(name, names, n=1)
            hint = f" (did you mean {close[0]!r}?)" if close else ""
            words = f"one of {', '.join(names)}" if names else "nothing"
            raise Refusal(400, f"{where}.{name[:_SHOWN]}", f"expected {words}; got {_short(name)}{hint}")
    for field in fields:
        if field.required and field.encode_name not in value:
            raise Refusal(400, f"{where}.{field.encode_name}", f"expected {_word(field.type)}, got nothing")


def _word(kind: Any) -> str:
    words = {str: "text", int: "a whole number", float: "a number", bool: "true or false", Body: "a body"}
    return words.get(kind, "a value")


def _body(kind: Any, value: Any) -> Any:
    """What msgspec asks for a type that it does not know: bodies are the only ones."""
    if kind is not Body:
        raise NotImplementedError(kind)
    if isinstance(value, str):
        return Body(value.encode())
    if isinstance(value, dict) and value.keys() == {"base64"} and isinstance(value["base64"], str):
        try:
            return Body(b64decode(value["base64"], validate=True))
        except (binascii.Error, ValueError) as error:
            raise ValueError(f"Expected base64: {error}") from None
    raise ValueError(f'Expected text or {{"base64": "..."}}, got {_short(value)}')


def _explained(problem: str, value: Any, where: str) -> tuple[str, str]:
    """Path and text of msgspec's own words; the value that came is added."""
    told = _TOLD.fullmatch(problem)
    text, path = (told[1], told[2]) if told else (problem, "")
    found, steps = _at(value, path)
    text = (
        text.replace("`", "").replace("Expected", "expected").replace("Object ", "expected an object that ")
    )
    came = "" if ", got" in text and "text or" in text else f": {_short(found)}"
    return f"{where}{steps}", f"{text}{came}"


def _at(value: Any, path: str) -> tuple[Any, str]:
    """The value at one of msgspec's paths, and the path as far as it is known."""
    known = ""

    def step(found: Match[str]) -> str:
        nonlocal value, known
        name, number = found[1], found[2]
        try:
            if name is not None:
                value = value[name]
                known += f".{name}"
            elif number is not None:
                value = value[int(number)]
                known += f"[{number}]"
            else:
                known += "[...]"
        except (KeyError, IndexError, TypeError):
            known += found[0]
        return ""

    _STEP.sub(step, path)
    return value, known


def _short(value: Any) -> str:
    """A value as an error shows it, whatever its size."""
    try:
        text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    except (TypeError, ValueError, RecursionError, OverflowError, msgspec.MsgspecError):
        text = str(value[:_SHOWN]) if isinstance(value, bytes) else repr(value)
    if isinstance(value, bytes):
        text = repr(value[:_SHOWN])
    shown = text if len(text) <= _SHOWN else f"{text[:_SHOWN]}... ({len(text)} characters)"
    return repr(shown) if isinstance(value, str) else shown


def plain(value: Any) -> Any:
    """Anything that a fake returns, as values that JSON knows."""
    return _plain(builtins_of(value))


def builtins_of(value: Any) -> Any:
    """Structs as dictionaries, at any depth; bytes stay bytes."""
    return msgspec.to_builtins(value, builtin_types=(bytes,), enc_hook=_as_plain)


def _as_plain(value: Any) -> Any:
    """What msgspec does not know: bodies, and anything odd that a frame holds."""
    return bytes(value) if isinstance(value, Body) else str(value)


def without_bodies(value: Any) -> Any:
    """The same with plain bytes for bodies, at any depth of lists and dictionaries."""
    if isinstance(value, Body):
        return bytes(value)
    if isinstance(value, list):
        return [without_bodies(each) for each in value]
    if isinstance(value, dict):
        return {name: without_bodies(each) for name, each in value.items()}
    return value


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {_text(name): _plain(each) for name, each in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    if isinstance(value, bytes):
        try:
            return value.decode()
        except UnicodeDecodeError:
            return {"base64": b64encode(value).decode()}
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, int) and not _SMALLEST <= value <= _LARGEST:
        return str(value)
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value


def _text(value: Any) -> str:
    """Text that is UTF-8, whatever a frame had in its place."""
    if isinstance(value, bytes):
        return value.decode("utf-8", "backslashreplace")
    return str(value).encode("utf-8", "backslashreplace").decode()


def encode(value: Any) -> bytes:
    """JSON of plain values or structs of the API."""
    return msgspec.json.encode(value)
