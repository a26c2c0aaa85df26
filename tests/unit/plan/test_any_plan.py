"""Whatever stands in a plan file: it loads and checks, or it is bad input. Nothing else."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from harness.errors import BadInput
from harness.plan import load_plan
from harness.plan.check import check_plan
from harness.prices import load_prices

PLANS = [
    json.loads(path.read_bytes())
    for path in sorted((Path(__file__).parents[3] / "plans").glob("*/plan.json"))
]
PRICES = load_prices("us-east-1")
EXTREME: st.SearchStrategy[Any] = st.sampled_from(
    [0, 1, -1, 2**53 - 1, 2**53, 10**400, 1e308, 5e-324, -0.0, 0.1, None, True, [], {}]
) | st.sampled_from(
    ["", "0", "999999999", "a" * 5000, "\u202e", "a.b", "us-east-1a", "reference", "pair", "single"]
)
ANY = EXTREME | st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)


def places(value: Any, at: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """The path of every value inside a JSON value."""
    members = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    return [found for key, inner in members for found in [(*at, key), *places(inner, (*at, key))]]


@st.composite
def broken(draw: st.DrawFn) -> Any:
    """A shipped plan with up to three of its values replaced or removed."""
    value = json.loads(json.dumps(draw(st.sampled_from(PLANS))))
    for _ in range(draw(st.integers(1, 3))):
        *path, last = draw(st.sampled_from(places(value)))
        here = value
        for step in path:
            here = here[step]
        if draw(st.booleans()) and isinstance(here, dict) and draw(st.booleans()):
            del here[last]
        else:
            here[last] = draw(ANY)
    return value


@given(broken())
@settings(
    max_examples=300,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_it_is_checked_or_refused_in_one_sentence(tmp_path: Path, value: Any) -> None:
    path = tmp_path / "plan.json"
    path.write_text(json.dumps(value))
    try:
        loaded = load_plan(path)
    except BadInput as error:
        assert str(error).endswith(".") and "\n" not in str(error) and len(str(error)) < 1000
        return
    report = check_plan(loaded, prices=PRICES)
    assert report.rows and report.model_dump_json()
    for finding in report.findings:
        assert "\n" not in finding.what and not finding.what.endswith(".")
    assert report.bound is not None or report.errors
