"""Replay conversations and passages: enough of them, all different, unlike each other."""

from itertools import islice

import pytest

from harness.errors import BadInput
from harness.plan.data import GeneratedReplay, HubText, Passages
from harness.tasks.passages import passages
from harness.tasks.probes import text_of_row, texts_of
from harness.tasks.replay import conversations
from harness.tasks.texts import Text, conversation, deal_texts, plain
from tests.unit.inputs.small_plans import small_plan


def said(text: Text) -> tuple[str, ...]:
    return tuple(message.content for message in text.messages)


def test_the_generator_gives_thousands_of_different_conversations() -> None:
    texts = list(islice(conversations("any", "replay"), 6000))
    assert len({said(text) for text in texts}) == len({text.id for text in texts}) == 6000


def test_conversations_are_one_or_two_exchanges_and_short() -> None:
    texts = list(islice(conversations("any", "replay"), 2000))
    assert {len(text.messages) for text in texts} == {2, 4}
    for text in texts:
        assert [message.role for message in text.messages] == ["user", "assistant"] * (
            len(text.messages) // 2
        )
        assert all(message.content.strip() == message.content for message in text.messages)
        assert sum(len(words.split()) for words in said(text)) < 120
        assert not any("{" in words or "  " in words for words in said(text))


def test_a_seed_gives_the_same_conversations_and_another_seed_others() -> None:
    first = list(islice(conversations("a", "replay"), 50))
    assert first == list(islice(conversations("a", "replay"), 50))
    assert len(set(first) & set(islice(conversations("b", "replay"), 50))) < 5


def test_passages_are_prose_of_forty_to_seventy_words() -> None:
    texts = list(passages("a", "retention.prose"))
    assert len({text.id for text in texts}) == len(texts) >= 140
    for text in texts:
        (message,) = text.messages
        assert message.role == "text"
        assert 40 <= len(message.content.split()) <= 70
        assert message.content.endswith(".")


def test_passages_are_unlike_the_replay() -> None:
    """No five words in a row of a passage occur in two thousand conversations."""

    def runs(words: list[str]) -> set[tuple[str, ...]]:
        return {tuple(words[at : at + 5]) for at in range(len(words) - 4)}

    replayed: set[tuple[str, ...]] = set()
    for text in islice(conversations("a", "replay"), 2000):
        for words in said(text):
            replayed |= runs(words.lower().split())
    shared = [
        run
        for text in passages("a", "x")
        for run in runs(said(text)[0].lower().split())
        if run in replayed
    ]
    assert not shared


def test_a_role_takes_no_text_twice_and_none_that_another_has() -> None:
    taken = {plain("b").id}
    source = [plain("a"), plain("a"), plain("b"), plain("c"), plain("d")]
    texts, passed = deal_texts("replay", source, 2, taken)
    assert [said(text) for text in texts] == [("a",), ("c",)]
    assert passed.repeated == 2
    assert {text.id for text in texts} < taken


def test_a_source_that_ends_too_early_is_named() -> None:
    with pytest.raises(BadInput, match=r"'replay' needs 3 .* has 2 \(1 repeated, 1 too long\)"):
        deal_texts(
            "replay",
            [plain("a"), plain("a"), plain("long"), plain("c")],
            3,
            set(),
            fits=lambda text: text != plain("long"),
        )


def test_rows_of_a_data_set_become_texts() -> None:
    turns = [
        {"role": "system", "content": "Be kind."},
        {"role": "user", "content": "Hi"},
        {"role": "assistant", "content": "Hello"},
        {"role": "user", "content": "Bye"},
    ]
    text = text_of_row(turns, where="row 1")
    assert text is not None
    assert [message.role for message in text.messages] == ["system", "user", "assistant"]
    assert text_of_row("Some prose.", where="row 2") == plain("Some prose.")
    assert text_of_row("  \n", where="row 3") is None
    assert text_of_row(turns[:2], where="row 4") is None
    assert text_of_row([], where="row 5") is None


@pytest.mark.parametrize(
    "value", [3, None, [{"role": "robot", "content": "x"}], [{"role": "user"}], ["hello"]]
)
def test_rows_of_another_form_are_refused(value: object) -> None:
    with pytest.raises(BadInput, match="row 9"):
        text_of_row(value, where="row 9")


def test_every_kind_of_source_deals_in_a_seeded_order() -> None:
    hub = HubText(kind="hub-dataset", repo="a/b", revision="0" * 40, file="x.jsonl", column="text")
    rows = [f"text {number}" for number in range(30)]

    def dealt(source: GeneratedReplay | HubText | Passages, seed: str) -> list[Text]:
        return list(islice(texts_of(source, seed=seed, role="r", read_rows=lambda _: rows), 30))

    for source in (GeneratedReplay(kind="generated"), Passages(kind="passages"), hub):
        assert dealt(source, "a") == dealt(source, "a") != dealt(source, "b")
    assert {said(text)[0] for text in dealt(hub, "a")} == set(rows)


def test_a_conversation_alternates() -> None:
    assert [m.role for m in conversation("a", "b", "c", "d").messages] == [
        "user",
        "assistant",
        "user",
        "assistant",
    ]
    assert small_plan().data.replay == GeneratedReplay(kind="generated")
