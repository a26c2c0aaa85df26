"""The shim: an HTTP application in front of moto that behaves where moto does not.

Every boto3 of every process that has AWS_ENDPOINT_URL meets it. `ALWAYS` are rules of AWS that
moto leaves out; others are switched on by tests, in Python or over HTTP (`/_shim/...`).
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app

from tests.engine.moto.call import Answer, Call, Environ, json_answer, put_query, read_call
from tests.engine.moto.rule import Rule, World
from tests.engine.moto.rules import account, answers, ending, launch

StartResponse = Callable[..., Any]
RULES: dict[str, type[Rule]] = {
    rule.__name__: rule for rule in (*launch.RULES, *ending.RULES, *answers.RULES, *account.RULES)
}
ALWAYS = (
    ending.AllOrNone, ending.Dependencies, answers.LaunchedInterfaces, answers.Gp3Kept,
    answers.ClientTokens, answers.ScheduleInPast, account.Quotas, account.Simulator,
    account.DryRun,
    account.PlacementGroups,
)  # fmt: skip
CONTROL = "/_shim/"


@dataclass
class Seen:
    """A call that was made, and the status of its answer."""

    service: str
    region: str
    action: str
    params: dict[str, Any]
    status: int


@dataclass
class Shim:
    """WSGI application. One request at a time: moto's state is not made for more."""

    world: World = field(default_factory=World)
    switched: list[Rule] = field(default_factory=list)
    """Asked before the rules that are always on, in order."""
    always: list[Rule] = field(default_factory=lambda: [rule() for rule in ALWAYS])
    seen: list[Seen] = field(default_factory=list)
    lock: threading.RLock = field(default_factory=threading.RLock)
    moto: Any = field(default_factory=lambda: DomainDispatcherApplication(create_backend_app))

    def __call__(self, environ: Environ, start: StartResponse) -> Iterable[bytes]:
        """Answer one request."""
        with self.lock:
            path = str(environ.get("PATH_INFO", ""))
            if path.startswith(CONTROL):
                return send(self._control(environ, path.removeprefix(CONTROL)), start)
            if path.startswith("/moto-api"):
                return list(self.moto(environ, start))
            for rule in self.rules:
                rule.tick(self.world)
            call = read_call(environ)
            asked = dict(call.params)
            answer = self._answer(call, asked, environ)
            self.seen.append(Seen(call.service, call.region, call.action, asked, answer.status))
            return send(answer, start, head=environ.get("REQUEST_METHOD") == "HEAD")

    @property
    def rules(self) -> list[Rule]:
        """All rules, in the order in which they are asked."""
        return [*self.switched, *self.always]

    def reset(self) -> None:
        """Switched rules off, state of the others new."""
        self.world.skew = 0.0
        self.switched.clear()
        self.always[:] = [rule() for rule in ALWAYS]
        self.seen.clear()

    def _answer(self, call: Call, asked: dict[str, Any], environ: Environ) -> Answer:
        answer = next(
            (found for rule in self.rules if (found := rule.before(call, self.world))), None
        )
        if answer is None:
            if call.params != asked:
                put_query(call, environ)
            answer = self._of_moto(environ)
        for rule in self.rules:
            answer = rule.after(call, answer, self.world)
        return answer

    def _of_moto(self, environ: Environ) -> Answer:
        got: list[Any] = []

        def start(status: str, headers: list[tuple[str, str]], *_: Any) -> None:
            got[:] = [int(status.split()[0]), tuple(headers)]

        parts = self.moto(environ, start)
        body = b"".join(parts)
        return Answer(got[0], got[1], body)

    def _control(self, environ: Environ, what: str) -> Answer:
        size = int(environ.get("CONTENT_LENGTH") or 0)
        value = json.loads(environ["wsgi.input"].read(size) or b"{}") if size else {}
        if what == "reset":
            self.reset()
        elif what == "advance":
            self.world.skew += float(value["seconds"])
        elif what == "on":
            self.switched.append(RULES[value.pop("rule")](**value))
        elif what == "off":
            self.switched[:] = [r for r in self.switched if type(r).__name__ != value["rule"]]
        elif what == "calls":
            return json_answer([each.__dict__ for each in self.seen])
        else:
            return json_answer({"unknown": what}, 404)
        return json_answer({"rules": [type(rule).__name__ for rule in self.rules]})


def send(answer: Answer, start: StartResponse, *, head: bool = False) -> list[bytes]:
    """Hand an answer to the server; to HEAD its length is that of the body that GET would have."""
    if head:
        start(f"{answer.status} shim", [*answer.headers])
        return []
    headers = [pair for pair in answer.headers if pair[0].lower() != "content-length"]
    start(f"{answer.status} shim", [*headers, ("Content-Length", str(len(answer.body)))])
    return [answer.body]
