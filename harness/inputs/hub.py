"""Files of a model hub at a pinned revision, checked against the hub's own content hashes."""

from __future__ import annotations

import hashlib
import importlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from harness.errors import BadInput, HarnessError, Waiting
from harness.plan.data import HubText
from trainer import contract

Kind = Literal["model", "dataset"]
_CHUNK_BYTES = 8 * 1024 * 1024
_TRANSIENT = (408, 429, 500, 502, 503, 504)


@dataclass(frozen=True)
class HubFile:
    """What the hub says of a file: SHA-256 for large files, else the git blob id (SHA-1)."""

    algorithm: Literal["sha256", "git-blob"]
    digest: str
    size: int
    """Bytes."""


def fetch(
    repo: str,
    revision: str,
    file: str,
    *,
    kind: Kind = "model",
    endpoint: str | None = None,
    cache: Path | None = None,
) -> Path:
    """A file of a repository at a pinned commit, from the cache or downloaded into it.

    `endpoint` is another hub's address (absent: the library's own), `cache` another folder than
    the library's. Raises BadInput when the repository, revision or file is not there, the commit
    served is another one, or the bytes do not have the hash that names them; Waiting when the hub
    cannot be reached or fails.
    """
    hub = _library()
    where = _where(kind, repo, revision, file)
    try:
        path = Path(
            hub.hf_hub_download(
                repo, file, repo_type=kind, revision=revision, endpoint=endpoint, cache_dir=cache
            )
        )
    except Exception as error:
        raise _translated(error, where) from None
    served = path.parents[len(Path(file).parts) - 1].name
    if served != revision:
        raise BadInput(f"the hub served the commit {served} instead of the pinned one", where=where)
    _check_content(path, where)
    return path


def hub_file_hashes(
    repo: str, revision: str, *, kind: Kind = "model", endpoint: str | None = None
) -> dict[str, HubFile]:
    """What the hub says of every file of a repository at a pinned commit, by path.

    Raises as `fetch` does.
    """
    where = _where(kind, repo, revision)
    try:
        api = _library().HfApi(endpoint=endpoint)
        info = api.repo_info(repo, revision=revision, repo_type=kind, files_metadata=True)
        rows = {row.rfilename: _described(row) for row in info.siblings or ()}
    except HarnessError:
        raise
    except Exception as error:
        raise _translated(error, where) from None
    if info.sha != revision:
        raise BadInput(
            f"the hub served the commit {info.sha} instead of the pinned one", where=where
        )
    return dict(sorted(rows.items()))


def read_rows(path: Path, column: str, *, where: str) -> list[Any]:
    """A column of every row of a .jsonl or .parquet file, in the file's order.

    Raises BadInput when the form or the column is not there, or pyarrow is needed and missing.
    """
    if path.suffix == ".jsonl":
        try:
            return [row[column] for row in contract.read_lines(path)]
        except contract.ContractError as error:
            raise BadInput(str(error), where=where) from None
        except (KeyError, TypeError):
            raise BadInput(f"a row has no column '{column}'", where=where) from None
    if path.suffix != ".parquet":
        raise BadInput("a data set's file ends in .jsonl or .parquet", where=where)
    try:
        parquet = importlib.import_module("pyarrow.parquet")
    except ImportError:
        raise BadInput(
            "reading a .parquet file needs pyarrow", where=where, next_command="pip install pyarrow"
        ) from None
    table = parquet.ParquetFile(path)
    if column not in table.schema_arrow.names:
        raise BadInput(f"there is no column '{column}'", where=where)
    rows: list[Any] = table.read(columns=[column]).column(column).to_pylist()
    return rows


def read_text_rows(
    source: HubText, *, endpoint: str | None, cache: Path | None = None
) -> list[Any]:
    """The declared column of a plan's hub data set. Raises BadInput when it is not pinned."""
    if source.revision is None:
        raise BadInput(f"the data set {source.repo} has no pinned revision", where="plan#/data")
    path = fetch(
        source.repo, source.revision, source.file, kind="dataset", endpoint=endpoint, cache=cache
    )
    where = _where("dataset", source.repo, source.revision, source.file)
    return read_rows(path, source.column, where=where)


def _library() -> Any:
    try:
        return importlib.import_module("huggingface_hub")
    except ImportError:
        raise BadInput(
            "fetching from a model hub needs huggingface_hub",
            next_command="pip install huggingface_hub",
        ) from None


def _where(kind: Kind, repo: str, revision: str, file: str = "") -> str:
    prefix = "datasets/" if kind == "dataset" else ""
    return f"{prefix}{repo}@{revision[:12]}" + (f"/{file}" if file else "")


def _described(row: Any) -> HubFile:
    if row.lfs is not None:
        return HubFile("sha256", row.lfs.sha256, row.lfs.size)
    return HubFile("git-blob", row.blob_id, row.size)


def _check_content(path: Path, where: str) -> None:
    """The cache names a blob by the hub's hash of it; the link to it tells that name."""
    name = path.readlink().name if path.is_symlink() else ""
    if re.fullmatch(r"[0-9a-f]{64}", name):
        found = contract.hash_file(path)[0]
    elif re.fullmatch(r"[0-9a-f]{40}", name):
        found = git_blob_id(path)
    else:
        raise BadInput("the hub names no content hash for the file", where=where)
    if found != name:
        raise BadInput(
            f"the bytes have the hash {found}, the hub says {name}; remove {path} and try again",
            where=where,
        )


def git_blob_id(path: Path) -> str:
    """The id that git gives a file's bytes (SHA-1, which git prescribes)."""
    digest = hashlib.sha1(b"blob %d\0" % path.stat().st_size, usedforsecurity=False)
    with path.open("rb") as handle:
        while chunk := handle.read(_CHUNK_BYTES):
            digest.update(chunk)
    return digest.hexdigest()


def _translated(error: Exception, where: str) -> HarnessError:
    errors = importlib.import_module("huggingface_hub.errors")
    if isinstance(error, errors.LocalEntryNotFoundError):
        return Waiting("the hub cannot be reached and the file is not cached", where=where)
    for kind, what in (
        (errors.GatedRepoError, "the repository asks for a licence to be accepted; log in first"),
        (errors.RepositoryNotFoundError, "there is no such repository, or it is private"),
        (errors.RevisionNotFoundError, "the repository has no such revision"),
        (errors.EntryNotFoundError, "the repository has no such file at that revision"),
        (errors.HFValidationError, "this is not the name of a repository"),
    ):
        if isinstance(error, kind):
            return BadInput(what, where=where)
    status = getattr(getattr(error, "response", None), "status_code", None)
    first = (str(error).splitlines() or [""])[0][:200]
    what = f"the hub cannot be used ({type(error).__name__}: {first})"
    if status is not None and status not in _TRANSIENT:
        return BadInput(f"the hub answered {status}", where=where)
    return Waiting(what, where=where)
