"""Pictures: reading their files safely, and cutting them into patches. numpy, and Pillow for the files."""

from jumok.pictures.patches import cut_patches, join_patches, patches_in_region
from jumok.pictures.reading import (
    PICTURE_SUFFIXES,
    PictureFacts,
    measure_picture,
    picture_data_url,
    picture_name,
    read_picture,
    write_picture,
)

__all__ = [
    "PICTURE_SUFFIXES",
    "PictureFacts",
    "cut_patches",
    "join_patches",
    "measure_picture",
    "patches_in_region",
    "picture_data_url",
    "picture_name",
    "read_picture",
    "write_picture",
]
