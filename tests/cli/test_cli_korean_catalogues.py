"""The Korean translations of the command line are complete and have the placeholders of the English texts.

No translation is unused.
"""

from __future__ import annotations

import ast
import inspect
import re
from functools import cache
from pathlib import Path
from string import Formatter

import pytest
import typer

import jumok.cli
from jumok.cli import COMMANDS
from jumok.cli.language import read_translations

SOURCE = Path(inspect.getfile(jumok)).parent
TWO_WORDS = re.compile(r"\b(?!jumok )[a-z]{2,} [a-z]{2,}")
"""Matches two words in a row, which are part of a sentence and not a name."""
SHOWS_TEXT = re.compile(r"(echo|print|line|status|(?<!Type)Error)$")
"""Matches the names of functions and errors that show text to users. A TypeError is for programmers."""
PARTICLES = re.compile(r"\([를가는을이은으]\)")
"""Matches alternative particles such as 을(를) and (으)로. A translation must be worded without them."""


@cache
def literal_ids() -> frozenset[str]:
    """Return the first argument of each call of `localise`, which is an id in messages.po."""
    ids = set()
    for path in [*(SOURCE / "cli").glob("*.py"), SOURCE / "__main__.py"]:
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "localise":
                assert isinstance(node.args[0], ast.Constant), f"{path.name}:{node.lineno}: not a literal"
                ids.add(node.args[0].value)
    return frozenset(ids)


@cache
def help_ids() -> frozenset[str]:
    """Return the paragraphs of help of all commands and their options."""
    group = typer.main.get_command(jumok.cli._app)
    commands = [group, *(group.get_command(None, name) for name in COMMANDS)]
    texts = {*COMMANDS.values(), group.epilog, "Show this message and exit."}
    for command in commands:
        texts |= {command.help, *(param.help for param in command.params)}
    return frozenset(" ".join(part.split()) for text in texts if text for part in text.split("\n\n"))


def skeleton(text: str) -> str:
    """Return a text with {} for each of its placeholders."""
    return re.sub(r"\{[^{}]*\}", "{}", text)


@cache
def library_skeletons() -> frozenset[str]:
    """Return every string of the package, with {} in place of each inserted value."""
    skeletons = set()
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                skeletons.add(skeleton(node.value))
            elif isinstance(node, ast.JoinedStr):
                parts = (part.value if isinstance(part, ast.Constant) else "{}" for part in node.values)
                skeletons.add("".join(map(str, parts)))
    return frozenset(skeletons)


def placeholders(text: str) -> set[str]:
    return {re.split(r"[.\[]", name)[0] for _, name, _, _ in Formatter().parse(text) if name}


def test_every_message_and_help_text_has_a_translation() -> None:
    assert (literal_ids() | help_ids()) - read_translations("messages").keys() == set()


def test_no_message_bypasses_localise() -> None:
    """No literal sentence is printed or raised. All sentences come from `localise` or from the library."""
    sentences = []
    for path in (SOURCE / "cli").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and SHOWS_TEXT.search(ast.unparse(node.func)):
                texts = [part.value for argument in node.args for part in literals(argument)]
                sentences += [
                    f"{path.name}:{node.lineno}: {text}" for text in texts if TWO_WORDS.search(text)
                ]
    assert sentences == []


def literals(node: ast.expr) -> list[ast.Constant]:
    """Return the literal strings of an argument, without the strings in calls of functions."""
    if isinstance(node, ast.Constant):
        return [node] if isinstance(node.value, str) else []
    if isinstance(node, ast.JoinedStr):
        return [part for part in node.values if isinstance(part, ast.Constant)]
    if isinstance(node, ast.IfExp):
        return [*literals(node.body), *literals(node.orelse)]
    return [*literals(node.left), *literals(node.right)] if isinstance(node, ast.BinOp) else []


def test_no_translation_is_unused() -> None:
    assert read_translations("messages").keys() - literal_ids() - help_ids() == set()


def test_every_translated_text_of_the_library_occurs_in_the_library() -> None:
    """A translated text may be a part of a longer string, and may begin or end with a value."""
    all_strings = "\n".join(library_skeletons())
    ids = read_translations("library")
    assert {text for text in ids if skeleton(text).strip("{} ") not in all_strings} == set()


@pytest.mark.parametrize("name", ["messages", "library", "typer"])
def test_translations_keep_the_placeholders(name: str) -> None:
    for message, translation in read_translations(name).items():
        # `plural` is the "s" of an English plural, which Korean does not have.
        assert placeholders(translation) == placeholders(message) - {"plural"}, message
        assert not PARTICLES.search(translation), translation


def test_no_file_has_the_same_id_twice() -> None:
    for path in (SOURCE / "cli" / "korean").glob("*.po"):
        entries = path.read_text(encoding="utf-8").count("\nmsgid ") - 1  # without the header
        assert len(read_translations(path.stem)) == entries, f"{path.name} has an id twice"
