"""Instance metadata, version 2 only (EC2 user guide, 'Use the Instance Metadata Service')."""

from __future__ import annotations

import http.server
import json
import threading
from types import TracebackType

TOKEN = "a-session-token"


class InstanceMetadata:
    """Serves what a host asks about itself; `instance_id` may change between requests."""

    def __init__(self, instance_id: str) -> None:
        self.instance_id = instance_id
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_PUT(self) -> None:
                known = self.path == "/latest/api/token"
                life = self.headers.get("X-aws-ec2-metadata-token-ttl-seconds")
                self._say(TOKEN if known and life else None)

            def do_GET(self) -> None:
                if self.headers.get("X-aws-ec2-metadata-token") != TOKEN:
                    self._say(None, 401)
                else:
                    self._say(outer.values().get(self.path.removeprefix("/latest/meta-data/")))

            def _say(self, text: str | None, code: int = 404) -> None:
                body = (text or "").encode()
                self.send_response(code if text is None else 200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: object) -> None:
                """Nothing."""

        self._server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def values(self) -> dict[str, str]:
        """Paths and their texts."""
        credentials = {
            "Code": "Success",
            "Type": "AWS-HMAC",
            "AccessKeyId": "testing",
            "SecretAccessKey": "testing",
            "Token": "session",
            "LastUpdated": "2026-01-01T00:00:00Z",
            "Expiration": "2099-01-01T00:00:00Z",
        }
        return {
            "instance-id": self.instance_id,
            "iam/security-credentials/": "host-role",
            "iam/security-credentials/host-role": json.dumps(credentials),
        }

    def __enter__(self) -> InstanceMetadata:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.shutdown()
        self._server.server_close()
