"""Damage: wrong, well formed, and only where declared."""

from hypothesis import given
from hypothesis import strategies as st

from harness.plan.data import Damage
from harness.tasks.cases import FAMILIES, Case, draw_case
from harness.tasks.damage import is_damaged, wrong_answer
from harness.tasks.draws import Draws

CASES = st.builds(
    lambda label, family, wording, rows, absent: draw_case(
        Draws(label), family=family, wording=wording, rows=rows, absent=absent
    ),
    st.integers(0, 10**9),
    st.sampled_from(sorted(FAMILIES)),
    st.integers(0, 3),
    st.integers(2, 12),
    st.booleans(),
)


@given(CASES)
def test_a_damaged_answer_is_wrong_and_well_formed(case: Case) -> None:
    wrong = wrong_answer(case)
    assert wrong != case.answer
    assert wrong == wrong_answer(case)
    assert wrong.keys() == case.answer.keys()
    ids = [record.id for record in case.table]
    if case.family == "lookup":
        assert isinstance(wrong["city"], str)
        assert type(wrong["units"]) is int
        assert 0 <= wrong["units"] <= 19
    elif case.family == "total":
        assert type(wrong["total"]) is int
        assert wrong["total"] >= 0
    else:
        chosen = wrong["ids"]
        assert isinstance(chosen, list)
        assert len(set(chosen)) == len(chosen)
        assert set(chosen) <= set(ids)
        if case.family == "sort":
            assert len(chosen) == 2
        else:
            assert chosen == [one for one in ids if one in chosen]


@given(st.integers(0, 2**256 - 1), st.integers(2, 1000), st.data())
def test_the_rule_hits_exactly_the_declared_ids(
    number: int, modulus: int, data: st.DataObject
) -> None:
    remainder = data.draw(st.integers(0, modulus - 1))
    damage = Damage(rule="sha256-mod", modulus=modulus, remainder=remainder)
    assert is_damaged(f"{number:064x}", damage) == (number % modulus == remainder)
