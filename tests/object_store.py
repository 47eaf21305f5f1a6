"""A server that speaks as much of S3 as Arrow's file system asks for, with everything in memory.

Objects are put (also in parts, and as copies), read by range, listed by prefix and removed. Whoever asks is
let in.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit
from xml.etree import ElementTree
from xml.sax.saxutils import escape

_WHEN = "2026-01-01T00:00:00.000Z"
_WHEN_HTTP = "Thu, 01 Jan 2026 00:00:00 GMT"


class Store(ThreadingHTTPServer):
    """The server.

    Attributes:
        objects: Content by ``bucket/key``.
        asked: Method and path of every request.
    """

    daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.buckets: set[str] = set()
        self.objects: dict[str, bytes] = {}
        self.parts: dict[str, dict[int, bytes]] = {}
        self.asked: list[str] = []

    def uri(self, path: str) -> str:
        """Of a place, with all that a client has to know."""
        port = self.server_address[1]
        return f"s3://key:secret@{path}?scheme=http&endpoint_override=127.0.0.1:{port}&region=us-east-1"


@contextmanager
def serving(bucket: str) -> Iterator[Store]:
    """A store with an empty bucket."""
    with Store() as store:
        store.buckets.add(bucket)
        thread = threading.Thread(target=store.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield store
        finally:
            store.shutdown()
            thread.join()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Store

    def log_message(self, *_: Any) -> None:
        pass

    def _asked(self) -> tuple[str, dict[str, str]]:
        """``bucket/key``, and what stands behind the question mark."""
        parts = urlsplit(self.path)
        self.server.asked.append(f"{self.command} {self.path}")
        query = {name: values[0] for name, values in parse_qs(parts.query, keep_blank_values=True).items()}
        return unquote(parts.path).lstrip("/"), query

    def _answer(self, status: int, body: bytes = b"", **headers: str) -> None:
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        if "Content_Length" not in headers:
            self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def _xml(self, body: str, status: int = 200) -> None:
        document = '<?xml version="1.0" encoding="UTF-8"?>\n' + body
        self._answer(status, document.encode(), Content_Type="application/xml")

    def _missing(self, code: str) -> None:
        self._xml(f"<Error><Code>{code}</Code><Message>{code}</Message></Error>", 404)

    def _body(self) -> bytes:
        if self.headers.get("Transfer-Encoding") == "chunked":
            content = b"".join(self._chunks())
        else:
            content = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        return _unframed(content) if "aws-chunked" in self.headers.get("Content-Encoding", "") else content

    def _chunks(self) -> Iterator[bytes]:
        while size := int(self.rfile.readline(), 16):
            yield self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()

    def do_HEAD(self) -> None:
        name, _ = self._asked()
        if name in self.server.buckets:
            self._answer(200)
        elif (content := self.server.objects.get(name)) is not None:
            self._answer(200, Content_Length=str(len(content)), ETag=_tag(content), Last_Modified=_WHEN_HTTP)
        else:
            self._answer(404)

    def do_GET(self) -> None:
        name, query = self._asked()
        if name.partition("/")[0] not in self.server.buckets:
            self._missing("NoSuchBucket")
        elif "list-type" in query:
            self._list(name.rstrip("/"), query)
        elif (content := self.server.objects.get(name)) is None:
            self._missing("NoSuchKey")
        elif wanted := self.headers.get("Range"):
            first, _, last = wanted.removeprefix("bytes=").partition("-")
            begin, end = int(first), min(int(last), len(content) - 1)
            told = f"bytes {begin}-{end}/{len(content)}"
            self._answer(206, content[begin : end + 1], Content_Range=told, ETag=_tag(content))
        else:
            self._answer(200, content, ETag=_tag(content))

    def _list(self, bucket: str, query: dict[str, str]) -> None:
        """All at once; what lies deeper than the delimiter counts as a prefix."""
        prefix, delimiter = query.get("prefix", ""), query.get("delimiter", "")
        keys, prefixes = [], []
        for name in sorted(self.server.objects):
            key = name.removeprefix(f"{bucket}/")
            if key == name or not key.startswith(prefix):
                continue
            inside, found, _ = key[len(prefix) :].partition(delimiter) if delimiter else ("", "", "")
            if found:
                prefixes.append(prefix + inside + delimiter)
            else:
                keys.append(key)
        most = int(query.get("max-keys", 1000))
        listed = "".join(
            f"<Contents><Key>{escape(key)}</Key><LastModified>{_WHEN}</LastModified>"
            f"<Size>{len(self.server.objects[f'{bucket}/{key}'])}</Size></Contents>"
            for key in keys[:most]
        )
        common = "".join(
            f"<CommonPrefixes><Prefix>{escape(each)}</Prefix></CommonPrefixes>"
            for each in dict.fromkeys(prefixes)
        )
        count = min(len(keys), most) + len(set(prefixes))
        self._xml(
            f"<ListBucketResult><Name>{bucket}</Name><Prefix>{escape(prefix)}</Prefix>"
            f"<KeyCount>{count}</KeyCount><MaxKeys>{most}</MaxKeys><IsTruncated>false</IsTruncated>"
            f"{listed}{common}</ListBucketResult>"
        )

    def do_PUT(self) -> None:
        name, query = self._asked()
        content = self._body()
        if source := self.headers.get("x-amz-copy-source"):
            copied = self.server.objects.get(unquote(source).lstrip("/"))
            if copied is None:
                self._missing("NoSuchKey")
                return
            self.server.objects[name] = copied
            self._xml(f"<CopyObjectResult><ETag>{_tag(copied)}</ETag></CopyObjectResult>")
        elif "partNumber" in query:
            self.server.parts[query["uploadId"]][int(query["partNumber"])] = content
            self._answer(200, ETag=_tag(content))
        else:
            self.server.objects[name] = content
            self._answer(200, ETag=_tag(content))

    def do_POST(self) -> None:
        name, query = self._asked()
        content = self._body()
        if "uploads" in query:
            upload = hashlib.md5(f"{name}{len(self.server.parts)}".encode()).hexdigest()
            self.server.parts[upload] = {}
            bucket, _, key = name.partition("/")
            self._xml(
                f"<InitiateMultipartUploadResult><Bucket>{bucket}</Bucket><Key>{escape(key)}</Key>"
                f"<UploadId>{upload}</UploadId></InitiateMultipartUploadResult>"
            )
        elif "uploadId" in query:
            parts = self.server.parts.pop(query["uploadId"])
            whole = self.server.objects[name] = b"".join(parts[number] for number in sorted(parts))
            self._xml(
                f"<CompleteMultipartUploadResult><ETag>{_tag(whole)}</ETag></CompleteMultipartUploadResult>"
            )
        elif "delete" in query:
            bucket = name.rstrip("/")
            for key in ElementTree.fromstring(content).iter():
                if key.tag.endswith("Key"):
                    self.server.objects.pop(f"{bucket}/{key.text}", None)
            self._xml("<DeleteResult></DeleteResult>")

    def do_DELETE(self) -> None:
        name, _ = self._asked()
        self.server.objects.pop(name, None)
        self._answer(204)


def _tag(content: bytes) -> str:
    return f'"{hashlib.md5(content).hexdigest()}"'


def _unframed(content: bytes) -> bytes:
    """What stands in the chunks that Amazon's client wraps content into: size, signature, content."""
    found = []
    while content:
        head, _, rest = content.partition(b"\r\n")
        size = int(head.partition(b";")[0], 16)
        if not size:
            break
        found.append(rest[:size])
        content = rest[size + 2 :]
    return b"".join(found)
