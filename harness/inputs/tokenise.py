"""Messages to tokens in the ChatML form.

A turn is <|im_start|>, the tokens of "role, newline, content", <|im_end|>, and a newline before
the next turn. In an assistant's turn the header "assistant, newline" is tokenised apart from the
content, so that a prompt ends exactly where the answer begins. The content and its <|im_end|>
are the targets. Text that spells a special token is encoded as plain text.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path

from tokenizers import Tokenizer

from harness.errors import BadInput
from harness.inputs.masks import Document, Piece, join
from harness.plan.model import Chat
from harness.tasks.texts import PLAIN, Message, Text

START = "<|im_start|>"
END = "<|im_end|>"
NEWLINE = "\n"
HEADER = "assistant\n"
BATCH = 1024


class ChatTokenizer:
    """A tokenizer.json set to encode whole texts, literally, without padding or truncation."""

    def __init__(self, tokenizer_json: Path, chat: Chat) -> None:
        self._where = str(tokenizer_json)
        try:
            self._tokenizer: Tokenizer = Tokenizer.from_file(str(tokenizer_json))
        except Exception as error:
            raise BadInput(f"is not a usable tokenizer ({error})", where=self._where) from None
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self._tokenizer.encode_special_tokens = True
        if getattr(self._tokenizer.model, "dropout", None):
            self._tokenizer.model.dropout = None
        self._system = chat.system
        self.start, self.end = self._special(START), self._special(END)
        fixed = self._encode([NEWLINE, HEADER])
        self._newline, self._header = fixed[NEWLINE], fixed[HEADER]

    def _special(self, token: str) -> int:
        identity = self._tokenizer.token_to_id(token)
        if identity is None:
            raise BadInput(f"the tokenizer has no token {token}", where=self._where)
        if identity in self._encode([token])[token]:
            raise BadInput(
                f"the tokenizer turns the plain text {token} into the control token; "
                "it must be marked as special",
                where=self._where,
            )
        return identity

    def _encode(self, texts: Iterable[str]) -> dict[str, tuple[int, ...]]:
        """The tokens of every different text."""
        wanted = list(dict.fromkeys(texts))
        found: dict[str, tuple[int, ...]] = {}
        for at in range(0, len(wanted), BATCH):
            part = wanted[at : at + BATCH]
            encodings = self._tokenizer.encode_batch(part, add_special_tokens=False)
            found.update(zip(part, (tuple(one.ids) for one in encodings), strict=True))
        return found

    def documents(self, texts: Sequence[Text], *, role: str) -> list[Document]:
        """Tokens and target spans of whole texts.

        Raises BadInput naming role and id when a target cannot be read back from its tokens.
        """
        turns = [self._with_system(text.messages) for text in texts]
        known = self._encode(part for messages in turns for part in _parts(messages))
        self._check_round_trip(texts, known, role)
        return [join(self._pieces(messages, known)) for messages in turns]

    def prompts(self, prompts: Sequence[str]) -> list[tuple[int, ...]]:
        """Tokens of user messages up to where the assistant's answer begins."""
        turns = [self._with_system((Message("user", prompt),)) for prompt in prompts]
        known = self._encode(part for messages in turns for part in _parts(messages))
        tail = (*self._newline, self.start, *self._header)
        return [join(self._pieces(messages, known)).tokens + tail for messages in turns]

    def lengths(self, contents: Sequence[str]) -> list[int]:
        """Number of tokens of each content alone."""
        known = self._encode(contents)
        return [len(known[content]) for content in contents]

    def _with_system(self, messages: tuple[Message, ...]) -> tuple[Message, ...]:
        if self._system is None or messages[0].role in ("system", PLAIN):
            return messages
        return (Message("system", self._system), *messages)

    def _pieces(
        self, messages: Sequence[Message], known: dict[str, tuple[int, ...]]
    ) -> Iterable[Piece]:
        for number, message in enumerate(messages):
            if message.role == PLAIN:
                yield Piece(known[message.content], target=True)
                continue
            lead = self._newline if number else ()
            if message.role == "assistant":
                yield Piece((*lead, self.start, *self._header), target=False)
                yield Piece((*known[message.content], self.end), target=True)
            else:
                body = known[_turn(message)]
                yield Piece((*lead, self.start, *body, self.end), target=False)

    def _check_round_trip(
        self, texts: Sequence[Text], known: dict[str, tuple[int, ...]], role: str
    ) -> None:
        places = [
            (text.id, message.content)
            for text in texts
            for message in text.messages
            if message.role in ("assistant", PLAIN)
        ]
        back = self._tokenizer.decode_batch(
            [list(known[content]) for _, content in places], skip_special_tokens=False
        )
        for (identity, content), decoded in zip(places, back, strict=True):
            if decoded != content:
                raise BadInput(
                    f"the tokenizer does not give back the target text of {role} {identity[:16]}",
                    where=self._where,
                )


def _turn(message: Message) -> str:
    return f"{message.role}{NEWLINE}{message.content}"


def _parts(messages: Iterable[Message]) -> Iterable[str]:
    for message in messages:
        yield message.content if message.role in ("assistant", PLAIN) else _turn(message)
