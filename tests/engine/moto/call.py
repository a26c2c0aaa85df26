"""A request to AWS as the shim sees it, and answers in each service's own wire form."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import parse_qsl, unquote, urlencode
from xml.sax.saxutils import escape

Environ = dict[str, Any]
XML = "text/xml;charset=UTF-8"


@dataclass(frozen=True)
class Call:
    """One signed request."""

    service: str
    """Signing name: 'ec2', 'iam', 'scheduler', 'servicequotas', 's3', ..."""
    region: str
    action: str
    """'RunInstances'; for REST services 'METHOD /path'."""
    params: dict[str, Any] = field(default_factory=dict)
    """Query protocol: flat names such as 'InstanceId.1'. JSON: the body."""

    def list(self, prefix: str) -> list[str]:
        """Values of `prefix.1`, `prefix.2`, ... in order."""
        found, i = [], 1
        while (value := self.params.get(f"{prefix}.{i}")) is not None:
            found.append(str(value))
            i += 1
        return found

    def true(self, name: str) -> bool:
        """Whether a query parameter is 'true'."""
        return str(self.params.get(name, "")).lower() == "true"


@dataclass(frozen=True)
class Answer:
    """A response."""

    status: int
    headers: tuple[tuple[str, str], ...]
    body: bytes


def read_call(environ: Environ) -> Call:
    """Read a request; its body stays readable for what is behind."""
    service, region = _scope(environ)
    method, path = str(environ["REQUEST_METHOD"]), unquote(str(environ.get("PATH_INFO", "/")))
    if service == "s3":
        return Call(service, region, f"{method} {path}")
    size = int(environ.get("CONTENT_LENGTH") or 0)
    body = environ["wsgi.input"].read(size) if size else b""
    environ["wsgi.input"] = io.BytesIO(body)
    target = environ.get("HTTP_X_AMZ_TARGET", "")
    if target:
        return Call(service, region, target.rpartition(".")[2], json.loads(body or b"{}"))
    if "json" in str(environ.get("CONTENT_TYPE", "")) or service == "scheduler":
        query = dict(parse_qsl(str(environ.get("QUERY_STRING", ""))))
        params = {**query, **(json.loads(body) if body else {})}
        return Call(service, region, f"{method} {path}", params)
    pairs = dict(parse_qsl(body.decode(), keep_blank_values=True))
    return Call(service, region, pairs.pop("Action", f"{method} {path}"), dict(pairs))


def put_query(call: Call, environ: Environ) -> None:
    """Make the request's body that of the call as a rule changed it (query protocol)."""
    body = urlencode({"Action": call.action, **call.params}).encode()
    environ["wsgi.input"] = io.BytesIO(body)
    environ["CONTENT_LENGTH"] = str(len(body))


def _scope(environ: Environ) -> tuple[str, str]:
    """Service and region from the SigV4 credential scope."""
    words = str(environ.get("HTTP_AUTHORIZATION", "")).partition("Credential=")[2].split(",")[0]
    parts = words.split("/")
    return (parts[3], parts[2]) if len(parts) == 5 else ("s3", "us-east-1")


def xml_answer(action: str, inner: str) -> Answer:
    """An EC2 answer around `inner`."""
    space = "http://ec2.amazonaws.com/doc/2016-11-15/"
    body = (
        f'<{action}Response xmlns="{space}"><requestId>shim</requestId>{inner}</{action}Response>'
    )
    return Answer(200, (("Content-Type", XML),), body.encode())


def json_answer(value: Any, status: int = 200, **headers: str) -> Answer:
    """A JSON answer."""
    named = tuple((name.replace("_", "-"), text) for name, text in headers.items())
    body = json.dumps(value).encode()
    return Answer(status, (("Content-Type", "application/json"), *named), body)


def error(call: Call, code: str, message: str, status: int = 400) -> Answer:
    """The service's own form of an error."""
    if call.service == "scheduler":
        return json_answer({"Message": message}, status, x_amzn_ErrorType=code)
    if call.service not in ("ec2", "iam", "sts", "s3"):
        return json_answer({"__type": code, "message": message}, status)
    said = f"<Code>{code}</Code><Message>{escape(message)}</Message>"
    if call.service == "ec2":
        body = (
            f"<Response><Errors><Error>{said}</Error></Errors>"
            "<RequestID>shim</RequestID></Response>"
        )
    elif call.service == "s3":
        body = f"<Error>{said}<RequestId>shim</RequestId></Error>"
    else:
        body = (
            f"<ErrorResponse><Error><Type>Sender</Type>{said}</Error>"
            "<RequestId>shim</RequestId></ErrorResponse>"
        )
    return Answer(status, (("Content-Type", XML),), body.encode())
