"""The guide's tables are those of the types."""

from __future__ import annotations

from inspect import cleandoc

import pytest

from conformance.clients.adapter.messages import Message
from conformance.clients.adapter.ops.events import EVENTS
from conformance.clients.adapter.profile import all_ops, capabilities, profiles
from conformance.clients.adapter.reference import GUIDE_FILE, guide
from conformance.clients.adapter.schema import reported, structs_in

GUIDE = GUIDE_FILE.read_text("utf-8")


def table(name: str) -> list[str]:
    return guide(f"<!-- written from the types: {name} -->\nold\n<!-- end -->").splitlines()[1:-1]


def test_the_guide_has_every_op_capability_and_protocol() -> None:
    for name in (*all_ops(), *capabilities(), *EVENTS):
        assert f"\n| `{name}` |" in GUIDE, name
    for name in profiles():
        assert f"<!-- written from the types: {name} -->" in GUIDE


def test_only_what_is_between_the_marks_is_written() -> None:
    text = "before\n<!-- written from the types: roles -->\nold\n<!-- end -->\nafter\n"
    written = guide(text)
    assert written.startswith("before\n<!-- written from the types: roles -->\n| protocol | roles |\n")
    assert written.endswith("|\n<!-- end -->\nafter\n")
    assert "old" not in written
    assert guide(written) == written


def test_a_table_that_nobody_can_write() -> None:
    with pytest.raises(KeyError, match="weather"):
        guide("<!-- written from the types: weather -->\n<!-- end -->")


@pytest.mark.parametrize(
    ("name", "cells"),
    [
        (
            "ops",
            ("`settle`", "●consumer, unless `settles` is `none`", "`how` (`ack`, `nack`, `ack_to`)", "`{}`"),
        ),
        (
            "ops",
            (
                "`next`",
                "`sub`, `max?` (`1`), `wait_ms?` (`0`)",
                "`messages`",
                "Take messages from the buffer",
            ),
        ),
        (
            "ops",
            ("`mode?` (`buffer`, `event`: `buffer` keeps them for `next`, `event` reports them at once)",),
        ),
        ("rabbitmq-stream", ("`publish_many`", "`subentry?` (`none`, `gzip`: one sub-entry batch)")),
        ("narconi", ("`base?` (URL; else the endpoint", "`project?` (else `test`)")),
        ("moleculer", ("`node`", "`id`, `available?`, `services?`", "A node as another one knows it.")),
        ("roles", ("`pzq`", "`publisher`, `consumer`, `monitor`")),
        ("capabilities", ("`sac`", "single active consumers (rabbitmq-stream)")),
    ],
)
def test_rows(name: str, cells: tuple[str, ...]) -> None:
    assert [row for row in table(name) if all(cell in row for cell in cells)]


def test_every_struct_is_described_and_describes_members_that_it_has() -> None:
    kinds = [*all_ops().values(), *(each.spec.result for each in all_ops().values()), *EVENTS.values()]
    for profile in profiles().values():
        kinds += [kind for each in profile.ops.values() for kind in (each, each.spec.result)]
    for kind in structs_in(kinds):
        about, members = reported(kind)
        assert about.endswith((".", ").")), kind
        named = {line.strip().partition(":")[0] for line in _attributes(kind)}
        assert named <= set(members), kind


def _attributes(kind: type) -> list[str]:
    lines = cleandoc(kind.__doc__ or "").partition("Attributes:\n")[2].splitlines()
    return [line for line in lines if line.startswith("    ") and not line.startswith("     ")]


def test_a_message_is_described_where_events_are() -> None:
    assert EVENTS["message"] is Message
    assert table("events")[2] == "| `message` | those of a message | A message that the application got. |"
