"""A provider for the real engine that carries pulumi-aws resources to a cloud by boto3.

The engine attaches to it (`PULUMI_DEBUG_PROVIDERS=aws:PORT`) in place of the AWS provider's
program. Every input is checked against the installed pulumi-aws package.
"""

from __future__ import annotations

import concurrent.futures
import hashlib
import threading
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any

import boto3
import grpc
from botocore.config import Config
from botocore.exceptions import ClientError
from google.protobuf import any_pb2, empty_pb2, json_format, struct_pb2
from google.rpc import status_pb2
from pulumi.runtime.proto import plugin_pb2, provider_pb2, provider_pb2_grpc
from pulumi.runtime.rpc import UNKNOWN

from tests.engine.provider import fields
from tests.engine.provider.kind import HalfMade, Kind, Values
from tests.engine.provider.kinds import access, compute, identity, network, schedules, storage
from tests.engine.provider.lookups import LOOKUPS

KINDS: dict[str, Kind] = {
    kind.token: kind
    for room in (access, compute, identity, network, schedules, storage)
    for kind in room.KINDS
}
VERSION = "7.51.1"


class Boto:
    """The cloud at an endpoint, in one region."""

    def __init__(self, endpoint: str, region: str) -> None:
        self.region = region
        self._endpoint = endpoint
        self._session = boto3.session.Session("testing", "testing", region_name=region)
        self._lock = threading.Lock()
        self._clients: dict[str, Any] = {}

    def client(self, service: str) -> Any:
        """A client without retries; made once, which takes longer than most calls."""
        with self._lock:
            if service not in self._clients:
                make: Any = self._session.client
                once = Config(
                    retries={"total_max_attempts": 1},
                    read_timeout=600,  # a busy test machine is no fault of the cloud
                    s3={"addressing_style": "path"},
                )
                self._clients[service] = make(service, endpoint_url=self._endpoint, config=once)
            return self._clients[service]


class Servicer(provider_pb2_grpc.ResourceProviderServicer):
    """The engine's side of the protocol (pulumi/proto/provider.proto)."""

    def __init__(self, endpoint: str) -> None:
        self._endpoint = endpoint
        self._cloud = Boto(endpoint, "us-east-1")

    def Handshake(self, request: Any, context: Any) -> Any:
        return provider_pb2.ProviderHandshakeResponse()

    def Attach(self, request: Any, context: Any) -> Any:
        return empty_pb2.Empty()

    def Cancel(self, request: Any, context: Any) -> Any:
        return empty_pb2.Empty()

    def GetPluginInfo(self, request: Any, context: Any) -> Any:
        return plugin_pb2.PluginInfo(version=VERSION)

    def CheckConfig(self, request: Any, context: Any) -> Any:
        return provider_pb2.CheckResponse(inputs=request.news)

    def DiffConfig(self, request: Any, context: Any) -> Any:
        return provider_pb2.DiffResponse(changes=provider_pb2.DiffResponse.DIFF_NONE)

    def Configure(self, request: Any, context: Any) -> Any:
        region = _plain(request.args).get("region") or "us-east-1"
        if self._cloud.region != region:
            self._cloud = Boto(self._endpoint, str(region))
        return provider_pb2.ConfigureResponse(acceptSecrets=False)

    def Check(self, request: Any, context: Any) -> Any:
        kind, inputs, olds = _kind(request, context), _plain(request.news), _plain(request.olds)
        if kind.autoname and inputs.get(kind.autoname) is None:
            kept = olds.get(kind.autoname)
            tail = hashlib.sha256(request.randomSeed or request.urn.encode()).hexdigest()[:7]
            inputs[kind.autoname] = kept or f"{request.urn.rpartition('::')[2]}-{tail}"
        faults = [*fields.check(kind.token, inputs), *kind.refuse(inputs)]
        return provider_pb2.CheckResponse(
            inputs=_struct(inputs),
            failures=[provider_pb2.CheckFailure(property=at, reason=why) for at, why in faults],
        )

    def Diff(self, request: Any, context: Any) -> Any:
        kind = _kind(request, context)
        old, new = _plain(request.old_inputs), _plain(request.news)
        changed = sorted(key for key in {*old, *new} if old.get(key) != new.get(key))
        said = provider_pb2.DiffResponse
        return said(
            changes=said.DIFF_SOME if changed else said.DIFF_NONE,
            diffs=changed,
            replaces=[key for key in changed if key not in kind.changeable],
        )

    def Create(self, request: Any, context: Any) -> Any:
        kind, inputs = _kind(request, context), _plain(request.properties)
        made = _carried(context, kind, "creating", lambda: kind.create(self._cloud, inputs), inputs)
        return provider_pb2.CreateResponse(
            id=made, properties=_struct(self._outputs(kind, made, inputs, context))
        )

    def Read(self, request: Any, context: Any) -> Any:
        kind = _kind(request, context)
        inputs, state = _plain(request.inputs), _plain(request.properties)
        known = {**state, **inputs}
        seen = _carried(
            context, kind, "reading", lambda: kind.read(self._cloud, request.id, known), inputs
        )
        if seen is None:
            return provider_pb2.ReadResponse()
        told = {key: seen[key] for key in inputs if key in seen}
        return provider_pb2.ReadResponse(
            id=request.id,
            properties=_struct({**known, **seen, "id": request.id}),
            inputs=_struct({**inputs, **told}),
        )

    def Update(self, request: Any, context: Any) -> Any:
        kind, old, new = _kind(request, context), _plain(request.old_inputs), _plain(request.news)
        if kind.update is not None:
            update = kind.update
            _carried(
                context, kind, "updating", lambda: update(self._cloud, request.id, old, new), new
            )
        outputs = self._outputs(kind, request.id, new, context)
        return provider_pb2.UpdateResponse(properties=_struct(outputs))

    def Delete(self, request: Any, context: Any) -> Any:
        kind = _kind(request, context)
        known = {**_plain(request.properties), **_plain(request.old_inputs)}
        _carried(
            context, kind, "deleting", lambda: kind.delete(self._cloud, request.id, known), known
        )
        return empty_pb2.Empty()

    def Invoke(self, request: Any, context: Any) -> Any:
        if request.tok not in LOOKUPS:
            context.abort(grpc.StatusCode.UNIMPLEMENTED, f"no such look-up: {request.tok}")
        look = LOOKUPS[request.tok]
        arguments = _plain(request.args)
        said = _carried(context, None, request.tok, lambda: look(self._cloud, arguments), {})
        return provider_pb2.InvokeResponse(**{"return": _struct(said)})

    def _outputs(self, kind: Kind, made: str, inputs: Values, context: Any) -> Values:
        seen = _carried(
            context, kind, "reading", lambda: kind.read(self._cloud, made, inputs), inputs
        )
        return {**inputs, **(seen or {}), "id": made}


class Provider:
    """The provider on a free port, for as long as the `with` lasts."""

    def __init__(self, endpoint: str) -> None:
        self._server = grpc.server(concurrent.futures.ThreadPoolExecutor(max_workers=16))
        provider_pb2_grpc.add_ResourceProviderServicer_to_server(Servicer(endpoint), self._server)
        self.port = self._server.add_insecure_port("127.0.0.1:0")

    @property
    def environment(self) -> dict[str, str]:
        """What the engine needs to attach."""
        return {"PULUMI_DEBUG_PROVIDERS": f"aws:{self.port}"}

    def __enter__(self) -> Provider:
        self._server.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._server.stop(grace=None).wait()


def _kind(request: Any, context: Any) -> Kind:
    token = request.urn.split("::")[2].rpartition("$")[2]
    if token not in KINDS:
        context.abort(grpc.StatusCode.UNIMPLEMENTED, f"this provider carries no {token}")
    return KINDS[token]


def _carried(
    context: Any, kind: Kind | None, doing: str, act: Callable[[], Any], inputs: Values
) -> Any:
    """The result, or the engine's error in the words of the real provider."""
    what = f"{doing} {kind.token.rpartition(':')[2]}" if kind else doing
    try:
        return act()
    except ClientError as error:
        said = error.response["Error"]
        status = error.response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0)
        context.abort(
            grpc.StatusCode.UNKNOWN,
            f"{what}: operation error: {error.operation_name}, https response error StatusCode: "
            f"{status}, api error {said['Code']}: {said['Message']}",
        )
    except HalfMade as error:
        _half_made(context, error, inputs)
    except Exception as error:
        context.abort(grpc.StatusCode.UNKNOWN, f"{what}: {type(error).__name__}: {error}")


def _half_made(context: Any, error: HalfMade, inputs: Values) -> None:
    detail = any_pb2.Any()
    detail.Pack(
        provider_pb2.ErrorResourceInitFailed(
            id=error.resource_id,
            properties=_struct({**inputs, "id": error.resource_id}),
            reasons=[str(error)],
            inputs=_struct(inputs),
        )
    )
    code = grpc.StatusCode.UNKNOWN
    status = status_pb2.Status(code=code.value[0], message=str(error), details=[detail])
    context.set_trailing_metadata((("grpc-status-details-bin", status.SerializeToString()),))
    context.abort(code, str(error))


def _plain(struct: struct_pb2.Struct) -> Values:
    values: Values = json_format.MessageToDict(struct)
    return {key: _whole(value) for key, value in values.items() if value is not None}


def _whole(value: Any) -> Any:
    """Structs hold floats only."""
    if isinstance(value, Mapping):
        if "4dabf18193072939515e22adb298388d" in value:  # a secret or an output: its value
            return _whole(value.get("value", UNKNOWN))
        return {key: _whole(inner) for key, inner in value.items() if inner is not None}
    if isinstance(value, list):
        return [_whole(inner) for inner in value]
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def _struct(values: Values) -> struct_pb2.Struct:
    made = struct_pb2.Struct()
    made.update(values)
    return made
