"""A cloud for tests: moto behind the shim, on a free port of this computer.

    with MotoCloud() as cloud:
        cloud.on("NoCapacity", zone="us-east-1a")
        subprocess.run([...], env={**os.environ, **cloud.environment})

As a program (`python -m tests.engine.moto.server --port 5000`) it prints its address and serves;
rules are then switched over HTTP: POST /_shim/on {"rule": "NoCapacity", "zone": "us-east-1a"}.
"""

from __future__ import annotations

import argparse
import json
import os
import threading
from types import TracebackType
from typing import Any

import boto3
from botocore.config import Config

os.environ.setdefault("MOTO_EC2_LOAD_DEFAULT_AMIS", "false")

from moto.core.base_backend import BackendDict
from moto.core.model_instances import reset_model_data
from moto.moto_server.werkzeug_app import MotoRequestHandler
from werkzeug.serving import make_server

from tests.engine.moto.rule import ACCOUNT as ACCOUNT
from tests.engine.moto.rule import Rule
from tests.engine.moto.shim import RULES, Seen, Shim

REGION = "us-east-1"


class Quiet(MotoRequestHandler):
    """Says nothing of each request."""

    def log(self, type: str, message: str, *args: Any) -> None:
        """Nothing."""


class MotoCloud:
    """A running cloud; `environment` is what any process needs to meet it."""

    def __init__(self, port: int = 0) -> None:
        self.shim = Shim()
        self._server = make_server(
            "127.0.0.1", port, self.shim, threaded=True, request_handler=Quiet
        )
        self.endpoint = f"http://127.0.0.1:{self._server.server_port}"
        self.session = boto3.session.Session("testing", "testing", region_name=REGION)
        self._clients: dict[tuple[str, str], Any] = {}
        self._thread = threading.Thread(target=self._server.serve_forever, daemon=True)

    def __enter__(self) -> MotoCloud:
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

    @property
    def environment(self) -> dict[str, str]:
        """Variables for boto3 in any process; no file of the user's is read."""
        return {
            "AWS_ENDPOINT_URL": self.endpoint,
            "AWS_ACCESS_KEY_ID": "testing",
            "AWS_SECRET_ACCESS_KEY": "testing",
            "AWS_DEFAULT_REGION": REGION,
            "AWS_CONFIG_FILE": os.devnull,
            "AWS_SHARED_CREDENTIALS_FILE": os.devnull,
            "AWS_EC2_METADATA_DISABLED": "true",
        }

    def client(self, service: str, region: str = REGION) -> Any:
        """A boto3 client for what a test itself does and looks at; it never retries."""
        if (service, region) not in self._clients:
            config = Config(retries={"total_max_attempts": 1})
            make: Any = self.session.client
            made = make(service, region, endpoint_url=self.endpoint, config=config)
            self._clients[service, region] = made
        return self._clients[service, region]

    def on(self, rule: str, **fields: Any) -> Rule:
        """Switch a rule on, by its class name and fields."""
        made = RULES[rule](**fields)
        with self.shim.lock:
            self.shim.switched.append(made)
        return made

    def off(self, rule: str) -> None:
        """Switch a kind of rule off; what it has under way no longer happens."""
        with self.shim.lock:
            self.shim.switched[:] = [
                each for each in self.shim.switched if type(each).__name__ != rule
            ]

    def advance(self, seconds: float) -> None:
        """Move the clock of slow endings on."""
        with self.shim.lock:
            self.shim.world.skew += seconds

    def calls(self, action: str = "") -> list[Seen]:
        """What was asked so far, oldest first; of one action when it is named."""
        with self.shim.lock:
            return [each for each in self.shim.seen if not action or each.action == action]

    def reset(self) -> None:
        """A new, empty cloud at the same address, with only the rules that are always on."""
        with self.shim.lock:
            BackendDict.reset()
            reset_model_data()
            self.shim.reset()

    def fire(self, group: str, name: str, region: str = REGION) -> dict[str, Any]:
        """Perform a schedule's stored target with its stored input, word for word.

        Returns the answer of the call that the target names ('...:aws-sdk:ec2:terminateInstances').
        """
        schedule = self.client("scheduler", region).get_schedule(GroupName=group, Name=name)
        service, _, operation = schedule["Target"]["Arn"].rpartition(":aws-sdk:")[2].partition(":")
        call = getattr(self.client(service, region), _snake(operation))
        return dict(call(**json.loads(schedule["Target"]["Input"])))


def _snake(name: str) -> str:
    return "".join(f"_{each.lower()}" if each.isupper() else each for each in name)


def main() -> None:
    """Serve until interrupted."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--port", type=int, default=0)
    cloud = MotoCloud(parser.parse_args().port)
    with cloud:
        print(cloud.endpoint, flush=True)
        threading.Event().wait()


if __name__ == "__main__":
    main()
