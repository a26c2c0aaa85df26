"""From the command line to a running task: check, set the environment, start workers.

Standard library only: a dry run and a refused recipe never pay for importing torch.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import signal
import sys
import traceback
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Never

from trainer import recipe as recipes
from trainer.beginning import Beginning
from trainer.errors import RecipeError, TrainerError
from trainer.job import Arguments, Job

_BEGINNING = "TRAINER_BEGINNING"
_RENDEZVOUS_SECONDS = 600
_WORKER = "--worker"


def main(argv: Sequence[str], script: Path) -> int:
    """Run `launch`. Returns the exit status: 0 done, 1 failed attempt, 2 refused."""
    try:
        return _main(argv, script)
    except TrainerError as error:
        print(f"trainer: {error}", file=sys.stderr, flush=True)
        if _WORKER in argv:
            _leave(error.exit_status)
        return error.exit_status


def _leave(status: int) -> Never:
    """End a failed worker without the interpreter's own exit, in which a process group may wait
    for peers that wait for this rank.
    """
    sys.stdout.flush()
    os._exit(status)


def _main(argv: Sequence[str], script: Path) -> int:
    arguments, dry_run, worker = read_arguments(argv)
    recipe = recipes.read(arguments.recipe)
    check_workers(recipe, arguments)
    if isinstance(recipe, recipes.Serve):
        require_server()
    if dry_run:
        return 0
    beginning = Beginning.from_text(os.environ.get(_BEGINNING)) or Beginning.observe(
        arguments.interface
    )
    os.environ.update(settings(recipe, arguments, os.environ))
    if arguments.nodes > 1 and not worker:
        os.environ[_BEGINNING] = beginning.to_text()
        _become_torchrun(argv, arguments, script)
    _die_with_parent(worker)
    return _run(Job(arguments, recipe, beginning, script.parent))


def read_arguments(argv: Sequence[str]) -> tuple[Arguments, bool, bool]:
    """(arguments, whether this is a dry run, whether torchrun started this process)."""
    parser = _Parser(prog="launch", allow_abbrev=False)
    for name in ("recipe", "inputs", "model", "out"):
        parser.add_argument(f"--{name}", type=Path, required=name in ("recipe", "out"))
    parser.add_argument("--node-rank", type=int, required=True)
    parser.add_argument("--nodes", type=int, required=True)
    parser.add_argument("--address", required=True)
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--interface", required=True)
    parser.add_argument("--resume", type=Path, action="append", default=[])
    parser.add_argument("--dry-run", action="store_true")
    parser.add_argument(_WORKER, action="store_true", help=argparse.SUPPRESS)
    values = vars(parser.parse_args(argv))
    dry_run, worker = values.pop("dry_run"), values.pop("worker")
    values["resume"] = tuple(values["resume"])
    return Arguments(**values), dry_run, worker


class _Parser(argparse.ArgumentParser):
    """Refuses in one sentence, without the usage text."""

    def error(self, message: str) -> Never:
        raise RecipeError(message)


def check_workers(recipe: recipes.Common, arguments: Arguments) -> None:
    """Node numbers must fit together and fit the task. Raises RecipeError."""
    nodes, rank = arguments.nodes, arguments.node_rank
    if nodes < 1 or not 0 <= rank < nodes:
        raise RecipeError(f"--node-rank {rank} does not fit --nodes {nodes}")
    lowest = 0 if arguments.nodes == 1 else 1  # one node meets nobody: the port is not used
    if not lowest <= arguments.port <= 65535:
        raise RecipeError(f"--port {arguments.port} is not a port")
    if nodes > 1 and recipe.task in recipes.ONE_WORKER:
        raise RecipeError(f"the task '{recipe.task}' runs on one node, not on {nodes}")
    if isinstance(recipe, recipes.Train) and nodes > 1 and recipe.exchange.kind == "none":
        raise RecipeError(f"the exchange 'none' is for one node, not for {nodes}")
    if arguments.resume and recipe.task != "train":
        raise RecipeError(f"the task '{recipe.task}' cannot be gone on with, so --resume is wrong")
    if isinstance(recipe, recipes.Train) and recipe.updates % (recipe.exchange.window or 1):
        raise RecipeError(
            f"{recipe.updates} updates do not end with a window of {recipe.exchange.window}"
        )


def require_server() -> None:
    """What `serve` needs besides. Raises RecipeError, so that a dry run finds it missing."""
    for name in ("uvicorn", "starlette"):
        if importlib.util.find_spec(name) is None:
            raise RecipeError(f"the task 'serve' needs the package {name}, which is not installed")


def settings(
    recipe: recipes.Common, arguments: Arguments, environment: Mapping[str, str]
) -> dict[str, str]:
    """Environment variables that libraries read while they are imported.

    Gloo takes an interface name as it is; NCCL takes it as a prefix unless `=` stands before it.
    """
    chosen = {
        "GLOO_SOCKET_IFNAME": arguments.interface,
        "NCCL_SOCKET_IFNAME": f"={arguments.interface}",
        "TOKENIZERS_PARALLELISM": "false",
        "HF_HUB_OFFLINE": "1",
    }
    if recipe.threads is not None:
        chosen["OMP_NUM_THREADS"] = chosen["MKL_NUM_THREADS"] = str(recipe.threads)
    for name, value in (
        ("CUBLAS_WORKSPACE_CONFIG", ":4096:8"),  # deterministic cuBLAS needs a fixed workspace
        ("PYTORCH_ALLOC_CONF", "expandable_segments:True"),
        # Threads that wait by spinning made a CPU update three times slower beside other work.
        ("OMP_WAIT_POLICY", "PASSIVE"),
        ("PYTHONUNBUFFERED", "1"),
    ):
        chosen[name] = environment.get(name, value)
    return chosen


def torchrun(argv: Sequence[str], arguments: Arguments, script: Path) -> list[str]:
    """The command that starts this node's one worker under torchrun, static rendezvous."""
    return [
        sys.executable,
        "-m",
        "torch.distributed.run",
        f"--nnodes={arguments.nodes}",
        f"--node-rank={arguments.node_rank}",
        "--nproc-per-node=1",
        f"--master-addr={arguments.address}",
        f"--master-port={arguments.port}",
        f"--local-addr={arguments.address}",
        f"--rdzv-conf=timeout={_RENDEZVOUS_SECONDS}",
        "--max-restarts=0",
        "--monitor-interval=0.2",
        str(script),
        _WORKER,
        *argv,
    ]


def _become_torchrun(argv: Sequence[str], arguments: Arguments, script: Path) -> None:
    """Replace this process: torchrun then gets our signals and passes them to its worker."""
    sys.stdout.flush()
    sys.stderr.flush()
    os.execv(sys.executable, torchrun(argv, arguments, script))


def _die_with_parent(worker: bool) -> None:
    """A worker is killed when its torchrun is, however that one ends (Linux)."""
    if not worker or not sys.platform.startswith("linux"):
        return
    import ctypes

    set_parent_death_signal = 1
    ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGKILL, 0, 0, 0)
    if os.getppid() == 1 and os.environ.get("TORCHELASTIC_RUN_ID"):
        raise TrainerError("torchrun ended before its worker started")


def _run(job: Job) -> int:
    from trainer.main import run

    try:
        run(job)
    except TrainerError:
        raise
    except Exception as error:  # the last place that can name the task
        traceback.print_exc()
        sentence = " ".join(str(error).split())[:300]
        raise TrainerError(
            f"the task '{job.recipe.task}' failed: {type(error).__name__}: {sentence}"
        ) from None
    return 0
