"""INFO as a real nats-server says it, by how it was started: ``vectors/nats-server-info.jsonl``.

    python -m tests.nats.infos

records it anew, with the nats-server on the PATH.
"""

from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from fakebrokers.core.tls import Tls
from tests.nats.layouts import END
from tests.nats.recorded import PATIENCE_S
from tests.real_buses import HOST, free_port, wait_for

FILE = Path(__file__).with_name("vectors") / "nats-server-info.jsonl"
NKEY = "UAB2CB576PHBBPQ5ODORRZ2LYCMWPZGWGCN2KDK7DXOIMZASKUY3RLKK"  #: of a user

#: What the configuration of a server says, and the options of a fake, by name.
MODES: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "alone": ("", {}),
    "a token": ('authorization { token: "t" }', {"token": "t"}),
    "a user": ('authorization { user: "u", password: "p" }', {"user": "u", "password": "p"}),
    "an nkey": ("authorization { users: [ { nkey: NKEY } ] }", {"nkeys": [NKEY]}),
    "TLS": ('tls { cert_file: "CERTIFICATE", key_file: "KEYFILE" }', {"tls": True}),
    "two servers": ('cluster { name: c, listen: "OWN", routes: ["nats://OTHER"] }', {"nodes": 2}),
}
LOCKED = ("a token", "a user", "an nkey", "TLS")  #: modes in which nobody says anything
NEWS = b'CONNECT {"protocol":1,"verbose":false}\r\nPING\r\n'


def infos() -> Iterator[tuple[str, int, list[dict[str, Any]]]]:
    """By mode: the port of the server that tells, what it says first, and in lame duck mode."""
    with tempfile.TemporaryDirectory() as folder:
        tls = Tls(HOST)
        certificate, key = tls.client_certificate("server")
        words = {"NKEY": NKEY, "CERTIFICATE": str(certificate), "KEYFILE": str(key)}
        routes = [f"{HOST}:{free_port()}" for _ in range(2)]
        for mode, (settings, options) in MODES.items():
            with ExitStack() as stack:
                servers = []
                for number in range(options.get("nodes", 1)):
                    text = settings
                    for word, value in {**words, "OWN": routes[number], "OTHER": routes[1 - number]}.items():
                        text = text.replace(word, value)
                    servers.append(stack.enter_context(_server(text, Path(folder))))
                port, process = servers[0]
                while len(_first(port).get("connect_urls", "?")) < len(servers):
                    pass  # they do not know each other yet
                yield mode, port, [_first(port)] if mode in LOCKED else _until_it_goes(port, process)


@contextmanager
def _server(settings: str, folder: Path) -> Iterator[tuple[int, subprocess.Popen[bytes]]]:
    port = free_port()
    file = folder / f"{port}.conf"
    file.write_text(f'listen: "{HOST}:{port}"\n{settings}\n', "utf-8")
    command = ["nats-server", "-c", str(file)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        try:
            wait_for(port, command[0])
            yield port, process
        finally:
            process.kill()


def _first(port: int) -> dict[str, Any]:
    with socket.create_connection((HOST, port), PATIENCE_S) as client, client.makefile("rb") as lines:
        return _options(lines.readline())


def _until_it_goes(port: int, process: subprocess.Popen[bytes]) -> list[dict[str, Any]]:
    """Its INFO, and the next one, which comes when it is about to go."""
    with socket.create_connection((HOST, port), PATIENCE_S) as client, client.makefile("rb") as lines:
        found = [_options(lines.readline())]
        client.sendall(NEWS)
        while lines.readline() != b"PONG\r\n":  # before that it says no news
            pass
        process.send_signal(signal.SIGUSR2)
        return [*found, _options(lines.readline())]


def _options(line: bytes) -> dict[str, Any]:
    assert line.startswith(b"INFO ") and line.endswith(END)
    found: dict[str, Any] = json.loads(line[5:])
    return found


def recorded() -> list[dict[str, Any]]:
    """The rows: mode, port, and what was said."""
    return [json.loads(row) for row in FILE.read_text("utf-8").splitlines()]


def record() -> None:
    """Write the file."""
    found = [{"mode": mode, "port": port, "infos": said} for mode, port, said in infos()]
    FILE.write_text("".join([json.dumps(row) + "\n" for row in found]), "utf-8")


if __name__ == "__main__":
    sys.exit(record())
