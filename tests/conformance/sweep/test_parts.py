"""Messages of several parts with other parts."""

from __future__ import annotations

import pytest

from conformance.sweep.acts.parts import with_parts
from conformance.sweep.run import runner
from conformance.sweep.specs import Spec
from conformance.sweep.universe import singles

PARTS = (b"a", b"", b"c")


@pytest.mark.parametrize(
    ("how", "at", "wanted"),
    [
        ("without", 1, (b"a", b"c")),
        ("twice", 0, (b"a", b"a", b"", b"c")),
        ("blank before", 2, (b"a", b"", b"", b"c")),
        ("more before", 1, (b"a", b"more", b"", b"c")),
        ("longer", 2, (b"a", b"", b"c\x00")),
        ("zero", 0, (b"0", b"", b"c")),
        ("empty", 2, (b"a", b"", b"")),
    ],
)
def test_a_change_at_one_part(how: str, at: int, wanted: tuple[bytes, ...]) -> None:
    assert with_parts(PARTS, how, at) == wanted


def test_the_act_has_its_places_where_messages_have_parts() -> None:
    case = runner("pzq")(Spec("pzq", "waited"))
    assert "part" in {item.spec.bends[0].act for item in singles(case)}
