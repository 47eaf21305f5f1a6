"""``fakebrokers journal``: runs as lines, and in formats that others read."""

from __future__ import annotations

import json
import shutil
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest

from fakebrokers import Moleculer
from fakebrokers.cli import main
from fakebrokers.faults import drop
from fakebrokers.journal import RunJournal
from fakebrokers.journal.pcapng import Address, segment
from fakebrokers.journal.reader import read_run
from tests.eventually import PATIENCE_S, eventually

CONNECT = b'CONNECT {"verbose":false,"user":"bob","pass":"secret"}\r\n'
PUB = b"PUB orders 3\r\ntea\r\n"


def ran(capfd: pytest.CaptureFixture[str], *args: str, code: int = 0) -> str:
    """What ``fakebrokers journal`` prints."""
    with pytest.raises(SystemExit) as left:
        main(["journal", *args])
    printed = capfd.readouterr()
    assert int(left.value.code or 0) == code, printed.err
    return printed.out + printed.err


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """The journal of a NATS server: a client publishes, asks for a PONG that a fault takes, and leaves."""
    with (
        Moleculer(transporter="nats", journal_dir=tmp_path, journal_frames=True) as server,
        socket.create_connection((server.host, server.port), timeout=PATIENCE_S) as client,
    ):
        client.sendall(CONNECT + PUB + b"PING\r\n")
        while b"PONG" not in client.recv(4096):
            pass
        server.faults.add(drop(kind="NatsPong", name="no pong"))
        client.sendall(b"PING\r\n")
        server.wait_for(kind="NatsPing", count=2)
        client.close()
        eventually(lambda: server.journal.select(kind="closed"))
    return tmp_path


def test_runs_are_shown_as_lines(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    lines = ran(capfd, "show", str(folder)).splitlines()
    assert lines[0].startswith("moleculer-") and "moleculer real" in lines[0]
    [pub] = [line.split() for line in lines if " Pub " in line]
    assert pub[1:] == ["c1", "->", "Pub", "key", "orders", "19", "B"]
    assert any("NatsPong" in line and "[fault: no pong]" in line for line in lines)
    assert not any("secret" in line for line in lines)


@pytest.mark.parametrize(
    ("filters", "kinds"),
    [
        (["--kind", "NatsPing"], {"NatsPing"}),
        (["--role", "handshake"], {"ServerInfo", "Connect"}),
        (["--faults"], {"NatsPong"}),
        (["--connection", "c1", "--last", "1"], {"closed"}),
        (["--connection", "c9"], set()),
    ],
)
def test_what_is_shown_can_be_chosen(
    folder: Path, capfd: pytest.CaptureFixture[str], filters: list[str], kinds: set[str]
) -> None:
    lines = ran(capfd, "show", str(folder), *filters).splitlines()[1:]
    assert {line.split()[3] for line in lines} == kinds


def test_one_run_of_several_is_chosen_by_name(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for name in ("first", "second", "second"):
        with_op(tmp_path, name).close()
    assert len(ran(capfd, "show", str(tmp_path)).splitlines()) == 6
    lines = ran(capfd, "show", str(tmp_path / "second")).splitlines()
    assert len(lines) == 4 and all("second" in line or "publish ok" in line for line in lines)
    [one] = tmp_path.glob("first*.ops")
    assert ran(capfd, "show", str(one)) == ran(capfd, "show", str(tmp_path / one.stem))
    assert "did you mean 'first'" in ran(capfd, "show", str(tmp_path / "frist"), code=64)
    assert "found no runs there" in ran(capfd, "show", str(tmp_path / "x" / "y"), code=64)


def with_op(folder: Path, name: str) -> RunJournal:
    written = RunJournal(folder, name)
    written.op(1.0, "p", 1, "publish", "ok", key="q", value="a", offset=3)
    return written


def test_a_run_that_is_still_being_written_is_shown_as_far_as_it_is(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    written = with_op(tmp_path, "open")
    lines = ran(capfd, "show", str(tmp_path)).splitlines()
    written.close()
    assert "(not ended, or still being written)" in lines[0]
    assert lines[1] == "   0.0000    p == publish ok key q value a offset 3"


def test_sealed_runs_are_shown_like_others(folder: Path, capfd: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("pyarrow", reason="missing: pyarrow (pip install pyarrow)")
    from fakebrokers.journal.seal import seal

    before = ran(capfd, "show", str(folder))
    seal(folder)
    assert ran(capfd, "show", str(folder)) == before


def test_json_lines_have_every_row(folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    rows = [json.loads(line) for line in ran(capfd, "export", str(folder)).splitlines()]
    [run] = {path.stem for path in folder.glob("*.wire")}
    log = read_run(folder, run)
    assert [row["table"] for row in rows] == ["runs", *["frames"] * len(log.frames)]
    assert [row["kind"] for row in rows[1:]] == [row.kind for row in log.frames]
    assert {row["run"] for row in rows} == {run}


def test_parquet_is_a_file_for_each_table(
    folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("pyarrow", reason="missing: pyarrow (pip install pyarrow)")
    import pyarrow.parquet as pq

    assert "--out" in ran(capfd, "export", str(folder), "--format", "parquet", code=64)
    ran(capfd, "export", str(folder), "--format", "parquet", "--out", str(tmp_path / "tables"))
    tables = {path.stem: pq.read_table(path) for path in (tmp_path / "tables").iterdir()}
    assert set(tables) == {"runs", "frames", "ops", "metrics", "trace"}
    assert "Pub" in tables["frames"]["kind"].to_pylist()
    assert list(folder.glob("*.wire")), "what is exported stays as it is"


class Packet(NamedTuple):
    """One of a capture."""

    at_ns: int
    source: int
    target: int
    seq: int
    flags: int
    payload: bytes
    comment: str


def packets(capture: bytes) -> Iterator[Packet]:
    """The packets of a capture, read by the letter of the format."""
    at = 0
    while at < len(capture):
        kind, size = struct.unpack_from("<II", capture, at)
        assert struct.unpack_from("<I", capture, at + size - 4) == (size,) and size % 4 == 0
        if kind == 6:
            _, high, low, length, original = struct.unpack_from("<IIIII", capture, at + 8)
            assert length == original
            data = capture[at + 28 : at + 28 + length]
            options, comment = at + 28 + length + -length % 4, ""
            while (option := struct.unpack_from("<HH", capture, options))[0]:
                if option[0] == 1:
                    comment = capture[options + 4 : options + 4 + option[1]].decode()
                options += 4 + option[1] + -option[1] % 4
            assert data[0] == 0x45 and struct.unpack_from(">H", data, 2) == (length,)
            source, target, seq = struct.unpack_from(">HHI", data, 20)
            yield Packet((high << 32) + low, source, target, seq, data[33], data[40:], comment)
        at += size


def test_a_capture_has_the_bytes_and_what_they_mean(
    folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run.pcapng"
    ran(capfd, "export", str(folder), "--format", "pcapng", "--out", str(out))
    found = list(packets(out.read_bytes()))
    assert [packet.flags for packet in found[:3]] == [2, 18, 16]  # SYN, SYN and ACK, ACK
    said = [packet for packet in found if packet.target == 4222 and packet.payload]
    assert b"".join(packet.payload for packet in said[1:]) == PUB + b"PING\r\n" * 2
    assert b"secret" not in out.read_bytes()
    assert len(said[0].payload) == len(CONNECT), "credentials are blotted out; the size stays"
    assert [packet.comment.split()[3] for packet in said] == ["Connect", "Pub", "NatsPing", "NatsPing"]
    heard = [packet for packet in found if packet.source == 4222]
    assert b"".join(packet.payload for packet in heard).count(b"PONG\r\n") == 1
    [taken] = [packet for packet in heard if "no pong" in packet.comment]
    assert taken.payload == b"" and "said" in taken.comment
    assert any(packet.flags & 1 for packet in found), "the connection is closed"
    for port in {packet.source for packet in found}:
        mine = [packet for packet in found if packet.source == port]
        for one, other in pairwise(mine):
            assert other.seq == one.seq + len(one.payload) + bool(one.flags & 3)
    assert sorted(packet.at_ns for packet in found) == [packet.at_ns for packet in found]


def test_without_whole_frames_a_capture_has_their_sizes(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with (
        Moleculer(transporter="nats", journal_dir=tmp_path) as server,
        socket.create_connection((server.host, server.port), timeout=PATIENCE_S) as client,
    ):
        client.sendall(CONNECT + PUB)
        server.wait_for(kind="Pub")
    out = tmp_path / "run.pcapng"
    ran(capfd, "export", str(tmp_path), "--format", "pcapng", "--out", str(out))
    [packet] = [packet for packet in packets(out.read_bytes()) if " Pub " in packet.comment]
    assert packet.payload == bytes(len(PUB))
    assert "the journal has no bytes of this frame" in packet.comment


def test_checksums_are_those_of_the_standards() -> None:
    """RFC 1071: with its checksum, every packet's words add up to nothing."""
    for payload in (b"", b"abc", bytes(1000)):
        data = segment(Address("127.0.0.1", 40000), Address("10.1.2.3", 4222), 2**32 + 5, 7, 24, payload)
        pseudo = data[12:20] + struct.pack(">BBH", 0, 6, len(data) - 20)
        for covered in (data[:20], pseudo + data[20:]):
            assert int.from_bytes(covered + bytes(len(covered) % 2), "big") % 0xFFFF == 0


@pytest.mark.full
def test_wireshark_reads_it(folder: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    if shutil.which("tshark") is None:
        pytest.skip("missing: tshark (apt-get install tshark)")
    out = tmp_path / "run.pcapng"
    ran(capfd, "export", str(folder), "--format", "pcapng", "--out", str(out))
    told = subprocess.run(
        [
            *("tshark", "-r", str(out), "-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE"),
            *("-T", "fields", "-e", "tcp.dstport", "-e", "tcp.checksum.status", "-e", "ip.checksum.status"),
            *("-e", "tcp.analysis.flags", "-e", "tcp.payload", "-e", "frame.comment"),
        ],
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE_S,
    )
    rows = [line.split("\t") for line in told.stdout.splitlines()]
    assert {(row[1], row[2]) for row in rows} == {("1", "1")}  # good
    assert any(row[4] == PUB.hex() and "Pub" in row[5] for row in rows)


def test_a_capture_can_be_piped(folder: Path, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "fakebrokers", "journal", "export", str(folder), "--format", "pcapng"]
    done = subprocess.run(command, capture_output=True, check=True, timeout=PATIENCE_S)
    assert PUB in [packet.payload for packet in packets(done.stdout)]
    assert done.stderr == b""
