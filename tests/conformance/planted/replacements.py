"""What can stand in place of an expression of a client: each function yields the variants of one."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import conformance.clients.reference

OPPOSITE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
    ast.Lt: ast.GtE,
    ast.GtE: ast.Lt,
    ast.Gt: ast.LtE,
    ast.LtE: ast.Gt,
}
NEIGHBOUR: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
}
SIBLING = {"min": "max", "max": "min", "any": "all", "all": "any"}
COPIES = ("tuple", "list", "dict", "set")
BUILTIN = {"get": 1, "pop": 1, "next": 1, "getattr": 2}  #: what these need at least


def expressions(node: ast.AST) -> Iterator[ast.AST]:
    """What a statement itself evaluates, without the statements in it."""
    for child in ast.iter_child_nodes(node):
        if not isinstance(child, ast.stmt | ast.ExceptHandler | ast.match_case):
            yield child
            yield from expressions(child)


def replaced(statement: ast.stmt, old: ast.AST, new: ast.AST) -> ast.stmt:
    """A copy of the statement in which `new` stands for `old`."""
    return copy.deepcopy(statement, {id(old): new})


# conditions


def conditions(node: ast.stmt) -> Iterator[ast.expr]:
    """The operands of all conditions of a statement."""
    for one in (node, *expressions(node)):
        match one:
            case ast.If(test=test) | ast.While(test=test) | ast.IfExp(test=test):
                yield from _operands(test)
            case ast.comprehension(ifs=tests):
                for test in tests:
                    yield from _operands(test)
            case ast.Return(value=ast.BoolOp() | ast.Compare() | ast.UnaryOp(op=ast.Not()) as test):
                yield from _operands(test)


def _operands(test: ast.expr) -> Iterator[ast.expr]:
    if isinstance(test, ast.BoolOp):
        for one in test.values:
            yield from _operands(one)
    else:
        yield test


def negated(test: ast.expr) -> ast.expr:
    """The opposite, without a ``not`` where that is possible."""
    match test:
        case ast.UnaryOp(op=ast.Not(), operand=operand):
            return operand
        case ast.Compare(left=left, ops=[op], comparators=right):
            return ast.Compare(left, [OPPOSITE[type(op)]()], right)
    return ast.UnaryOp(ast.Not(), test)


def drop(node: ast.AST) -> Iterator[ast.expr]:
    """Without one of its operands."""
    if isinstance(node, ast.BoolOp):
        for dropped in node.values:
            left = [each for each in node.values if each is not dropped]
            yield left[0] if len(left) == 1 else ast.BoolOp(node.op, left)


def and_or(node: ast.AST) -> Iterator[ast.expr]:
    """``or`` for ``and``, and the other way."""
    if isinstance(node, ast.BoolOp):
        yield ast.BoolOp(ast.Or() if isinstance(node.op, ast.And) else ast.And(), node.values)


def edge(node: ast.AST) -> Iterator[ast.expr]:
    """``<=`` for ``<``, and the like."""
    if isinstance(node, ast.Compare):
        for at, op in enumerate(node.ops):
            if type(op) in NEIGHBOUR:
                ops = [*node.ops[:at], NEIGHBOUR[type(op)](), *node.ops[at + 1 :]]
                yield ast.Compare(node.left, ops, node.comparators)


def body(node: ast.AST) -> Iterator[ast.expr]:
    """A conditional value, whatever its condition."""
    if isinstance(node, ast.IfExp):
        yield node.body


def orelse(node: ast.AST) -> Iterator[ast.expr]:
    """The other side of it."""
    if isinstance(node, ast.IfExp):
        yield node.orelse


# values


def _shifted(node: ast.AST, by: int) -> Iterator[ast.expr]:
    match node:
        case ast.Constant(value=bool()):
            return
        case ast.Constant(value=int() | float() as value):
            yield ast.Constant(value + by)


def plus(node: ast.AST) -> Iterator[ast.expr]:
    """A number and one."""
    return _shifted(node, 1)


def minus(node: ast.AST) -> Iterator[ast.expr]:
    """A number less one."""
    return _shifted(node, -1)


def flip(node: ast.AST) -> Iterator[ast.expr]:
    """``True`` for ``False``, and the other way."""
    match node:
        case ast.Constant(value=bool() as value):
            yield ast.Constant(not value)


# calls


def sibling(node: ast.AST) -> Iterator[ast.expr]:
    """``min`` for ``max``, ``any`` for ``all``."""
    match node:
        case ast.Call(func=ast.Name(id=name), args=args, keywords=keywords) if name in SIBLING:
            yield ast.Call(ast.Name(SIBLING[name], ast.Load()), args, keywords)


def letters(node: ast.AST) -> Iterator[ast.expr]:
    """What is counted in letters, not in bytes, or written in an encoding of one byte for each."""
    match node:
        case ast.Call(
            func=ast.Name(id="len") as count, args=[ast.Call(func=ast.Attribute(value=text, attr="encode"))]
        ):
            yield ast.Call(count, [text], [])
        case ast.Call(func=ast.Attribute(attr="encode") as encode, args=[], keywords=[]):
            yield ast.Call(encode, [ast.Constant("latin-1"), ast.Constant("replace")], [])


def argument(node: ast.AST) -> Iterator[ast.expr]:
    """A call without an argument that may have a default."""
    if not isinstance(node, ast.Call):
        return
    for dropped in node.keywords:
        if dropped.arg is not None:
            yield ast.Call(node.func, node.args, [one for one in node.keywords if one is not dropped])
    name = ast.unparse(node.func).rpartition(".")[2]
    if len(node.args) > _needed().get(name, len(node.args)):
        yield ast.Call(node.func, node.args[:-1], node.keywords)


@cache
def _needed() -> dict[str, int]:
    """How many arguments the functions of the reference clients need, at most, by their names."""
    needed: dict[str, int] = {}
    for folder in conformance.clients.reference.__path__:
        for path in sorted(Path(folder).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                    names = [one.arg for one in node.args.args if one.arg not in ("self", "cls")]
                    count = len(names) - len(node.args.defaults)
                    needed[node.name] = max(count, needed.get(node.name, 0))
    return needed | BUILTIN


def kept(node: ast.AST) -> Iterator[ast.expr]:
    """What is taken out of a collection stays in it."""
    match node:
        case ast.Call(func=ast.Attribute(value=of, attr="pop"), args=[key, default]):
            yield ast.Call(ast.Attribute(of, "get", ast.Load()), [key, default], [])
        case ast.Call(func=ast.Attribute(value=of, attr="pop"), args=[key]):
            yield ast.Subscript(of, key, ast.Load())
        case ast.Call(func=ast.Attribute(value=of, attr="pop" | "popleft" as end), args=[]):
            yield ast.Subscript(of, ast.Constant(-1 if end == "pop" else 0), ast.Load())


def alias(node: ast.AST) -> Iterator[ast.expr]:
    """The collection itself in place of a copy."""
    match node:
        case ast.Call(func=ast.Name(id=name), args=[of], keywords=[]) if name in COPIES:
            yield of
        case ast.Call(func=ast.Attribute(value=of, attr="copy"), args=[], keywords=[]):
            yield of
