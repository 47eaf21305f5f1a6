"""What a script tries, above the script: requirement, fault and pass criterion, from the catalogue.

The catalogue is the source, from which the docstrings of the scripts are written.
"""

from __future__ import annotations

import ast
import inspect
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from textwrap import wrap

from conformance.suite.catalogue import Requirement, fault_of
from conformance.suite.load import all_scenarios
from conformance.suite.scenario import Script, declared

WIDTH = 110
INDENT = 4


def sentences(item: Requirement, protocol: str = "") -> str:
    """The docstring of the script for a requirement, as `inspect.getdoc` returns it.

    Args:
        protocol: The script is for this one of several protocols.
    """
    title = item.title if item.title[-1] in ".?!" else f"{item.title}."
    parts = [_wrapped(title), "", _wrapped(f"Fault: {fault_of(item, protocol)}")]
    return "\n".join([*parts, _wrapped(f"Pass: {item.passes}")])


def _wrapped(text: str) -> str:
    lines = wrap(text, WIDTH - INDENT, break_long_words=False, break_on_hyphens=False)
    return "\n".join(lines)


def docstrings() -> Mapping[Script, str]:
    """All scripts, each with its docstring."""
    all_scenarios()
    return {script: sentences(item, protocol) for script, item, protocol in declared()}


def rewritten(source: str, wanted: Mapping[str, str]) -> str:
    """The text of a module in which these functions, by name, have these docstrings."""
    lines = source.splitlines(keepends=True)
    for node in reversed(ast.parse(source).body):
        if not isinstance(node, ast.AsyncFunctionDef) or node.name not in wanted:
            continue
        told = node.body[0] if ast.get_docstring(node) is not None else None
        begin = told.lineno - 1 if told else (node.returns or node.args.args[-1]).end_lineno
        end = told.end_lineno if told else begin
        text = wanted[node.name].replace("\\", "\\\\").replace('"""', '\\"\\"\\"')
        indented = "\n".join(f"{' ' * INDENT}{line}".rstrip() for line in text.splitlines())
        lines[begin:end] = [f'{" " * INDENT}"""{indented[INDENT:]}\n{" " * INDENT}"""\n']
    return "".join(lines)


def modules() -> Mapping[Path, Mapping[str, str]]:
    """The docstrings by module, and by the name of the script."""
    places: defaultdict[Path, dict[str, str]] = defaultdict(dict)
    for script, text in docstrings().items():
        places[Path(inspect.getsourcefile(script) or "")][script.__name__] = text
    return places
