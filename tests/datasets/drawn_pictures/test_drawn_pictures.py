"""A seed gives the same drawn pictures, their captions are true, and regions cover the things."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import pytest

from jumok.data.corpora import open_corpus
from jumok.datasets.drawn_pictures import SHAPES, draw_scenes, draw_things, write_split
from jumok.datasets.drawn_pictures.things import MAX_REACH, SIDE, Shape, Thing, coverage
from jumok.errors import DataError, StorageError
from jumok.text.words import split_words

if TYPE_CHECKING:
    from pathlib import Path

COUNT = 150


def test_a_seed_gives_the_same_pictures_and_another_seed_or_split_gives_other_pictures() -> None:
    first, again = list(draw_scenes("train", 20)), list(draw_scenes("train", 20))
    assert all(np.array_equal(a.pixels, b.pixels) for a, b in zip(first, again, strict=True))
    assert [a.captions for a in first] == [b.captions for b in again]
    for others in (draw_scenes("train", 20, seed=2), draw_scenes("test", 20)):
        assert all(not np.array_equal(a.pixels, b.pixels) for a, b in zip(first, others, strict=True))
    with pytest.raises(DataError, match=r"no split 'tran'.*train"):
        draw_scenes("tran", 1)


def test_regions_cover_the_drawn_pixels_and_touch_them_on_every_side() -> None:
    """The regions cover every pixel that is not background. Each box is as small as its thing."""
    for picture in draw_scenes("train", COUNT):
        boxes = picture.regions["en"]
        assert boxes
        assert len(boxes) == len(picture.things)
        covered = np.zeros((SIDE, SIDE), dtype=bool)
        for box, thing in zip(boxes, picture.things, strict=True):
            edges = [round(edge * SIDE) for edge in (box.left, box.top, box.right, box.bottom)]
            left, top, right, bottom = edges
            inside = coverage(thing)[top:bottom, left:right] > 0
            assert inside[0].any() and inside[-1].any() and inside[:, 0].any() and inside[:, -1].any()  # noqa: PT018
            covered[top:bottom, left:right] = True
        background = np.median(picture.pixels[~covered], axis=0)
        is_drawn = np.abs(picture.pixels - background).max(axis=2) > 30
        assert not (is_drawn & ~covered).any()
        assert (is_drawn & covered).sum() > 20


@pytest.mark.parametrize("shape", SHAPES, ids=[shape.english for shape in SHAPES])
def test_no_shape_reaches_farther_than_max_reach(shape: Shape) -> None:
    y, x = np.mgrid[-2:2:401j, -2:2:401j]
    inside = shape.contains(x, y)
    assert 1.2 < inside.sum() * 0.01**2 < 4.0  # the area, in squares of the radius
    assert np.maximum(abs(x), abs(y))[inside].max() <= MAX_REACH


def test_things_do_not_overlap_and_do_not_touch_the_edge() -> None:
    for picture in draw_scenes("train", COUNT):
        # The number of things at each pixel: (row, column).
        num_things = np.sum([coverage(thing) > 0 for thing in picture.things], axis=0)
        assert num_things.max() == 1
        assert not num_things[[0, -1]].any()
        assert not num_things[:, [0, -1]].any()


def test_captions_describe_the_things_that_are_drawn() -> None:
    kinds = set()
    for picture in draw_scenes("train", COUNT):
        english, korean = (split_words(picture.captions[code]) for code in ("en", "ko"))
        for code, words in (("en", english), ("ko", korean)):
            for region, thing in zip(picture.regions[code], picture.things, strict=True):
                noun = thing.shape.english if code == "en" else thing.shape.korean
                assert words[region.word].startswith(noun)
                if code == "ko" and words[region.word] != noun:  # with a particle
                    assert region.letters == len(noun)
                else:
                    assert region.letters is None
                colour, size = words[region.word - 1], words[region.word - 2]
                assert (colour, size.lower()) in {
                    (thing.colour.english, thing.size.english),
                    (thing.colour.korean, thing.size.korean),
                }
        kinds.add(" ".join(english[:2]) if english[0] == "There" else next(w for w in english if w in WHERE))
        if len(picture.things) == 2 and english[0] == "A":
            assert _are_where_the_caption_says(picture.things, english)
    assert kinds == {"There is", "There are", "above", "below", "left", "right"}


WHERE = ("above", "below", "left", "right")


def _are_where_the_caption_says(things: tuple[Thing, ...], words: list[str]) -> bool:
    """Return whether the first thing is above, below, left or right of the second, as the caption says.

    In pixels, y grows downwards.
    """
    subject, other = things
    across, down = other.x - subject.x, other.y - subject.y
    word = next(word for word in words if word in WHERE)
    return {
        "left": across > abs(down),
        "right": -across > abs(down),
        "above": down > abs(across),
        "below": -down > abs(across),
    }[word]


@pytest.mark.parametrize(
    ("noun", "subject"), [("원", "원이"), ("별", "별이"), ("하트", "하트가"), ("십자가", "십자가가")]
)
def test_korean_nouns_take_the_particle_of_their_last_sound(noun: str, subject: str) -> None:
    words = {word for picture in draw_scenes("train", COUNT) for word in split_words(picture.captions["ko"])}
    assert {word for word in words if word.startswith(noun)} <= {noun, subject}
    assert subject in words


def test_a_written_split_is_read_like_any_corpus_of_pictures(tmp_path: Path) -> None:
    write_split(tmp_path, "valid", 12)
    drawn = list(draw_scenes("valid", 12))
    for language in ("en", "ko"):
        corpus = open_corpus(tmp_path / f"valid.{language}.tsv")
        pairs = list(corpus.pairs())
        assert corpus.target_language == language
        assert [pair.target for pair in pairs] == [picture.captions[language] for picture in drawn]
        assert [pair.picture.regions for pair in pairs if pair.picture] == [
            picture.regions[language] for picture in drawn
        ]
    classes = [pair.target for pair in open_corpus(tmp_path / "valid-classes").pairs()]
    assert sorted(classes) == sorted(picture.shape for picture in draw_things("valid", 12))
    assert all(first <= second for first, second in pairwise(classes))
    with pytest.raises(StorageError, match="already has the split valid"):
        write_split(tmp_path, "valid", 1)
