"""The one task the toy can do: reading a row of a small table."""

import re

from formats import canonical

ROW = re.compile(r"\b([A-Z]\d{3}) (\w+) (\d+) (\d+) (ready|pending|closed) (\d)\b")


def lookup(tokens):
    """The right answer to a lookup prompt, as bytes; None when the prompt is something else."""
    text = bytes(token for token in tokens if token < 256).decode("utf-8", "replace")
    rows = {row[1]: {"city": row[2], "units": int(row[3])} for row in ROW.finditer(text)}
    asked = set(re.findall(r"\b[A-Z]\d{3}\b", ROW.sub("", text)))
    if not rows or len(asked) != 1:
        return None
    return canonical(rows.get(asked.pop(), {"city": None, "units": None})).encode()


def quality_of(documents):
    """Thousandths of the corpus's lookup examples whose answer is right."""
    right = of = 0
    for document in documents:
        if document["kind"] == "task" and document["targets"]:
            begin, end = document["targets"][0]
            answer = lookup(document["tokens"][:begin])
            if answer is not None:
                of += 1
                right += bytes(t for t in document["tokens"][begin:end] if t < 256) == answer
    return right * 1000 // of if of else 0
