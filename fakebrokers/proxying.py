"""``fakebrokers proxy``: a proxy in front of a server, and Toxiproxy's API to control it."""

from __future__ import annotations

import warnings
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any

import click

from fakebrokers.serving import controlled, told_to_end, wait

#: Toxiproxy's own.
API_PORT = 8474

_port = click.IntRange(0, 65535)


@click.command()
@click.argument("upstream")
@click.option("--host", default="127.0.0.1", show_default=True, help="Address to listen on.")
@click.option(
    "--port", type=_port, default=0, metavar="N|0", help="For clients; 0, unless given: any free one."
)
@click.option(
    "--api",
    type=_port,
    default=API_PORT,
    show_default=True,
    metavar="PORT|0",
    help="Of Toxiproxy's API; 0: any free one.",
)
@click.option("--name", default="proxy", show_default=True, help="Of this proxy in both APIs.")
@click.option("--protocol", metavar="P", default="", help="Read the frames of this protocol.")
@click.option("--transporter", metavar="NAME", default="", help="Which of its wires.")
@click.option(
    "--faults",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="What to break, and when: a plan, TOML or JSON.",
)
@click.option(
    "--seed",
    type=int,
    metavar="N",
    help="Seed of the faults' random decisions; goes before that of the plan.",
)
@click.option(
    "--journal",
    type=click.Path(file_okay=False, path_type=Path),
    metavar="DIR",
    help="Record every frame in this folder.",
)
@click.option(
    "--journal-frames",
    is_flag=True,
    help="Record all fields of each frame, bodies too: 'journal export' turns them into bytes again.",
)
@click.option(
    "--record",
    type=click.Path(dir_okay=False, path_type=Path),
    metavar="FILE",
    help="Write a session that 'serve --replay FILE' repeats; needs --protocol.",
)
@click.option(
    "--readdress/--no-readdress",
    default=True,
    help="Replace the server's address by the proxy's where the server sends it; needs --protocol.",
)
@click.option(
    "--advertise", metavar="HOST", help="Host that clients get for it; that of --host if not given."
)
@click.option(
    "--control",
    type=_port,
    metavar="PORT|0",
    help="Serve the control API too, on this port of the loopback interface (0: any free one).",
)
def proxy(
    upstream: str,
    host: str,
    port: int,
    api: int,
    name: str,
    seed: int | None,
    control: int | None,
    **given: Any,
) -> int:
    """Forward traffic to a real server, with faults on the way.

    UPSTREAM is the server, host:port.

    Toxiproxy's clients control it on --api. As soon as it accepts connections it prints one line: READY, the
    protocol (or 'proxy'), the address for clients, and name=url for each further address.
    """
    from fakebrokers.control.brokers import Brokers
    from fakebrokers.proxy.api import ToxiproxyApi
    from fakebrokers.proxy.control import ApiError
    from fakebrokers.proxy.server import Proxy

    reads = {
        "protocol": given["protocol"],
        "wire": given["transporter"],
        "readdress": given["readdress"],
        "advertised_host": given["advertise"],
    }
    make = partial(Proxy, **reads)
    own = partial(
        make,
        faults=given["faults"],
        journal_dir=given["journal"],
        journal_frames=given["journal_frames"],
        record=given["record"],
        seed=seed,
    )
    if given["journal_frames"] and given["journal"] is None:
        raise click.BadOptionUsage("--journal-frames", "--journal-frames needs --journal DIR")
    if given["record"] is not None and not given["record"].absolute().parent.is_dir():
        raise click.BadOptionUsage("--record", f"--record: there is no folder {given['record'].parent}")
    own(upstream)  # what makes no sense is refused before anything listens
    asked_to_end = told_to_end()
    with ExitStack() as stack:
        try:
            service = stack.enter_context(ToxiproxyApi(port=api, seed=seed or 0, make=make))
        except OSError as error:
            raise click.ClickException(f"cannot listen: {error}. --api 0 takes any free port") from None
        try:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                managed = service.add(name, f"{host}:{port}", upstream, own)
        except ApiError as error:
            raise click.ClickException(f"{error}. --port 0 takes any free port") from None
        for warning in caught:
            click.echo(f"warning: {warning.message}", err=True)
        assert managed.proxy is not None
        brokers = Brokers(host)
        brokers.adopt(name, managed.proxy)
        words = ["READY", given["protocol"] or "proxy", managed.proxy.url, f"api={service.url}"]
        if control is not None:
            words.append(f"control={controlled(brokers, control, stack)}")
        click.echo(" ".join(words))
        return wait(asked_to_end, brokers)
