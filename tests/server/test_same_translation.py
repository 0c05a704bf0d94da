"""A text has the same translation on the command line, in Python, from a server and on the live page."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

from jumok.inference.loading import load
from jumok.server.viewer.service import ExplanationService, NamedTranslator
from jumok.text.sentences import split_sentences
from support.serve_models import DIGITS
from support.serve_process import serving

if TYPE_CHECKING:
    from pathlib import Path

    from support.serve_process import RunningServer

SENTENCE_ENDS = (".", "!", "?", "...", '."')


def make_texts(count: int) -> list[str]:
    """Return random texts of two to nine sentences."""
    generator = random.Random(5)

    def sentence() -> str:
        words = " ".join(generator.choices(DIGITS["en"], k=generator.randint(1, 7)))
        return words.capitalize() + generator.choice(SENTENCE_ENDS)

    return [" ".join(sentence() for _ in range(generator.randint(2, 9))) for _ in range(count)]


def translate_on_the_command_line(model: Path, texts: list[str]) -> list[str]:
    command = [sys.executable, "-m", "jumok", "translate", str(model)]
    result = subprocess.run(command, input="\n".join(texts), capture_output=True, text=True, check=True)
    return result.stdout.splitlines()


def translate_on_the_live_page(model: Path, texts: list[str]) -> list[str]:
    """Send the live page's requests for explanations.

    An answer explains the first sentence of its text, and has the translation of the whole text.
    """
    service = ExplanationService([NamedTranslator("model", load(model))])
    translations = []
    for text in texts:
        answer = json.loads(service.handle("explain", json.dumps({"sentence": text}).encode()))
        assert answer["source"]["text"] == split_sentences(text)[0]
        translations.append(answer["whole_text"]["text"])
    return translations


def translate_by_the_server(server: RunningServer, texts: list[str], per_request: int = 50) -> list[str]:
    translations = []
    for start in range(0, len(texts), per_request):
        fields = {"q": texts[start : start + per_request], "source": "en", "target": "de"}
        answer = server.post("/translate", fields)
        assert answer.status == 200, answer.text
        translations += answer.json["translatedText"]
    return translations


def check_all_interfaces(model: Path, server: RunningServer, texts: list[str]) -> None:
    translator = load(model)
    translated_in_python = [translation.text for translation in translator.translate(texts)]
    # Each sentence of a text has the same translation as alone, and no sentence is lost.
    for text, translation in zip(texts, translator.translate(texts), strict=True):
        sentences = split_sentences(text)
        assert len(sentences) >= 2
        assert [source for source, _ in translation.parts] == sentences
        translated_alone = [
            sentence_translation.text for sentence_translation in translator.translate(sentences)
        ]
        assert [part for _, part in translation.parts] == translated_alone
        assert translation.text == " ".join(translated_alone).strip()
    assert [translation.text for translation in translator.stream(texts)] == translated_in_python
    assert translate_on_the_command_line(model, texts) == translated_in_python
    assert translate_by_the_server(server, texts) == translated_in_python
    assert translate_on_the_live_page(model, texts) == translated_in_python


def test_every_interface_gives_the_same_translation(model: Path, shared_server: RunningServer) -> None:
    check_all_interfaces(model, shared_server, make_texts(12))


@pytest.mark.slow
def test_every_interface_gives_the_same_translation_of_500_texts(model: Path, tmp_path: Path) -> None:
    with serving(tmp_path, model) as server:
        check_all_interfaces(model, server, make_texts(500))
