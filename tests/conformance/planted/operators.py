"""What can be done to a statement: the operators of mutation testing, in one table.

An operator takes the statements of a block and the place of one of them, and yields the block as it would be
with each of its variants. What is done to expressions only is in `replacements`.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterable, Iterator
from types import UnionType

from tests.conformance.planted import replacements
from tests.conformance.planted.replacements import expressions, replaced

Block = list[ast.stmt]
Operator = Callable[[Block, int], Iterator[Block]]
DEFINED = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
LEAVES = ast.Return | ast.Raise | ast.Break | ast.Continue
WIDER = {"Exception": "BaseException", "CancelledError": "BaseException"}  #: all others: Exception


def _with(block: Block, at: int, *new: ast.stmt, span: int = 1) -> Block:
    return [*block[:at], *new, *block[at + span :]]


def _each(variants: Callable[[ast.AST], Iterable[ast.AST]]) -> Operator:
    """An operator that replaces one expression of the statement by each of its variants."""

    def operator(block: Block, at: int) -> Iterator[Block]:
        for node in expressions(block[at]):
            for new in variants(node):
                yield _with(block, at, replaced(block[at], node, new))

    return operator


def _delete(block: Block, at: int) -> Iterator[Block]:
    match block[at]:
        case ast.Expr(value=ast.Constant()):
            return  # a docstring
        case ast.Expr() | ast.AugAssign() | ast.Continue() | ast.Break() | ast.Delete() | ast.Raise():
            yield _with(block, at, ast.Pass())
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript(), *_]):
            yield _with(block, at, ast.Pass())


# conditions


def _always(value: bool) -> Operator:
    """A condition that always holds, or never. A loop that never ends shows by itself."""

    def operator(block: Block, at: int) -> Iterator[Block]:
        node = block[at]
        if isinstance(node, ast.If) or (isinstance(node, ast.While) and not value):
            yield _with(block, at, replaced(node, node.test, ast.Constant(value)))

    return operator


def _negate(block: Block, at: int) -> Iterator[Block]:
    for test in replacements.conditions(block[at]):
        yield _with(block, at, replaced(block[at], test, replacements.negated(test)))


# order


def _swap(block: Block, at: int) -> Iterator[Block]:
    """A statement behind the next one, where neither needs a name that the other one binds."""
    if at + 1 == len(block):
        return
    one, two = block[at : at + 2]
    docstring = isinstance(one, ast.Expr) and isinstance(one.value, ast.Constant)
    if docstring or isinstance(one, DEFINED | LEAVES) or isinstance(two, DEFINED | LEAVES):
        return
    if _names(one, ast.Store) & _names(two) or _names(two, ast.Store) & _names(one):
        return
    if not (_is_plain(one) and _is_plain(two)):
        yield _with(block, at, two, one, span=2)


def _names(node: ast.AST, context: type[ast.expr_context] = ast.expr_context) -> set[str]:
    return {one.id for one in ast.walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, context)}


def _is_plain(node: ast.stmt) -> bool:
    """An assignment that calls nothing: beside another one its place does not matter."""
    return isinstance(node, ast.Assign | ast.AnnAssign) and not _has(node, ast.Call | ast.Await | ast.Yield)


def _has(node: ast.AST, types: UnionType) -> bool:
    return any(isinstance(one, types) for one in ast.walk(node))


def _late(block: Block, at: int) -> Iterator[Block]:
    """A value that is worked out where it is used, not where it was assigned."""
    match block[at]:
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            rest = ast.Module(block[at + 1 :], [])
            depends = any(
                isinstance(one, ast.Attribute | ast.Call | ast.Subscript) for one in ast.walk(value)
            )
            waits = any(isinstance(one, ast.Await | ast.Yield) for one in ast.walk(value))
            if depends and not waits and name in _names(rest) - _names(rest, ast.Store):
                used = [one for one in ast.walk(rest) if isinstance(one, ast.Name) and one.id == name]
                new = copy.deepcopy(rest, {id(one): value for one in used})
                yield [*block[:at], ast.Pass(), *new.body]


def _once(block: Block, at: int) -> Iterator[Block]:
    """A loop that ends behind its first turn."""
    node = block[at]
    if isinstance(node, ast.For | ast.AsyncFor | ast.While):
        new = copy.deepcopy(node)
        new.body.append(ast.Break())
        yield _with(block, at, new)


# what encloses statements


def _unguarded(block: Block, at: int) -> Iterator[Block]:
    """What a lock, a time-out or a suppression encloses, without it."""
    node = block[at]
    if isinstance(node, ast.With | ast.AsyncWith) and not any(one.optional_vars for one in node.items):
        yield _with(block, at, *node.body)


def _no_final(block: Block, at: int) -> Iterator[Block]:
    node = block[at]
    if isinstance(node, ast.Try) and node.finalbody:
        new = copy.deepcopy(node)
        new.finalbody = [ast.Pass()]
        yield _with(block, at, new)


def _caught(node: ast.stmt) -> Iterator[ast.expr]:
    """The types of exceptions that a statement catches or suppresses."""
    if isinstance(node, ast.Try):
        yield from (one.type for one in node.handlers if one.type is not None)
    elif isinstance(node, ast.With):
        for one in node.items:
            match one.context_expr:
                case ast.Call(func=ast.Name(id="suppress"), args=types):
                    yield from types


def _wider(block: Block, at: int) -> Iterator[Block]:
    """More is caught."""
    for old in _caught(block[at]):
        last = ast.unparse(old).rpartition(".")[2]
        if last != "BaseException":
            new = ast.Name(WIDER.get(last, "Exception"), ast.Load())
            yield _with(block, at, replaced(block[at], old, new))


def _narrower(block: Block, at: int) -> Iterator[Block]:
    """Less is caught, or nothing."""
    for old in _caught(block[at]):
        if isinstance(old, ast.Tuple):
            for one in old.elts:
                new: ast.expr = ast.Tuple([each for each in old.elts if each is not one], ast.Load())
                yield _with(block, at, replaced(block[at], old, new))
        else:
            new = ast.Name("Exception", ast.Load()) if ast.unparse(old) == "BaseException" else ast.Tuple([])
            yield _with(block, at, replaced(block[at], old, new))


OPERATORS: dict[str, Operator] = {
    "delete": _delete,
    "true": _always(True),
    "false": _always(False),
    "drop": _each(replacements.drop),
    "body": _each(replacements.body),
    "orelse": _each(replacements.orelse),
    "nofinal": _no_final,
    "negate": _negate,
    "andor": _each(replacements.and_or),
    "edge": _each(replacements.edge),
    "plus": _each(replacements.plus),
    "minus": _each(replacements.minus),
    "flip": _each(replacements.flip),
    "sibling": _each(replacements.sibling),
    "letters": _each(replacements.letters),
    "argument": _each(replacements.argument),
    "kept": _each(replacements.kept),
    "alias": _each(replacements.alias),
    "swap": _swap,
    "late": _late,
    "once": _once,
    "unguarded": _unguarded,
    "wider": _wider,
    "narrower": _narrower,
}
