"""Pointing measures the steps that write a name, and no step that writes a particle."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from jumok.evaluation.pointing import score_pointing
from jumok.pictures.reading import write_picture
from jumok.text.words import split_words
from jumok.types import Pair, Picture, Region
from support.picture_files import half_bright
from support.random_translators import picture_translator

if TYPE_CHECKING:
    from pathlib import Path

CAPTION = "a riverhouse knows."  # the tokenizer knows river and house


@pytest.mark.parametrize("letters", [None, 5, 1])
def test_only_the_tokens_of_the_name_are_measured(tmp_path: Path, letters: int | None) -> None:
    write_picture(tmp_path / "a.png", half_bright("left", 3))
    path, translator = str(tmp_path / "a.png"), picture_translator()
    tokenizer = translator.tokenizers.target
    ids = tokenizer.encode(CAPTION)
    assert split_words(CAPTION)[1] == "riverhouse"
    positions = [i for i, word in enumerate(tokenizer.word_of_token(CAPTION, ids)) if word == 1]
    assert len(positions) > 1
    # How many letters of the word are written when a token ends, and when it starts.
    ends = [len(tokenizer.decode(ids[positions[0] : position + 1]).strip()) for position in positions]
    starts = [0, *ends[:-1]]
    measured = [p for p, start in zip(positions, starts, strict=True) if letters is None or start < letters]
    weights = translator.attention(path, CAPTION)["cross"].weights[-1].mean(axis=0)
    row, column = divmod(int(weights[measured].mean(axis=0).argmax()), 4)  # 4 × 4 patches
    hit = Region(1, column / 4, row / 4, (column + 1) / 4, (row + 1) / 4, letters)
    miss = replace(hit, left=(column + 2) % 4 / 4, right=((column + 2) % 4 + 1) / 4)
    for region, hits in ((hit, 1), (miss, 0)):
        pair = Pair(path, CAPTION, picture=Picture("", (region,)))
        scores = score_pointing(translator, [pair], [CAPTION])
        assert scores is not None
        assert (scores.words, scores.written, scores.hits) == (1, 1, hits)
