"""The toy's replica: the contract's three routes on the standard library's server."""

import json
import os
import signal
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

from formats import canonical, fail, load_model, write
from lookups import lookup

TOKEN_SECONDS = float(os.environ.get("TOY_TOKEN_SECONDS", "0.0005"))
REFUSE_ROOT = os.environ.get("TOY_SERVE") == "refuse"


class Replica:
    """What all requests share."""

    def __init__(self, args, recipe):
        tensors, self.root = load_model(args.model)
        if self.root != recipe["parameter_root"] or REFUSE_ROOT:
            fail(f"the weights have the root {self.root}", 1)
        self.learned = tensors["quality"][0] > 0
        self.recipe, self.record = recipe, args.out / "served-0.jsonl"
        self.lock, self.running = threading.Lock(), 0
        self.counts = {"answered": 0}
        self.generated = 0

    def write(self, **line):
        data = (canonical(line) + "\n").encode()
        file = os.open(self.record, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
        os.write(file, data)
        os.close(file)

    def answer(self, name, body):
        with self.lock:
            self.running += 1
        self.write(event="began", request=name, at=0)
        answer = lookup(body["tokens"]) if self.learned else None
        tokens = list(answer or b"{}")[: body["max_new_tokens"]]
        time.sleep(TOKEN_SECONDS * len(tokens))
        with self.lock:
            self.running -= 1
            self.counts["answered"] += 1
            self.generated += len(tokens)
        stopped = "limit" if len(tokens) == body["max_new_tokens"] else "end"
        self.write(event="ended", request=name, at=0, stopped=stopped, tokens=len(tokens))
        return {"request": name, "tokens": tokens, "stopped": stopped, "ties": [], "cached": False}


def handler_of(replica):
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_GET(self):
            known = self.path in ("/health", "/ready")
            body = {"state": "ready", "running": replica.running, "waiting": 0}
            self.say(200 if known else 404, body)

        def do_POST(self):
            name = self.headers.get("X-Request-Id", "")
            data = self.rfile.read(int(self.headers.get("Content-Length", "0")))
            self.say(200, replica.answer(name, json.loads(data)), {"X-Request-Id": name})

        def say(self, status, value, headers=None):
            data = (canonical(value) + "\n").encode()
            self.send_response(status)
            for key, text in {**(headers or {}), "Content-Length": str(len(data))}.items():
                self.send_header(key, text)
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_):
            pass

    return Handler


def serve(args, recipe):
    replica = Replica(args, recipe)
    server = ThreadingHTTPServer((args.address, args.port), handler_of(replica))
    began = time.monotonic()
    stopping = threading.Thread(target=server.shutdown)
    signal.signal(signal.SIGTERM, lambda *_: stopping.start())
    address, port = server.server_address[:2]
    place = {"address": address, "port": port, "pid": os.getpid(), "model_root": replica.root}
    write(args.out / "serving.json", place)
    server.serve_forever(poll_interval=0.05)
    server.server_close()
    body = {"requests": replica.counts, "generated_tokens": replica.generated}
    return body | {"seconds": time.monotonic() - began}, {}
