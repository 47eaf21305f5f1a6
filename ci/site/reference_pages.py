"""Reference pages that are written from the program: command line, exit codes, control API, journal."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from inspect import getsource
from pathlib import Path
from typing import Any

import click

from fakebrokers.cli import cli
from fakebrokers.commands import ExitCode
from fakebrokers.control.openapi import document
from fakebrokers.protocol import protocols

TOP = Path(__file__).parents[2]
WIDTH = 96  #: columns of a help text


def command_line() -> str:
    """All commands with their options."""
    lines = ["# Command line", "", "What `fakebrokers COMMAND --help` prints.", ""]
    for path, command in _commands(cli, ("fakebrokers",)):
        context = click.Context(command, info_name=path, terminal_width=WIDTH, max_content_width=WIDTH)
        lines += [f"## {path}", "", "```text", _help(command, context), "```", ""]
    return "\n".join(lines)


def _help(command: click.Command, context: click.Context) -> str:
    return "\n".join(line.rstrip() for line in command.get_help(context).splitlines())


def _commands(command: click.Command, path: tuple[str, ...]) -> Iterator[tuple[str, click.Command]]:
    yield " ".join(path), command
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            if found is not None:
                yield from _commands(found, (*path, name))


def exit_codes() -> str:
    """The exit codes, with the comments beside them in the code."""
    said = dict(re.findall(r"^    (\w+) = \d+  #: (.+)$", getsource(ExitCode), re.MULTILINE))
    rows = [f"| {code.value} | {said[code.name]} |" for code in ExitCode]
    return "\n".join(
        [
            "# Exit codes",
            "",
            "All commands share them. Of several that apply, the first of 64, 3, 1, 2, 4 is given.",
            "",
            "| code | |",
            "| --- | --- |",
            *rows,
            "| 130, 143 | interrupted by SIGINT or SIGTERM; what had ended is in the report |",
            "",
            "`replay` ends with 1 if the schedule fails again, 0 if not, 2 if the run was another one;",
            "`simulate` with 1 if a run failed, 2 if a seed did not repeat.",
            "",
        ]
    )


def control_api() -> str:
    """Paths of the control API, and the operations of each protocol's brokers."""
    lines = [
        "# Control API: all paths",
        "",
        "From the document of `GET /openapi.json`. [The control API](../control.md) leads through it.",
        "",
    ]
    common = _operations("")
    shared = set.intersection(*(set(_operations(each.name)) for each in protocols()))
    lines += ["## For every protocol", "", *_table({key: common[key] for key in common if key in shared})]
    for protocol in protocols():
        own = {key: row for key, row in _operations(protocol.name).items() if key not in shared}
        lines += [f"## {protocol.name}", "", *_table(own)]
    return "\n".join(lines)


def _operations(protocol: str) -> dict[tuple[str, str], tuple[str, str]]:
    """Path and method to the members of a request and one sentence."""
    found = document(protocol, "http://127.0.0.1:9090")
    schemas = found["components"]["schemas"]
    return {
        (path, method): (_members(row, schemas), str(row.get("summary", "")).replace("``", "`"))
        for path, methods in found["paths"].items()
        for method, row in methods.items()
    }


def _members(row: dict[str, Any], schemas: dict[str, Any]) -> str:
    """Names of the arguments; a question mark after those that may be left out."""
    named = [each["name"] + "?" for each in row.get("parameters", ()) if each["in"] == "query"]
    body = row.get("requestBody", {}).get("content", {}).get("application/json", {}).get("schema", {})
    schema = schemas.get(body.get("$ref", "").rpartition("/")[2], body)
    required = schema.get("required", ())
    named += [name if name in required else f"{name}?" for name in schema.get("properties", ())]
    return ", ".join(f"`{name}`" for name in named)


def _table(operations: dict[tuple[str, str], tuple[str, str]]) -> list[str]:
    rows = [
        f"| `{method.upper()} {path.replace('/brokers/{broker}', '/brokers/B')}` | {members} | {summary} |"
        for (path, method), (members, summary) in operations.items()
        if method != "get"
        or summary != operations.get((path, "post"), ("", ""))[1]  # the same, for what only reads
    ]
    return ["| path | arguments | |", "| --- | --- | --- |", *rows, ""]


def journal() -> str:
    """The journal's own text, and its columns."""
    text = (TOP / "fakebrokers" / "journal" / "SCHEMA.md").read_text(encoding="utf-8")
    schema = json.loads((TOP / "fakebrokers" / "journal" / "schema.json").read_text(encoding="utf-8"))
    lines = [text, "## Columns", ""]
    for table, rows in schema["properties"].items():
        row = schema["$defs"][rows["items"]["$ref"].rpartition("/")[2]]
        said = dict(re.findall(r"^ +(\w+): (.*(?:\n {12,}.*)*)", row.get("description", ""), re.MULTILINE))
        lines += [f"### {table}", "", "| column | type | |", "| --- | --- | --- |"]
        for name, kind in row["properties"].items():
            about = re.sub(r"\s+", " ", said.get(name, "")).replace("``", "`").replace("|", "\\|")
            lines.append(f"| `{name}` | {_type(kind)} | {about} |")
        lines.append("")
    return "\n".join(lines)


def _type(kind: dict[str, Any]) -> str:
    if "anyOf" in kind:
        return " or ".join(_type(each) for each in kind["anyOf"])
    if kind.get("type") == "array":
        return f"list of {_type(kind.get('items', {}))}"
    return str(kind.get("format") or kind.get("type") or "any")
