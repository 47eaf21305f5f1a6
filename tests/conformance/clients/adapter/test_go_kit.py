"""The kit for Go: callbacks that return an error because a script ordered it."""

from __future__ import annotations

import json
import shutil
import subprocess
from importlib.resources import files
from pathlib import Path

import pytest

PROGRAM = """
package main

import "adapter/kit"

func main() {
	a := kit.New(kit.Facts{Adapter: "a", Library: "l", Version: "1", Protocols: []string{"pzq"},
		Caps: kit.Fields{"callback_raise": true}, Callbacks: []string{"message", "error"}})
	a.Op("subscribe", func(c *kit.Call) (any, error) { a.Subscribed(c); return nil, nil })
	a.Op("x.deliver", func(c *kit.Call) (any, error) {
		sub, err := a.Subscription(c.Args.Sub)
		if err != nil {
			return nil, err
		}
		return kit.Fields{"raised": sub.Deliver(kit.Message{}) != nil}, nil
	})
	a.Op("x.error", func(*kit.Call) (any, error) {
		return kit.Fields{"raised": a.Trip("error") != nil}, nil
	})
	a.Run()
}
"""
SUB = {"sub": "c1", "target": "q", "session": "s1"}
ARMED, UNKNOWN = {"armed": True}, {"armed": False}
RAISED, QUIET = {"raised": True}, {"raised": False}


@pytest.mark.full
@pytest.mark.skipif(shutil.which("go") is None, reason="missing: go")
def test_callbacks_end_with_an_error_where_it_is_ordered(tmp_path: Path) -> None:
    shutil.copytree(str(files("conformance.clients").joinpath("adapter/kits/go")), tmp_path / "kit")
    (tmp_path / "kit" / "go.mod").unlink()
    (tmp_path / "go.mod").write_text("module adapter\n\ngo 1.23\n")
    (tmp_path / "main.go").write_text(PROGRAM)
    subprocess.run(["go", "build", "-o", "program"], cwd=tmp_path, check=True)
    wanted = [
        ("subscribe", {**SUB, "on_message": {"mode": "event", "raise_on": [2]}}, {}),
        ("x.deliver", SUB, QUIET),
        ("x.deliver", SUB, RAISED),
        ("raise_next", {"callback": "message", "times": 1}, ARMED),
        ("x.deliver", SUB, RAISED),
        ("x.deliver", SUB, QUIET),
        ("raise_next", {"callback": "confirm"}, UNKNOWN),
        ("raise_next", {"callback": "error"}, ARMED),
        ("x.error", {}, RAISED),
        ("x.error", {}, QUIET),
    ]
    with subprocess.Popen([tmp_path / "program"], stdin=-1, stdout=-1, text=True) as program:
        assert program.stdin is not None
        assert program.stdout is not None
        for number, (op, args, result) in enumerate(wanted, 1):
            print(json.dumps({"id": number, "op": op, "args": args}), file=program.stdin, flush=True)
            line = json.loads(program.stdout.readline())
            while line.get("event") == "message":
                line = json.loads(program.stdout.readline())
            assert (line["id"], line["result"]) == (number, result), line
        program.stdin.close()
