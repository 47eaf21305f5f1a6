"""``fakebrokers compare``: the same commands to a fake and to a real server."""

from __future__ import annotations

import click
import msgspec
from rich.console import Console
from rich.table import Table
from rich.text import Text

from conformance.compare.compare import Comparer, Comparison, Difference, fake_for, target_of
from conformance.printing import console_for_all, plain
from fakebrokers.commands import ExitCode
from fakebrokers.protocol import find_protocol, protocol_names


class Seeds(click.ParamType[range]):
    """``7`` or ``1..300``, both ends included."""

    name = "A..B"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> range:
        """The seeds."""
        if isinstance(value, range):
            return value
        first, mark, last = str(value).partition("..")
        try:
            found = range(int(first), int(last if mark else first) + 1)
        except ValueError:
            found = range(0)
        if not found:
            self.fail(f"expected a number or a range such as 1..50, got {value!r}", param, ctx)
        return found


@click.command("compare")
@click.option("--protocol", type=click.Choice(protocol_names()), required=True)
@click.option(
    "--target",
    metavar="URL",
    required=True,
    help="The real server, a URL such as nats://127.0.0.1:4222, or HOST:PORT.",
)
@click.option(
    "--profile", default="real", show_default=True, help="What the fake is: that of the server's version."
)
@click.option("--seeds", type=Seeds(), default="1..50", show_default=True, help="Of the sequences.")
@click.option(
    "--real-delays/--no-real-delays",
    default=True,
    show_default=True,
    help="Let the fake be as slow as the server where that is so on purpose (failed logins).",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document and nothing else.")
def compare_command(
    protocol: str, target: str, profile: str, seeds: range, real_delays: bool, as_json: bool
) -> int:
    """Show where a fake and a real server answer differently.

    Both get the same commands.

    The sequences use names of their own and leave nothing that others would see; still, do not
    choose a server that is needed.

    Exit code 1: there is a difference that is not known. 3: the server cannot be reached.
    """
    found = find_protocol(protocol)
    where = target_of(found, target)
    dialect = found.wire(where.wire).load_dialect()
    console = console_for_all(stderr=True)
    with fake_for(found, where, profile, real_delays=real_delays) as fake:
        comparer = Comparer(dialect, (fake.host, fake.port), where.address, where.login)
        try:
            result = comparer.run(seeds)
        except OSError as error:
            console.print(f"{where.address[0]}:{where.address[1]}: {error}", style="red", markup=False)
            return ExitCode.HARNESS
    if as_json:
        click.echo(msgspec.json.format(msgspec.json.encode(result), indent=1).decode())
    else:
        show(console_for_all(), result)
    return ExitCode.FAILED if result.unknown else ExitCode.OK


def show(console: Console, result: Comparison) -> None:
    """A table of differences, those that nobody knows of first; equal ones once."""
    if result.differences:
        table = Table(pad_edge=False, box=None)
        for name in ("seed", "commands", "fake", "real", "known"):
            table.add_column(name, overflow="fold")
        for found, times in _grouped(result):
            cells = (
                f"{found.seed}" + (f" (+{times - 1})" if times > 1 else ""),
                "\n".join(plain(text) for text in found.commands),
                plain(found.fake),
                plain(found.real),
                found.known,
            )
            table.add_row(*map(Text, cells), style="dim" if found.known else "")
        console.print(table)
    unknown = len(result.unknown)
    console.print(
        f"{result.sequences} sequences, {result.commands} commands: {len(result.differences)} differ, "
        f"{unknown} of them for no known reason"
    )


def _grouped(result: Comparison) -> list[tuple[Difference, int]]:
    groups: dict[tuple[str, ...], list[Difference]] = {}
    for each in sorted(result.differences, key=lambda found: (bool(found.known), len(found.commands))):
        groups.setdefault((each.known,) if each.known else (each.fake, each.real), []).append(each)
    return [(group[0], len(group)) for group in groups.values()]
