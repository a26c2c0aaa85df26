"""A real S3 server on this computer (moto), with what goes wrong in front of it, by named rules."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from contextlib import nullcontext
from typing import Any

from moto.core.models import DEFAULT_ACCOUNT_ID
from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
from moto.s3.models import FakeKey, s3_backends
from werkzeug.serving import WSGIRequestHandler, make_server

from harness.onhost.s3objects import S3Objects
from harness.onhost.s3place import S3Place

Environ = dict[str, Any]
Answer = tuple[int, str, str]
"""Status, S3's error code, message."""
Rule = Callable[[Environ], Answer | None]


class Quiet(WSGIRequestHandler):
    """Logs nothing."""

    protocol_version = "HTTP/1.1"

    def log(self, *arguments: Any) -> None:
        return


class BucketServer:
    """Counts requests, and answers by the first rule that says something, else as moto does."""

    def __init__(self) -> None:
        self.rules: list[Rule] = []
        self.seen: list[str] = []
        self.conditional = threading.Lock()
        self.moto = DomainDispatcherApplication(create_backend_app)
        self.server = make_server("127.0.0.1", 0, self._app, threaded=True, request_handler=Quiet)
        self.thread = threading.Thread(target=self.server.serve_forever, daemon=True)
        self.thread.start()

    @property
    def endpoint(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}"

    def stop(self) -> None:
        self.server.shutdown()
        self.thread.join()

    def make(self, name: str, *, versioned: bool = True, **place: Any) -> S3Objects:
        """A new bucket and its objects below the prefix 'study'."""
        values = {"prefix": "study", "region": "us-east-1", "owner": DEFAULT_ACCOUNT_ID}
        where = S3Place(bucket=name, endpoint=self.endpoint, **{**values, **place})
        objects = S3Objects(where)
        objects.client.create_bucket(Bucket=name)
        if versioned:
            objects.client.put_bucket_versioning(
                Bucket=name, VersioningConfiguration={"Status": "Enabled"}
            )
        return objects

    def held(self, objects: S3Objects, sha256: str) -> bytes:
        """The bytes that the server holds under that name."""
        return bytes(self._key(objects, sha256).value)

    def harm(self, objects: S3Objects, sha256: str, data: bytes) -> None:
        """Put other bytes in their place: the version and the ETag stay, as when a disk rots."""
        object.__setattr__(self._key(objects, sha256), "value", data)

    def _key(self, objects: S3Objects, sha256: str) -> FakeKey:
        backend = s3_backends[DEFAULT_ACCOUNT_ID]["aws"]
        key = backend.get_object(objects.place.bucket, objects.place.key(sha256))
        assert isinstance(key, FakeKey)
        return key

    def _app(self, environ: Environ, start: Callable[..., Any]) -> Iterable[bytes]:
        self.seen.append(f"{environ['REQUEST_METHOD']} {environ['QUERY_STRING']}")
        for rule in list(self.rules):
            answer = rule(environ)
            if answer is not None:
                return _refusal(environ, start, *answer)
        # S3 decides a conditional write and makes it in one step; moto looks first and writes then.
        # docs.aws.amazon.com/AmazonS3/latest/userguide/conditional-writes.html
        with self.conditional if "HTTP_IF_NONE_MATCH" in environ else nullcontext():
            found: Iterable[bytes] = self.moto(environ, start)
        return found


def _refusal(
    environ: Environ, start: Callable[..., Any], status: int, code: str, message: str
) -> Iterable[bytes]:
    environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    body = f"<Error><Code>{code}</Code><Message>{message}</Message></Error>".encode()
    if environ["REQUEST_METHOD"] == "HEAD":
        body = b""
    start(f"{status} x", [("Content-Type", "application/xml"), ("Content-Length", str(len(body)))])
    return [body]


def refuse(
    status: int, code: str, *, method: str = "", query: str = "", after: int = 0, times: int = 10**9
) -> Rule:
    """Refuse requests of that method and query, after `after` of them, `times` times."""
    lock, count = threading.Lock(), 0

    def rule(environ: Environ) -> Answer | None:
        nonlocal count
        if method not in ("", environ["REQUEST_METHOD"]) or query not in environ["QUERY_STRING"]:
            return None
        with lock:
            count += 1
            hit = after < count <= after + times
        return (status, code, f"as the test says: {code}") if hit else None

    return rule
