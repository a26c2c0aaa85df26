"""A small model hub on 127.0.0.1 that speaks the hub's protocol, with faults to order."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

COMMIT = "a" * 40
OTHER = "b" * 40


def blob_id(data: bytes) -> str:
    """git's id of the bytes."""
    return hashlib.sha1(b"blob " + str(len(data)).encode() + b"\0" + data).hexdigest()


@dataclass
class Hub:
    """What is served, and how. Keys of `files` are (repository path, file)."""

    files: dict[tuple[str, str], bytes] = field(default_factory=dict)
    large: set[str] = field(default_factory=set)
    """Files that are named by SHA-256, as large files are."""
    commit: str = COMMIT
    """The commit that the server says it serves, whatever was asked for."""
    failures: int = 0
    """Requests still to be answered with status 500."""
    flip: bool = False
    """Serve wrong bytes of the right length."""
    requests: list[str] = field(default_factory=list)
    address: str = ""

    def etag(self, file: str, data: bytes) -> str:
        """The hub's hash of a file."""
        return hashlib.sha256(data).hexdigest() if file in self.large else blob_id(data)


@contextmanager
def serving(hub: Hub) -> Iterator[Hub]:
    """Serve until the block ends; `hub.address` is the endpoint."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(hub))
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
    thread.start()
    hub.address = f"http://127.0.0.1:{server.server_port}"
    try:
        yield hub
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _handler(hub: Hub) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            pass

        def do_HEAD(self) -> None:
            self._answer(body=False)

        def do_GET(self) -> None:
            self._answer(body=True)

        def _answer(self, *, body: bool) -> None:
            hub.requests.append(f"{self.command} {self.path}")
            if hub.failures:
                hub.failures -= 1
                return self._send(500, {}, b"", body)
            path = self.path.partition("?")[0].strip("/")
            if path.startswith("api/"):
                return self._listing(path, body)
            repo, _, rest = path.partition("/resolve/")
            _, _, file = rest.partition("/")
            if not any(known == repo for known, _ in hub.files):
                return self._send(404, {"X-Error-Code": "RepoNotFound"}, b"", body)
            data = hub.files.get((repo, file))
            if data is None:
                code = {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": hub.commit}
                return self._send(404, code, b"", body)
            etag = hub.etag(file, data)
            headers = {"ETag": f'"{etag}"', "X-Repo-Commit": hub.commit}
            if file in hub.large:
                headers |= {"X-Linked-ETag": f'"{etag}"', "X-Linked-Size": str(len(data))}
            if hub.flip:
                data = bytes([data[0] ^ 1]) + data[1:]
            return self._send(200, headers, data, body)

        def _listing(self, path: str, body: bool) -> None:
            _, kind, rest = path.split("/", 2)
            name, _, revision = rest.partition("/revision/")
            repo = name if kind == "models" else f"{kind}/{name}"
            files = {file: data for (known, file), data in hub.files.items() if known == repo}
            if not files:
                return self._send(404, {"X-Error-Code": "RepoNotFound"}, b"", body)
            if revision not in (COMMIT, OTHER):
                return self._send(404, {"X-Error-Code": "RevisionNotFound"}, b"", body)
            rows = [self._row(file, data) for file, data in files.items()]
            value: dict[str, object] = {
                "_id": "1",
                "id": name,
                "modelId": name,
                "sha": hub.commit,
                "siblings": rows,
            }
            value |= {"private": False, "tags": [], "downloads": 0, "likes": 0}
            data = json.dumps(value).encode()
            return self._send(200, {"Content-Type": "application/json"}, data, body)

        def _row(self, file: str, data: bytes) -> dict[str, object]:
            row: dict[str, object] = {"rfilename": file, "size": len(data), "blobId": blob_id(data)}
            if file in hub.large:
                digest = hashlib.sha256(data).hexdigest()
                row["lfs"] = {"sha256": digest, "size": len(data), "pointerSize": 100}
            return row

        def _send(self, status: int, headers: dict[str, str], data: bytes, body: bool) -> None:
            self.send_response(status)
            for name, value in headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            if body:
                self.wfile.write(data)

    return Handler
