"""Glossaries and protected strings, measured on the demo's model.

The model has never seen the translations in the glossary, which need the right particles. The 90 sentences
have one term each. The reference is the corpus's translation with the translation in the glossary inserted.
"""

from __future__ import annotations

import os
import random
import re

import pytest

import jumok
from jumok.cli.demo import MINUTES, PAIRS
from jumok.datasets.english_korean import generate
from jumok.text.korean_particles import adapt_particle

pytestmark = pytest.mark.slow

TERMS = {
    "student": ("학생", "수강생"),
    "library": ("도서관", "서재"),
    "book": ("책", "서적"),
    "books": ("책", "서적"),
    "doctor": ("의사", "의원"),
    "museum": ("박물관", "전시관"),
    "cat": ("고양이", "야옹이"),
}
"""A word of the corpus → the model's own translation of this word, and its translation in the glossary."""
GLOSSARY = jumok.Glossary({term: glossary_word for term, (_, glossary_word) in TERMS.items()})
PROTECTED_STRINGS = (
    "https://example.com/a?b=1&c=2",
    "www.jumok.org/x",
    "first.last+tag@mail.example.co.kr",
    "{name}",
    "%1$s",
    "%(count)d",
    "{{ user.name }}",
    "192.168.0.1",
    "`git push -f`",
)


@pytest.fixture(scope="module")
def translator(tmp_path_factory: pytest.TempPathFactory) -> jumok.Translator:
    """The model of the demo: in the folder that JUMOK_DEMO_MODEL names, or trained now."""
    if folder := os.environ.get("JUMOK_DEMO_MODEL"):
        return jumok.load(folder)
    out = tmp_path_factory.mktemp("demo")
    corpus = out / "train.en-ko.tsv"
    lines = (f"{pair.source}\t{pair.target}\n" for pair in generate("train", PAIRS["train"]))
    corpus.write_text("".join(lines), encoding="utf-8")
    return jumok.load(jumok.train(corpus, out=out / "run", minutes=MINUTES))


def sentences_with_a_term(count: int) -> list[tuple[str, str, str]]:
    """Return (source, target, term) of sentences with one term, whose target has the model's word for it."""
    sentences = []
    for pair in generate("test", 10_000):
        terms = [match[0] for match in re.finditer(r"\w+", pair.source) if match[0] in TERMS]
        # A sentence that begins with < has a tag such as <polite>.
        if len(terms) == 1 and not pair.source.startswith("<") and TERMS[terms[0]][0] in pair.target:
            sentences.append((pair.source, pair.target, terms[0]))
        if len(sentences) == count:
            break
    return sentences


def with_term(target: str, term: str) -> str:
    """Return a translation with the word of the glossary in place of the model's word."""
    model_word, glossary_word = TERMS[term]

    def replace(match: re.Match[str]) -> str:
        return glossary_word + adapt_particle(glossary_word, match[1], old_stem=model_word)

    return re.sub(f"{model_word}([가-힣]*)", replace, target)


def test_translations_have_the_words_of_the_glossary_and_most_equal_the_reference(
    translator: jumok.Translator,
) -> None:
    sentences = sentences_with_a_term(90)
    sources = [source for source, _, _ in sentences]
    texts = [translation.text for translation in translator.translate(sources, glossary=GLOSSARY)]
    has_term = [TERMS[term][1] in text for text, (*_, term) in zip(texts, sentences, strict=True)]
    equals_reference = [
        text == with_term(target, term) for text, (_, target, term) in zip(texts, sentences, strict=True)
    ]
    assert sum(has_term) >= 0.98 * len(sentences)
    assert sum(equals_reference) >= 0.9 * len(sentences)


def test_a_glossary_does_not_change_translations_of_sentences_without_its_terms(
    translator: jumok.Translator,
) -> None:
    sources = [pair.source for pair in generate("test", 500)]
    plain = translator.translate(sources, protect=False)
    assert translator.translate(sources, glossary=jumok.Glossary({"zebra": "얼룩말"})) == plain


def test_200_lines_keep_their_addresses_and_placeholders(translator: jumok.Translator) -> None:
    generator = random.Random(3)
    lines, expected_strings = [], []
    for pair in generate("test", 200):
        words, strings = (
            pair.source.split(),
            generator.sample(PROTECTED_STRINGS, generator.choice([1, 1, 2, 3])),
        )
        for string in strings:
            words.insert(generator.randrange(len(words)), string)
        lines.append(" ".join(words))
        expected_strings.append(strings)
    for translation, strings in zip(translator.translate(lines), expected_strings, strict=True):
        counts = [translation.text.count(string) for string in strings]
        assert counts == [1] * len(strings), translation.text
