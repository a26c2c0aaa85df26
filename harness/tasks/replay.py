"""Short general conversations from word lists: replay for studies without a network.

The lists in `replay.json` were written for this project. A conversation is one or two exchanges
of six kinds: explanations, lists, how-to, rewriting, changing the tense, and polite talk.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

from harness.tasks.draws import Draws
from harness.tasks.texts import Text, conversation
from trainer import contract

FILE = Path(__file__).with_name("replay.json")
SECOND_EXCHANGE_ONE_IN = 4
MAX_REPEATS = 2_000
"""Repeated draws in a row after which the generator is taken to be exhausted."""

Exchange = tuple[str, str]


@lru_cache(maxsize=1)
def _lists() -> Any:
    return contract.read_json(FILE)


def conversations(seed: str, role: str) -> Iterator[Text]:
    """Different conversations, each a pure function of seed, role and its draw's number."""
    seen: set[str] = set()
    number = repeats = 0
    while repeats < MAX_REPEATS:
        text = _conversation(Draws(seed, role, "conversation", number))
        number += 1
        if text.id in seen:
            repeats += 1
            continue
        repeats = 0
        seen.add(text.id)
        yield text


def _conversation(draws: Draws) -> Text:
    kinds = (_explain, _enumerate, _how_to, _polite, _tense, _talk)
    first, second = draws.sample(kinds, 2)
    turns = [*first(draws)]
    if draws.chance(SECOND_EXCHANGE_ONE_IN):
        question, answer = second(draws)
        turns += [f"{draws.choose(_lists()['thanks'])} {question}", answer]
    return conversation(*turns)


def _explain(draws: Draws) -> Exchange:
    bank = _lists()["explain"]
    subject, sentence = draws.choose(bank["facts"])
    return (
        draws.choose(bank["questions"]).format(subject=subject),
        draws.choose(bank["openers"]) + sentence + draws.choose(bank["closers"]),
    )


def _enumerate(draws: Draws) -> Exchange:
    bank = _lists()["enumerate"]
    topic, items = draws.choose(bank["topics"])
    count = draws.within(2, 4)
    chosen = draws.sample(items, count)
    number = ("two", "three", "four")[count - 2]
    form = draws.choose(bank["questions"])
    if draws.chance(2):
        answer = "\n".join(f"- {item}" for item in chosen)
    else:
        answer = f"{', '.join(chosen[:-1])} and {chosen[-1]}."
        answer = answer[0].upper() + answer[1:]
    return form.format(count=number, topic=topic), answer


def _how_to(draws: Draws) -> Exchange:
    bank = _lists()["how_to"]
    task, steps = draws.choose(bank["tasks"])
    question = draws.choose(bank["questions"]).format(task=task)
    return question, draws.choose(bank["openers"]) + " ".join(steps)


def _polite(draws: Draws) -> Exchange:
    bank = _lists()["polite"]
    blunt, action = draws.choose(bank["requests"])
    frame = draws.choose(bank["frames"])
    return draws.choose(bank["questions"]).format(text=blunt), frame.format(action=action)


def _tense(draws: Draws) -> Exchange:
    bank = _lists()["tense"]
    who, place = draws.choose(bank["who"]), draws.choose(bank["places"])
    now, past, coming = draws.choose(bank["verbs"])
    present = f"{who} {now} {place}."
    if draws.chance(2):
        return draws.choose(bank["past"]).format(text=present), f"{who} {past} {place}."
    return draws.choose(bank["future"]).format(text=present), f"{who} will {coming} {place}."


def _talk(draws: Draws) -> Exchange:
    bank = _lists()["talk"]
    news, reply = draws.choose(bank["news"])
    said = f"{draws.choose(bank['greetings'])} {news}"
    return said, f"{draws.choose(bank['welcomes'])} {reply} {draws.choose(bank['offers'])}"
