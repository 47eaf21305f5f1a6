"""A node of the Rust crate ``moleculer`` joins the embedded NATS server, answers a call, and calls.

More than that has no adapter: the crate cannot be stopped, tells nobody that it has joined or could not connect
(it panics in a task of its own), announces no service that is added later, and takes only function pointers as
callbacks. What its calls make of failures is below.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from fakebrokers import Moleculer
from fakebrokers.moleculer.faults import lost

PROGRAM = Path(__file__).parent / "rust_node" / "build" / "debug" / "rust-node"
