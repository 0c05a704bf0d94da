"""Pictures from files: the pixels are those that a viewer shows, and hostile files become clear errors."""

from __future__ import annotations

import os
import struct
import sys
import zlib
from typing import TYPE_CHECKING

import numpy as np
import pytest
from PIL import Image

from jumok.errors import DataError, UnsupportedError
from jumok.pictures.reading import measure_picture, picture_data_url, read_picture, write_picture

if TYPE_CHECKING:
    from pathlib import Path


def png(width: int, height: int, data: bytes) -> bytes:
    """Return a grey PNG with this size in its header and these pixel data, which need not fit the size."""
    chunks = [
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)),
        (b"IDAT", data),
        (b"IEND", b""),
    ]
    body = b"".join(
        struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))
        for kind, content in chunks
    )
    return b"\x89PNG\r\n\x1a\n" + body


def test_written_pixels_are_read_back_unchanged(tmp_path: Path) -> None:
    pixels = np.arange(4 * 4 * 3, dtype=np.uint8).reshape(4, 4, 3)
    write_picture(tmp_path / "a.png", pixels)
    assert np.array_equal(read_picture(tmp_path / "a.png", size=4, channels=3), pixels)
    assert measure_picture(tmp_path / "a.png").grey is False


@pytest.mark.parametrize(
    ("mode", "colour", "rgb"),
    [
        ("1", 1, (255, 255, 255)),
        ("L", 100, (100, 100, 100)),
        ("LA", (100, 0), (255, 255, 255)),  # transparent: white
        ("LA", (100, 255), (100, 100, 100)),
        ("RGBA", (200, 0, 0, 255), (200, 0, 0)),
        ("RGBA", (200, 0, 0, 0), (255, 255, 255)),
        ("I;16", 100 << 8, (100, 100, 100)),  # of 16 bits, the upper 8 are kept
    ],
)
def test_every_mode_gives_the_pixels_that_it_shows(
    tmp_path: Path, mode: str, colour: int | tuple[int, ...], rgb: tuple[int, ...]
) -> None:
    """The mode of an image is Pillow's name for the kind of its pixels."""
    Image.new(mode, (2, 2), colour).save(tmp_path / "a.png")
    assert read_picture(tmp_path / "a.png", size=2, channels=3)[0, 0].tolist() == list(rgb)


def test_a_palette_with_a_transparent_colour_and_cmyk_are_read(tmp_path: Path) -> None:
    palette = Image.new("P", (2, 2), 0)
    palette.putpalette([10, 20, 30, 200, 100, 50])
    palette.save(tmp_path / "p.png", transparency=0)
    assert read_picture(tmp_path / "p.png", size=2, channels=3)[0, 0].tolist() == [255, 255, 255]
    Image.new("CMYK", (8, 8), (0, 255, 255, 0)).save(tmp_path / "c.jpg", quality=100)
    red, green, blue = read_picture(tmp_path / "c.jpg", size=8, channels=3)[4, 4].tolist()
    assert red > 200
    assert max(green, blue) < 60


def test_a_picture_is_rotated_by_its_exif_orientation(tmp_path: Path) -> None:
    image = Image.fromarray(np.array([[[255, 0, 0], [0, 0, 255]]], np.uint8))  # red left of blue
    exif = Image.Exif()
    exif[274] = 6  # the orientation: rotate by 90° clockwise, red above blue
    image.resize((2, 2), Image.Resampling.NEAREST).save(tmp_path / "a.png", exif=exif)
    pixels = read_picture(tmp_path / "a.png", size=2, channels=3)
    assert pixels[:, 0].tolist() == [[255, 0, 0], [0, 0, 255]]


def test_an_animation_gives_its_first_frame(tmp_path: Path) -> None:
    frames = [Image.new("RGB", (4, 4), colour) for colour in ("red", "blue")]
    frames[0].save(tmp_path / "a.gif", save_all=True, append_images=frames[1:])
    assert read_picture(tmp_path / "a.gif", size=4, channels=3)[0, 0].tolist() == [255, 0, 0]


def test_one_pixel_and_a_long_strip_are_stretched_to_a_square(tmp_path: Path) -> None:
    Image.new("RGB", (1, 1), (9, 8, 7)).save(tmp_path / "a.png")
    assert (read_picture(tmp_path / "a.png", size=8, channels=3) == [9, 8, 7]).all()
    Image.new("L", (5000, 1), 77).save(tmp_path / "b.png")
    assert (read_picture(tmp_path / "b.png", size=8, channels=1) == 77).all()


def test_a_cut_off_file_is_refused_by_name(tmp_path: Path) -> None:
    Image.effect_noise((64, 64), 50).save(tmp_path / "whole.png")
    (tmp_path / "cut.png").write_bytes((tmp_path / "whole.png").read_bytes()[:1000])
    with pytest.raises(DataError, match=r"cut\.png cannot be decoded.*truncated"):
        read_picture(tmp_path / "cut.png", size=8, channels=1)


# 9,000² pixels exceed the limit of jumok, 60,000² also that of Pillow.
@pytest.mark.parametrize("side", [9_000, 60_000])
def test_a_decompression_bomb_is_refused_before_it_is_decoded(tmp_path: Path, side: int) -> None:
    (tmp_path / "bomb.png").write_bytes(png(side, side, zlib.compress(bytes(1000))))
    with pytest.raises(DataError, match=r"bomb\.png is too large.*64 million pixels"):
        read_picture(tmp_path / "bomb.png", size=8, channels=1)


def test_a_huge_file_is_refused_without_reading_it(tmp_path: Path) -> None:
    with (tmp_path / "huge.png").open("wb") as file:
        file.truncate(65 * 2**20)  # sparse: takes no space
    with pytest.raises(DataError, match=r"is too large.*Received: 65 MB"):
        read_picture(tmp_path / "huge.png", size=8, channels=1)


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("text.png", b"hello"),
        ("empty.png", b""),
        ("page.eps", b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 10 10\n"),  # would start Ghostscript
        ("drawing.svg", b"<svg xmlns='http://www.w3.org/2000/svg'/>"),
    ],
)
def test_a_file_that_is_not_a_picture_is_refused(tmp_path: Path, name: str, content: bytes) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match="is not a picture that jumok reads"):
        read_picture(tmp_path / name, size=8, channels=3)


def test_random_damage_raises_no_error_other_than_data_error(tmp_path: Path) -> None:
    generator = np.random.default_rng(1)
    for suffix in ("png", "jpg", "gif", "bmp", "webp", "tif"):
        Image.effect_noise((16, 16), 50).convert("RGB").save(tmp_path / f"a.{suffix}")
        good = np.frombuffer((tmp_path / f"a.{suffix}").read_bytes(), np.uint8)
        for _ in range(20):
            bad = good.copy()
            bad[generator.integers(0, len(bad), 6)] = generator.integers(0, 256, 6)  # six random bytes
            (tmp_path / f"bad.{suffix}").write_bytes(bad.tobytes())
            try:
                pixels = read_picture(tmp_path / f"bad.{suffix}", size=8, channels=3)
            except DataError as error:
                assert f"bad.{suffix}" in str(error)  # noqa: PT017  # some damage changes pixels only
            else:
                assert pixels.shape == (8, 8, 3)


def test_missing_files_folders_and_pipes_are_refused(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.png")  # reading it would wait for ever
    for name in ("absent.png", ".", "pipe.png", "a\0b.png"):
        with pytest.raises(DataError, match="cannot be read"):
            read_picture(tmp_path / name, size=8, channels=3)


def test_floating_point_pixels_are_refused(tmp_path: Path) -> None:
    Image.new("F", (2, 2), 0.5).save(tmp_path / "a.tif")
    with pytest.raises(DataError, match=r"a\.tif are floating-point numbers"):
        read_picture(tmp_path / "a.tif", size=2, channels=1)


def test_without_pillow_the_extra_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(UnsupportedError, match=r'pip install "jumok\[pictures\]"'):
        read_picture(tmp_path / "a.png", size=2, channels=1)


def test_a_data_url_is_read_like_the_file(tmp_path: Path) -> None:
    pixels = np.arange(4 * 4 * 3, dtype=np.uint8).reshape(4, 4, 3)
    write_picture(tmp_path / "a.png", pixels)
    url = picture_data_url(tmp_path / "a.png")
    assert url.startswith("data:image/png;base64,")
    assert np.array_equal(read_picture(url, size=4, channels=3), pixels)
    assert measure_picture(url).width == 4


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("data:image/png,abc", "no part in base64"),
        ("data:", "no part in base64"),
        ("data:image/png;base64,a*b", "cannot be read"),
        ("data:image/png;base64,é", "cannot be read"),
        ("data:image/png;base64,aGVsbG8=", "is not a picture that jumok reads"),
        ("data:image/png;base64,iVBORw0KGgo=", "in a data: URL"),
    ],
)
def test_a_data_url_without_a_picture_is_refused(url: str, message: str) -> None:
    with pytest.raises(DataError, match=message):
        read_picture(url, size=4, channels=3)


def test_a_large_data_url_is_refused_before_it_is_decoded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jumok.pictures.reading.MAX_FILE_BYTES", 100)
    with pytest.raises(DataError, match="in a data: URL is too large"):
        read_picture("data:image/png;base64," + "A" * 200, size=4, channels=3)
