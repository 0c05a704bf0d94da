"""Drawn pictures: simple things on a grey background, with English and Korean captions and gold regions.

    for picture in draw_scenes("train", 6_000):      one to three things; captions say what is where
        ...
    for picture in draw_things("train", 3_000):      one thing; its shape is the class
        ...

A picture determines its captions. The same seed gives the same pictures. No picture is in two splits.
"""

from jumok.datasets.drawn_pictures.files import write_split
from jumok.datasets.drawn_pictures.generation import SPLITS, DrawnPicture, draw_scenes, draw_things
from jumok.datasets.drawn_pictures.things import COLOURS, SHAPES

__all__ = ["COLOURS", "SHAPES", "SPLITS", "DrawnPicture", "draw_scenes", "draw_things", "write_split"]
