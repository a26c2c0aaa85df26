"""Each fault that a well-formed plan can still have is found at its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.plan.shipped import BATCHED, COOP, QUICK, report, shipped

SERVING = {
    "candidate": "pair",
    "requests": 8,
    "concurrency": 2,
    "attempts": 2,
    "timeout_s": 60,
    "warmup_requests": 1,
    "max_new_tokens": 8,
    "phases": [{"name": "one", "replicas": 1, "fault": "none"}],
}
HUB_MODEL = {"kind": "hub", "repo": "a/b", "revision": "0" * 40}


def windows(window: int) -> dict[str, object]:
    return {
        "kind": "local-windows", "window": window, "outer_lr": 0.7, "outer_momentum": 0.9,
    }  # fmt: skip


# (plan, what is changed, the level, the pointer, words of the sentence)
FINDINGS: list[tuple[str, dict[str, object], str, str, str]] = [
    (QUICK, {"/recipe/schedule/warmup_updates": 16}, "error", "/recipe/schedule/warmup_updates",
     "a warm-up of 16 updates never ends"),
    (QUICK, {"/recipe/schedule/kind": "constant"}, "warning", "/recipe/schedule/floor", "no floor"),
    (QUICK, {"/recipe/checkpoints": {"every_updates": 16}}, "warning",
     "/recipe/checkpoints/every_updates", "none is stored"),
    (QUICK, {"/recipe/checkpoints": {"every_updates": 4}, "/arms/0/attempts": 1,
             "/arms/1/attempts": 1}, "warning", "/recipe/checkpoints", "one attempt only"),
    (QUICK, {"/recipe/context_tokens": 100}, "error", "/recipe/context_tokens", "5 rows"),
    (QUICK, {"/evaluation/max_new_tokens": 512}, "error", "/evaluation/max_new_tokens", "no room"),
    (QUICK, {"/recipe/updates": 8}, "warning", "/recipe/updates", "read 64 of 128"),
    (QUICK, {"/recipe/updates": 17}, "warning", "/recipe/updates", "no whole number of passes"),
    (QUICK, {"/recipe/global_batch": 256}, "error", "/recipe/global_batch", "more than the 128"),
    (QUICK, {"/data/roles/test": 49}, "warning", "/data/roles/test", "over 1 families"),
    (QUICK, {"/data/roles/test": 50}, "warning", "/data/roles/test", "in 4 wordings"),
    (QUICK, {"/data/tasks/families": ["filter", "sort"]}, "warning", "/data/tasks/absent_every",
     "counts lookups"),
    (QUICK, {"/data/weights/task": 0}, "warning", "/data/weights/task", "no weight"),
    (QUICK, {"/decisions/3/probes": "like-replay"}, "warning", "/data/retention/1/source",
     "text like the replay"),
    (QUICK, {"/arms/0/microbatch": 9}, "error", "/arms/0/microbatch", "more than the 8 documents"),
    (QUICK, {"/arms/1/exchange/dense_updates": 16}, "error", "/arms/1/exchange/dense_updates",
     "nothing is compressed"),
    (QUICK, {"/arms/1/exchange/min_compression_rate": 1}, "warning",
     "/arms/1/exchange/min_compression_rate", "save nothing"),
    (QUICK, {"/arms/1/exchange/error_feedback": False}, "warning",
     "/arms/1/exchange/error_feedback", "leave out"),
    (QUICK, {"/arms/1/exchange": windows(5)}, "error", "/arms/1/exchange/window",
     "no whole number of windows of 5"),
    (QUICK, {"/arms/1/exchange": windows(16)}, "warning", "/arms/1/exchange/window",
     "meet only once"),
    (QUICK, {"/arms/1/exchange": windows(4), "/arms/1/limits/traffic_gb": 2}, "error",
     "/arms/1/limits/traffic_gb", "4.3 GB"),
    (QUICK, {"/arms/1/limits/traffic_gb": 2}, "error", "/arms/1/limits/traffic_gb", "2.2 GB"),
    (QUICK, {"/arms/1/limits/seconds": 60}, "error", "/arms/1/limits/seconds", "measured on 2"),
    (QUICK, {"/budget/deadline_s": 300}, "error", "/budget/deadline_s", "whose times are known"),
    (QUICK, {"/budget/deadline_s": 2000}, "warning", "/budget/deadline_s", "by their limits"),
    (QUICK, {"/budget/traffic_gb_per_host": 5}, "warning", "/budget/traffic_gb_per_host",
     "21 GB a host"),
    (QUICK, {"/hosts": {}}, "error", "/hosts", "no hosts"),
    (QUICK, {"/data/tasks/test_wordings": [0, 1]}, "error", "/decisions/6/scope/wordings",
     "every tested wording is trained"),
    (QUICK, {"/data/tasks/test_wordings": [2, 3],
             "/decisions/6/scope": {"wordings": "trained"}}, "error",
     "/decisions/6/scope/wordings", "none of them is tested"),
    (QUICK, {"/decisions/6/scope": {"families": ["sort"]}}, "error",
     "/decisions/6/scope/families", "'sort', which is no family"),
    (QUICK, {"/decisions/7/reference": "reference"}, "error", "/decisions/7/reference",
     "was never trained"),
    (QUICK, {"/decisions/5/candidate": "reference"}, "error", "/decisions/5/candidate",
     "was never trained"),
    (QUICK, {"/decisions/5/candidate": "single"}, "warning", "/decisions/5/candidate",
     "agrees with itself"),
    (QUICK, {"/decisions/7/statistic": "bytes-ratio"}, "warning", "/decisions/7/reference",
     "lone worker"),
    (QUICK, {"/decisions/4/z": 2.0}, "error", "/decisions/4/z", "sets z"),
    (QUICK, {"/decisions/4/timer": "active"}, "error", "/decisions/4/timer", "sets timer"),
    (QUICK, {"/decisions/0/probes": "passages"}, "error", "/decisions/0/probes", "sets probes"),
    (QUICK, {"/decisions/5/scope": {}}, "error", "/decisions/5/scope", "sets scope"),
    (QUICK, {"/decisions/2/margin": -10}, "error", "/decisions/2/margin", "written as fractions"),
    (QUICK, {"/decisions/7/margin": 0}, "error", "/decisions/7/margin", "ratio with a margin"),
    (QUICK, {"/decisions/1/bound": "at-least"}, "error", "/decisions/1/bound", "large p value"),
    (QUICK, {"/decisions/0/z": 0.5}, "warning", "/decisions/0/z", "unusual bound"),
    (QUICK, {"/decisions/0/z": 25.76}, "warning", "/decisions/0/z", "unusual bound"),
    (QUICK, {"/decisions": []}, "warning", "/decisions", "nothing is decided"),
    (QUICK, {"/serving": {**SERVING, "phases": [{"name": "x", "replicas": 3, "fault": "none"}]}},
     "error", "/serving/phases/0/replicas", "3 replicas on 2 host(s)"),
    (QUICK, {"/serving": {**SERVING, "phases": [{"name": "x", "replicas": 1, "fault": "killed"}]}},
     "warning", "/serving/phases/0/fault", "no request can succeed"),
    (QUICK, {"/serving": {**SERVING, "attempts": 1,
                          "phases": [{"name": "x", "replicas": 2, "fault": "killed"}]}},
     "warning", "/serving/attempts", "no request survives"),
    (QUICK, {"/serving": {**SERVING, "cache": True}}, "warning", "/serving/cache", "measure it"),
    (COOP, {"/data/replay/revision": None}, "error", "/data/replay/revision", "not pinned"),
    (COOP, {"/data/retention/0/source/revision": None}, "error",
     "/data/retention/0/source/revision", "not pinned"),
    (COOP, {"/hosts/aws/zones": ["us-west-2a"]}, "error", "/hosts/aws/zones/0",
     "not in the region"),
    (COOP, {"/hosts/aws/zones": ["us-east-1a", "us-east-1a"]}, "error", "/hosts/aws/zones",
     "twice"),
    (COOP, {"/hosts/aws/types": ["g6e.xlarge", "g6e.xlarge"]}, "error", "/hosts/aws/types",
     "twice"),
    (BATCHED, {"/hosts/aws/zones": ["us-east-1a"]}, "error", "/hosts/aws/placement", "one zone"),
    (COOP, {"/hosts/aws/volume/gib": 70}, "error", "/hosts/aws/volume/gib",
     "less than the 112 GiB"),
    (COOP, {"/hosts/aws/volume": {"gib": 8, "iops": 5000, "throughput_mbps": 125}}, "error",
     "/hosts/aws/volume/iops", "at most 500 IOPS a GiB"),
    (COOP, {"/hosts/aws/volume/throughput_mbps": 1000}, "error",
     "/hosts/aws/volume/throughput_mbps", "0.25 MB/s an IOPS"),
    (COOP, {"/budget/deadline_s": 600}, "error", "/budget/deadline_s", "too short to boot"),
    (COOP, {"/budget/deadline_s": 31 * 86400}, "error", "/budget/deadline_s", "30 days"),
    (COOP, {"/budget/deadline_s": 4000}, "warning", "/budget/deadline_s", "of unknown length"),
    (COOP, {"/budget/ceiling_usd": "50"}, "error", "/budget/ceiling_usd", "ceiling of 50 USD"),
    (COOP, {"/hosts/aws/types": ["g6e.xlarge", "p6.1xlarge"]}, "error", "/budget", "is unknown"),
    (COOP, {"/model": HUB_MODEL}, "error", "/model/parameters", "number of parameters is unknown"),
    (COOP, {"/arms/2/limits/traffic_gb": 1500}, "error", "/arms/2/limits/traffic_gb", "1752.4 GB"),
]  # fmt: skip


class TestFindings:
    @pytest.mark.parametrize(
        ("base", "changes", "level", "pointer", "words"),
        FINDINGS,
        ids=[f"{f[3]}: {f[4]}" for f in FINDINGS],
    )
    def test_each_is_found_at_its_place(
        self,
        tmp_path: Path,
        base: str,
        changes: dict[str, object],
        level: str,
        pointer: str,
        words: str,
    ) -> None:
        found = report(tmp_path, base, changes)
        new = set(found.findings) - set(shipped(base).findings)
        hits = [each for each in new if each.pointer == pointer and words in each.what]
        assert len(hits) == 1, [each.sentence("plan.json") for each in new]
        assert hits[0].level == level

    @pytest.mark.parametrize("base", [QUICK, COOP, BATCHED, "communication"])
    def test_every_sentence_is_one_and_ends_with_one_period(self, base: str) -> None:
        for each in shipped(base).findings:
            said = each.sentence("plan.json")
            assert said.startswith(f"plan.json#{each.pointer}: ")
            assert said.endswith(".") and not said.endswith("..") and "\n" not in said
