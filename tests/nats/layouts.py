"""Golden vectors of NATS by the notes (docs/protocols/nats.md, 2 and 4): see `tests.examples`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from fakebrokers.nats import frames as f
from tests.examples import Example, Kind, Limit, Side, Vector, literal, record, vectors

ALL_BYTES = bytes(range(256))
LARGEST = 1 << 20  #: bytes of a payload that a server takes
LONGEST = 4096  #: bytes after a verb
END = b"\r\n"

WORDS = literal(
    {"a.b": b"a.b", "c.*.d": b"c.*.d", "_INBOX.x7.>": b"_INBOX.x7.>", "7": b"7"},
    one_letter=Example("a", b"a"),
    not_ASCII=Example("é.€", b"\xc3\xa9.\xe2\x82\xac"),
    not_UTF8=Example("\udcff\udc80", b"\xff\x80"),
    long=Example("x" * 300, b"x" * 300),
    like_a_number=Example("00", b"00"),
    like_a_verb=Example("PUB", b"PUB"),
)
_ABSENT = Example("", b"")
PERHAPS = Kind((WORDS.usual[1], _ABSENT), {"absent": _ABSENT, **WORDS.odd})
SIDS = literal({"7": b"7", "12": b"12"}, **{name.replace(" ", "_"): each for name, each in WORDS.odd.items()})
LIMITS = literal(
    {3: b"3", None: b""},
    zero=Example(0, b"0"),
    one=Example(1, b"1"),
    nine_digits=Example(999999999, b"999999999"),
    zeros_in_front=Example(7, b"000000007", False),
    ten_digits=Example(-1, b"1000000000", False),
    ten_digits_with_zeros=Example(-1, b"0000000007", False),
    no_number=Example(-1, b"x", False),
    negative=Example(-1, b"-1"),
)
PAYLOADS = literal(
    {b"hi": b"hi", b"\0": b"\0"},
    empty=Example(b"", b""),
    ends_of_lines=Example(b"\r\n\r\n", b"\r\n\r\n"),
    another_frame=Example(b"PING\r\nMSG a 1 1\r\n", b"PING\r\nMSG a 1 1\r\n"),
    every_byte=Example(ALL_BYTES, ALL_BYTES),
    six_digits=Example(b"x" * 100000, b"x" * 100000),
    largest=Example(b"\xff" * LARGEST, b"\xff" * LARGEST),
)
HEADERS = literal(
    {text: text for text in (b"NATS/1.0\r\n\r\n", b"NATS/1.0\r\nA: b\r\nA: c\r\n\r\n")},
    empty=Example(b"", b""),
    status=Example(b"NATS/1.0 503\r\n\r\n", b"NATS/1.0 503\r\n\r\n"),
    every_byte=Example(b"NATS/1.0\r\n" + ALL_BYTES, b"NATS/1.0\r\n" + ALL_BYTES),
)

#: JSON as it is written, and as others write it.
_VALUES: Mapping[str, tuple[Any, bytes]] = {
    "nothing": ({}, b"{}"),
    "true": ({"tls_required": True}, b'{"tls_required":true}'),
    "false": ({"headers": False}, b'{"headers":false}'),
    "null": ({"name": None}, b'{"name":null}'),
    "zero": ({"proto": 0}, b'{"proto":0}'),
    "below zero": ({"x": -1}, b'{"x":-1}'),
    "32 bits": ({"max_payload": 2**32 - 1, "y": -(2**31)}, b'{"max_payload":4294967295,"y":-2147483648}'),
    "64 bits": (
        {"client_id": 2**64 - 1, "y": -(2**63)},
        b'{"client_id":18446744073709551615,"y":-9223372036854775808}',
    ),
    "no whole number": ({"x": 0.5}, b'{"x":0.5}'),
    "no text": ({"name": ""}, b'{"name":""}'),
    "no name": ({"": 1}, b'{"":1}'),
    "not ASCII": ({"né": "€\U0001f600"}, '{"né":"€\U0001f600"}'.encode()),
    "escapes": ({"x": '"\\\n\t'}, rb'{"x":"\"\\\n\t"}'),
    "blanks": ({" a b ": "  c\td  ", "e": ["f  g"]}, b'{" a b ":"  c\\td  ","e":["f  g"]}'),
    "a slash": ({"x": "a/b<c>&'"}, b'{"x":"a/b<c>&\'"}'),
    "long": ({"n" * 300: "x" * 2000}, b'{"' + b"n" * 300 + b'":"' + b"x" * 2000 + b'"}'),
    "a list": ({"connect_urls": ["h:1", "i:2"], "none": []}, b'{"connect_urls":["h:1","i:2"],"none":[]}'),
    "an object": ({"x": {"y": {"z": [1]}}}, b'{"x":{"y":{"z":[1]}}}'),
    "order": ({"b": 1, "a": 2}, b'{"b":1,"a":2}'),
}
_OTHERWISE = {
    "other escapes": ({"x": "a/b<é\U0001f600"}, rb'{"x":"a\/b\u003c\u00e9\ud83d\ude00"}'),
    "space": ({"x": 1, "y": [2]}, b' { "x" : 1 ,\t"y":[ 2 ] }\t '),
    "exponent": ({"x": 1000.0}, b'{"x":1e3}'),
}
_USUAL = {
    "server": ({"server_id": "NA", "max_payload": 5}, b'{"server_id":"NA","max_payload":5}'),
    "client": ({"verbose": False, "lang": "go"}, b'{"verbose":false,"lang":"go"}'),
}


def _objects() -> Kind:
    odd = {name: Example(value, wire) for name, (value, wire) in _VALUES.items()}
    odd |= {name: Example(value, wire, False) for name, (value, wire) in _OTHERWISE.items()}
    return Kind(tuple([Example(value, wire) for value, wire in _USUAL.values()]), odd)


#: What of a CONNECT lets a client in (section 4).
LOGINS = ("user", "pass", "auth_token", "jwt", "nkey", "sig")


def _connects() -> Kind:
    """Options, and credentials after them."""
    plain = _objects()

    def without(each: Example) -> Example:
        return each._replace(value=f.Connect(options=each.value))

    def with_login(name: str) -> Example:
        frame = f.Connect(options={"verbose": True}, credentials={name: "é"})
        return Example(frame, b'{"verbose":true,"' + name.encode() + b'":"\xc3\xa9"}')

    all_of_them = {name: name.upper() for name in LOGINS}
    text = ",".join([f'"{name}":"{value}"' for name, value in all_of_them.items()])
    odd = {name: without(each) for name, each in plain.odd.items()}
    odd |= {f"login {name}": with_login(name) for name in LOGINS}
    odd["a login with blanks"] = Example(f.Connect({}, {"pass": " a  b "}), b'{"pass":" a  b "}')
    odd["all logins"] = Example(f.Connect({}, all_of_them), b"{" + text.encode() + b"}")
    odd["a login in front"] = Example(
        f.Connect({"x": 1}, {"user": "u", "pass": ""}), b'{"user":"u","x":1,"pass":""}', False
    )
    odd["a login that is no text"] = Example(
        f.Connect({}, {"user": None, "pass": 5}), b'{"user":null,"pass":5}'
    )
    odd["a long login"] = Example(f.Connect({}, {"jwt": "x" * 600}), b'{"jwt":"' + b"x" * 600 + b'"}')
    return Kind(tuple(map(without, plain.usual)), odd)


TEXTS = literal(
    {"Stale Connection": b"'Stale Connection'", "Invalid Subject": b"'Invalid Subject'"},
    empty=Example("", b"''"),
    quotes=Example("Publish to \"a\" 'b'", b"'Publish to \"a\" 'b''"),
    quotes_alone=Example("''", b"''''"),
    blanks=Example(" a  b ", b"' a  b '"),
    not_ASCII=Example("é", b"'\xc3\xa9'"),
    not_UTF8=Example("\udcff", b"'\xff'"),
    long=Example("x" * 300, b"'" + b"x" * 300 + b"'"),
    no_quotes=Example("Stale", b"Stale", False),
)


def _line(*parts: bytes) -> bytes:
    """The words that are there, with a blank between them."""
    return b" ".join([part for part in parts if part]) + END


def _message(verb: bytes) -> Callable[[Mapping[str, bytes]], bytes]:
    """How many bytes follow; where there are headers, how many of them are headers in front of it."""

    def whole(parts: Mapping[str, bytes]) -> bytes:
        data = parts.get("headers", b"") + parts["payload"]
        sizes = [b"%d" % len(parts["headers"])] if "headers" in parts else []
        words = [parts[name] for name in ("subject", "sid", "reply") if name in parts]
        return _line(verb, *words, *sizes, b"%d" % len(data)) + data + END

    return whole


_PUBLISHED = {"subject": WORDS, "reply": PERHAPS, "payload": PAYLOADS}
_DELIVERED = {"subject": WORDS, "sid": SIDS, "reply": PERHAPS, "payload": PAYLOADS}
_WITH_HEADERS = {"headers": HEADERS}
MSG = record(f.Msg, _DELIVERED, _message(b"MSG"), twice=True)
HMSG = record(f.Hmsg, {**_DELIVERED, **_WITH_HEADERS}, _message(b"HMSG"), twice=True)
SUB = record(
    f.Sub,
    {"subject": WORDS, "queue": PERHAPS, "sid": SIDS},
    lambda parts: _line(b"SUB", *parts.values()),
    twice=True,
)
UNSUB = record(
    f.Unsub, {"sid": SIDS, "limit": LIMITS}, lambda parts: _line(b"UNSUB", *parts.values()), twice=True
)
PUB = record(f.Pub, _PUBLISHED, _message(b"PUB"), twice=True)
HPUB = record(f.Hpub, {**_PUBLISHED, **_WITH_HEADERS}, _message(b"HPUB"), twice=True)
INFO = record(f.Info, {"options": _objects()}, lambda parts: b"INFO " + parts["options"] + b" \r\n")
CONNECT = record(
    lambda connect: connect, {"connect": _connects()}, lambda parts: _line(b"CONNECT", parts["connect"])
)
ERR = record(f.Err, {"text": TEXTS}, lambda parts: _line(b"-ERR", parts["text"]))


def _alone(kind: type[Any], verb: bytes) -> Kind:
    return literal({kind(): verb + END})


FRAMES: tuple[tuple[str, Side, Kind], ...] = (
    ("CONNECT", "server", CONNECT),
    ("SUB", "server", SUB),
    ("UNSUB", "server", UNSUB),
    ("PUB", "server", PUB),
    ("HPUB", "server", HPUB),
    ("PING", "server", _alone(f.Ping, b"PING")),
    ("PONG", "server", _alone(f.Pong, b"PONG")),
    ("INFO", "client", INFO),
    ("MSG", "client", MSG),
    ("HMSG", "client", HMSG),
    ("+OK", "client", _alone(f.Ok, b"+OK")),
    ("-ERR", "client", ERR),
    ("PING", "client", _alone(f.Ping, b"PING")),
    ("PONG", "client", _alone(f.Pong, b"PONG")),
)


def _spelled_otherwise(name: str, reader: Side, each: Example) -> Iterator[Vector]:
    """Small letters in the verb, other space between words and after them."""
    line, end, payload = each.wire.partition(END)
    verb, blank, rest = line.partition(b" ")
    spellings = {
        "small letters": verb.lower() + blank + rest,
        "mixed letters": verb.capitalize() + blank + rest,
        "after it": line + b" \t",
    }
    if rest and name not in ("CONNECT", "INFO", "-ERR"):
        words = [verb, *rest.split(b" ")]
        spellings |= {"tabs": b"\t".join(words), "blanks": b"  \t ".join(words)}
    for label, spelled in spellings.items():
        yield Vector(f"{name}: {label}", reader, each.value, spelled + end + payload, False)


def by_the_notes() -> Iterator[Vector]:
    """All of them."""
    for name, reader, kind in FRAMES:
        yield from vectors(name, reader, kind)
        for each in kind.usual:
            yield from _spelled_otherwise(name, reader, each)


#: What fields have to be met with where their type says too much or too little.
_JSON = [value for value, _ in _VALUES.values()]
WANTED: Mapping[str, Any] = {
    "Unsub.limit": (None, -1, 0, 1, 3, 999999999),
    "Info.options": _JSON,
    "Connect.options": _JSON,
    "Connect.credentials": [{}, *[{name: "é"} for name in LOGINS], {name: name.upper() for name in LOGINS}],
}


def _sub(size: int) -> bytes:
    """A line with so many bytes after the verb, without its end."""
    return b"SUB " + b"x" * (size - 2) + b" 7"


#: With `LARGEST` and `LONGEST` as limits. The judge reads larger payloads, too.
LIMITED = (
    Limit("a line of the longest size", "server", _sub(LONGEST) + END, "frame", "frame"),
    Limit("a line that is too long", "server", _sub(LONGEST + 1) + END, "control-line", "unknown"),
    *[
        Limit(f"{line[:6].decode()}: {name}", "server", line % (b"x" * size) + END + data, codec, decoder)
        for line, most, data in (
            (b"SUB  \t %b 7", LONGEST - 2, b""),
            (b"SUB %b 7  ", LONGEST - 4, b""),
            (b"UNSUB %b", LONGEST, b""),
            (b"PUB %b 1", LONGEST - 2, b"x\r\n"),
            (b"HPUB %b 1 2", LONGEST - 4, b"xx\r\n"),
            (b'CONNECT {"x":"%b"}', LONGEST - 8, b""),
            (b'INFO {"x":"%b"}', LONGEST - 8, b""),
        )
        for name, size, codec, decoder in (
            ("longest", most, "frame", "frame"),
            ("too long", most + 1, "control-line", "unknown"),
        )
    ],
    *[
        Limit(
            f"{verb.decode()} with much after it",
            "server",
            verb + b" " + b"x" * 5000 + END,
            "frame",
            "frame",
        )
        for verb in (b"PING", b"PONG", b"+OK")
    ],
    Limit("a line that may end yet", "server", _sub(LONGEST) + b"\r", "waits", "waits"),
    Limit("a line that cannot end in time", "server", _sub(LONGEST + 1) + b"\r", "control-line", "waits"),
    Limit(
        "a line for a client, longest",
        "client",
        b"-ERR '" + b"x" * (LONGEST - 2) + b"'\r\n",
        "frame",
        "frame",
    ),
    Limit(
        "a line for a client, too long",
        "client",
        b"-ERR '" + b"x" * (LONGEST - 1) + b"'\r\n",
        "control-line",
        "unknown",
    ),
    Limit("a line without an end", "server", b"PUB " + b"x" * 65532, "control-line", "waits"),
    Limit("a line without any end", "server", b"PUB " + b"x" * 65533, "control-line", "garbage"),
    *[
        Limit(f"{verb}: {name}", reader, line % size + END + data, codec, decoder)
        for verb, reader, line in (
            ("PUB", "server", b"PUB a %d"),
            ("PUB with a reply", "server", b"PUB a b %d"),
            ("HPUB", "server", b"HPUB a 12 %d"),
            ("MSG", "client", b"MSG a 7 %d"),
            ("HMSG", "client", b"HMSG a 7 12 %d"),
        )
        for name, size, data, codec, decoder in (
            ("the largest", LARGEST, b"x" * LARGEST + END, "frame", "frame"),
            ("a byte short", LARGEST, b"x" * (LARGEST - 1) + END, "unknown", "waits"),
            ("a byte more", LARGEST, b"x" * (LARGEST + 1) + END, "unknown", "garbage"),
            ("too large", LARGEST + 1, b"", "payload", "waits"),
            ("the largest that the judge reads", 64 << 20, b"", "payload", "waits"),
            ("larger than the judge reads", (64 << 20) + 1, b"", "payload", "garbage"),
            ("nine digits", 999999999, b"", "payload", "garbage"),
            ("ten digits", 1000000000, b"", "parse", "garbage"),
            ("below zero", -1, b"", "parse", "garbage"),
        )
    ],
    Limit("headers of all bytes", "server", b"HPUB a 2 2\r\nhi\r\n", "frame", "frame"),
    Limit("headers of more", "server", b"HPUB a 3 2\r\nhi\r\n", "parse", "unknown"),
    Limit("headers of all bytes for a client", "client", b"HMSG a 7 2 2\r\nhi\r\n", "frame", "frame"),
    Limit("headers of more for a client", "client", b"HMSG a 7 3 2\r\nhi\r\n", "parse", "unknown"),
    *[
        Limit(f"words: {line.decode()}", reader, line + b"\r\nhi\r\n", codec, decoder)
        for reader, line, codec, decoder in (
            ("server", b"SUB a", "parse", "unknown"),
            ("server", b"SUB a b 7 8", "parse", "unknown"),
            ("server", b"UNSUB 7 8 9", "parse", "unknown"),
            ("server", b"PUB 2", "parse", "unknown"),
            ("server", b"PUB a b c 2", "parse", "unknown"),
            ("server", b"HPUB a 2", "parse", "unknown"),
            ("server", b"HPUB a b c 0 2", "parse", "unknown"),
            ("client", b"MSG a 2", "parse", "unknown"),
            ("client", b"MSG a 7 b c 2", "parse", "unknown"),
            ("client", b"HMSG a 7 2", "parse", "unknown"),
            ("client", b"HMSG a 7 b c 0 2", "parse", "unknown"),
            ("server", b"MSG a 7 2", "unknown", "unknown"),
            ("server", b"-ERR 'x'", "parse", "unknown"),
            ("client", b"PUB a 2", "unknown", "unknown"),
            ("client", b"SUB a 7", "unknown", "unknown"),
            ("client", b'CONNECT {"x":1}', "unknown", "unknown"),
        )
    ],
)

#: Gaps of the table, and why they cannot be closed.
NEVER = {
    **{
        f"{kind}.{field}: empty": "a word has at least one letter"
        for kind, fields in {
            "Sub": ("subject", "sid"),
            "Unsub": ("sid",),
            "Pub": ("subject",),
            "Hpub": ("subject",),
            "Msg": ("subject", "sid"),
            "Hmsg": ("subject", "sid"),
        }.items()
        for field in fields
    },
}
