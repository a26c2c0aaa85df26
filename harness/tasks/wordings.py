"""Four wordings of each family: different sentences, and two orders of table and question.

A plan declares wordings by number: any of them can be trained on, any held out for the test.
0 and 2 put the question below the table, 1 and 3 above it.
"""

from __future__ import annotations

from harness.plan.data import Family
from harness.tasks.records import Table, show_table

QUESTION_FIRST = (1, 3)
"""Wordings that put the question above the table; the others put it below."""

WORDINGS: dict[Family, tuple[str, str, str, str]] = {
    "lookup": (
        (
            'Give the city and units of {asked} as JSON {{"city", "units"}}, both null if that id'
            " is not in the table."
        ),
        (
            "Which city does {asked} belong to, and how many units has it? Answer with a JSON"
            " object of city and units (null when there is no such id)."
        ),
        (
            "Find row {asked}. Write JSON with the keys city and units; if the row is absent, use"
            " null twice."
        ),
        (
            'I need record {asked} as {{"city": ..., "units": ...}}, or nulls should it be missing'
            " from these lines."
        ),
    ),
    "filter": (
        'List the ids whose status is {asked}, in table order, as JSON {{"ids": [...]}}.',
        (
            "Which records are {asked}? Answer with a JSON object whose key ids names them from top"
            " to bottom."
        ),
        (
            'Keep only the {asked} rows and write what identifies them as {{"ids": []}}, order'
            " unchanged."
        ),
        (
            "Go through the lines and collect the id of each one marked {asked}. Reply in JSON with"
            " a list called ids."
        ),
    ),
    "total": (
        'What is the sum of units times price over all rows? Answer as JSON {{"total": number}}.',
        (
            "Work out the invoice: in each line multiply units by price, then add up. Answer with a"
            " JSON object whose key is total."
        ),
        'Every row costs its units at its price. Write the cost of all rows as {{"total": ...}}.',
        (
            "How much do these records come to together, each being price multiplied by units?"
            " Reply in JSON with a number called total."
        ),
    ),
    "sort": (
        (
            'Give the ids of the two rows with the highest priority as JSON {{"ids": [first,'
            " second]}}; equal priorities go by id."
        ),
        (
            "Which two records come first when sorted by priority from high to low, then by id?"
            " Answer with a JSON object whose key is ids."
        ),
        (
            'Rank by descending priority, ties by ascending id, and write the top two as {{"ids":'
            " []}}."
        ),
        (
            "Pick the pair to handle first: the larger priority leads, on a tie the smaller id."
            " Reply in JSON with a list called ids."
        ),
    ),
}


def write_prompt(family: Family, wording: int, asked: str, table: Table) -> str:
    """The user's message: question and table in the wording's order, a line break between."""
    question = WORDINGS[family][wording].format(asked=asked)
    parts = [question, show_table(table)]
    return "\n".join(parts if wording in QUESTION_FIRST else reversed(parts))
