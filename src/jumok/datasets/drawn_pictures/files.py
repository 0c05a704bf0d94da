"""Write drawn pictures as files, in the two forms that `jumok train` reads.

OUT/train.en.tsv, OUT/train.ko.tsv     picture ⇥ caption ⇥ regions, below a line that names the columns
OUT/train/00001.png …                  the pictures that the TSVs name
OUT/train-classes/circle/00001.png …   one thing per picture; the sub-folder is the class
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from jumok.data.picture_corpora import format_regions
from jumok.datasets.drawn_pictures.captions import LANGUAGES
from jumok.datasets.drawn_pictures.generation import draw_scenes, draw_things
from jumok.errors import StorageError
from jumok.pictures.reading import write_picture
from jumok.storage.folders import disk_errors, write_file

if TYPE_CHECKING:
    from pathlib import Path


def write_split(folder: Path, split: str, count: int, *, seed: int = 1) -> None:
    """Write `count` pictures with captions and `count` pictures with classes.

    Raise if one of the two folders of the split exists.
    """
    scenes, things = draw_scenes(split, count, seed=seed), draw_things(split, count, seed=seed)
    pictures, classes = folder / split, folder / f"{split}-classes"
    if pictures.exists() or classes.exists():
        raise StorageError(
            f"{folder} already has the split {split}. Choose another folder, or move the old one away."
        )
    rows: dict[str, list[str]] = {language: [] for language in LANGUAGES}
    with disk_errors(folder, "Delete what was written, and run the command again."):
        pictures.mkdir(parents=True)
        for number, scene in enumerate(scenes, start=1):
            name = f"{number:05}.png"
            write_picture(pictures / name, scene.pixels)
            for language, lines in rows.items():
                regions = format_regions(scene.regions[language])
                lines.append(f"{split}/{name}\t{scene.captions[language]}\t{regions}\n")
        for number, thing in enumerate(things, start=1):
            class_folder = classes / thing.shape
            class_folder.mkdir(parents=True, exist_ok=True)
            write_picture(class_folder / f"{number:05}.png", thing.pixels)
        for language, lines in rows.items():
            header = f"picture\t{language}\tregions\n"
            write_file(folder / f"{split}.{language}.tsv", "".join([header, *lines]).encode())
