"""Read picture files that are not trusted, and write pixels as a file.

A file may be incomplete, state a wrong size, be an animation, be rotated by its EXIF data or have any of
Pillow's modes (kinds of pixels). The result is an array (size, size, channel) of bytes, or a DataError that
names the file. Only formats that Pillow decodes by itself are accepted: EPS, for example, would start
Ghostscript.

Instead of a path, a picture can be given as a data: URL in base64 (RFC 2397), as web pages and requests send
it.
"""

from __future__ import annotations

import base64
import io
import struct
import warnings
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from jumok.errors import DataError, StorageError, UnsupportedError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

PICTURE_SUFFIXES = (".png", ".jpg", ".jpeg", ".gif", ".bmp", ".webp", ".tif", ".tiff", ".ppm", ".pgm")
FORMATS = ("PNG", "JPEG", "GIF", "BMP", "WEBP", "TIFF", "PPM")
MAX_FILE_BYTES = 64 * 2**20
MAX_PIXELS = 64_000_000
_GREY_MODES = ("1", "L", "LA", "La", "I;16", "I;16L", "I;16B", "I;16N", "I")
# What Pillow raises on damaged or hostile files.
_DECODING_ERRORS = (
    OSError,
    SyntaxError,
    ValueError,
    EOFError,
    IndexError,
    KeyError,
    TypeError,
    OverflowError,
    MemoryError,
    struct.error,
)


@dataclass(frozen=True, slots=True)
class PictureFacts:
    """Facts in the header of a picture file.

    `width` and `height` are those of the stored pixels, before the rotation that the EXIF data may ask for.
    """

    width: int
    height: int
    grey: bool  # whether the format stores no colours; False for a palette of greys


def measure_picture(path: str | Path) -> PictureFacts:
    """Return the size of a picture and whether it is grey, without decoding its pixels."""
    with _open_picture(path) as image:
        width, height = image.size
        return PictureFacts(width, height, grey=image.mode in _GREY_MODES)


def picture_name(path: str | Path) -> str:
    """Return the name of a picture for titles: the name of its file, or "picture" for a data: URL."""
    return "picture" if _is_data_url(path) else Path(path).name


def picture_data_url(path: str | Path) -> str:
    """Check the size and the format of a picture file, and return the file as a data: URL."""
    with _open_picture(path) as image:
        media_type = str(image.get_format_mimetype())
    return f"data:{media_type};base64,{base64.b64encode(Path(path).read_bytes()).decode()}"


def read_picture(path: str | Path, *, size: int, channels: int) -> NDArray[np.uint8]:
    """Return the pixels (size, size, channels): 3 channels are RGB, 1 is grey.

    The picture is rotated as its EXIF data say and stretched to a square. Transparent pixels become white. If
    the file is an animation, its first frame is read.
    """
    with _open_picture(path) as image:
        from PIL import Image, ImageOps  # optional

        upright = ImageOps.exif_transpose(image)
        flat = _opaque(upright, _label(path)).convert("RGB" if channels == 3 else "L")
        if flat.size != (size, size):
            flat = flat.resize((size, size), Image.Resampling.BILINEAR)
        return np.asarray(flat, dtype=np.uint8).reshape(size, size, channels)


def write_picture(path: Path, pixels: NDArray[np.uint8]) -> None:
    """Write pixels (height, width, 3) or (height, width, 1) as a file in the format of its suffix."""
    image_module = _pillow()
    try:
        image_module.fromarray(pixels.squeeze(2) if pixels.shape[2] == 1 else pixels).save(path)
    except OSError as error:
        raise StorageError(f"The picture {path} could not be written: {error.strerror or error}.") from error


def _pillow() -> Any:
    try:
        from PIL import Image  # optional
    except ImportError as error:
        raise UnsupportedError(
            'Pictures need Pillow, which is not installed. Run: pip install "jumok[pictures]".'
        ) from error
    return Image


@contextmanager
def _open_picture(path: str | Path) -> Iterator[Any]:
    """Open a picture and check its size. What Pillow raises while the picture is used becomes a DataError."""
    image_module = _pillow()
    label = _label(path)
    other_advice = "" if _is_data_url(path) else ", or take it out of the corpus"
    file = _decode_data_url(str(path)) if _is_data_url(path) else _check_file(Path(path))
    try:
        with warnings.catch_warnings():
            # Pillow warns about large pictures, whose size is checked below, and about odd metadata.
            warnings.simplefilter("ignore")
            with image_module.open(file, formats=FORMATS) as image:
                _check_size(label, *image.size)
                yield image
    except image_module.DecompressionBombError:
        raise _too_large_error(label, "hundreds of millions of pixels") from None
    except image_module.UnidentifiedImageError:
        raise DataError(
            f"The file {label} is not a picture that jumok reads ({', '.join(FORMATS)}). Convert it to PNG "
            f"or JPEG{other_advice}."
        ) from None
    except _DECODING_ERRORS as error:
        raise DataError(
            f"The picture {label} cannot be decoded: {error or type(error).__name__}. The file is damaged or "
            f"incomplete. Copy it again from its origin{other_advice}."
        ) from None


def _is_data_url(path: str | Path) -> bool:
    return str(path)[:5].lower() == "data:"


def _label(path: str | Path) -> str:
    """Return how a message names a picture after "The picture" or "The file".

    A message does not quote a data: URL, which may be megabytes long.
    """
    return "in a data: URL" if _is_data_url(path) else str(path)


def _decode_data_url(url: str) -> io.BytesIO:
    """Return the bytes of a data: URL in base64."""
    head, comma, text = url.partition(",")
    if len(text) * 3 // 4 > MAX_FILE_BYTES:
        raise _too_large_error(_label(url), f"{len(text) * 3 / 4 / 2**20:,.0f} MB")
    try:
        if not comma or not head.lower().endswith(";base64"):
            raise ValueError("it has no part in base64")
        return io.BytesIO(base64.b64decode(text, validate=True))
    except ValueError as error:
        raise DataError(
            f"The data: URL of the picture cannot be read: {error}. Received: {url[:40]!r}. It has the form "
            "data:image/png;base64,… with the bytes of the file."
        ) from None


def _check_file(path: Path) -> Path:
    try:
        if not path.is_file():
            what = "It is not a file." if path.exists() else "There is no such file."
            raise DataError(f"The picture {path} cannot be read. {what} Check the path.")
        num_bytes = path.stat().st_size
    except (OSError, ValueError) as error:  # ValueError: a null character in the path
        raise DataError(f"The picture {str(path)!r} cannot be read: {error}. Check the path.") from None
    if num_bytes > MAX_FILE_BYTES:
        raise _too_large_error(str(path), f"{num_bytes / 2**20:,.0f} MB")
    return path


def _check_size(label: str, width: int, height: int) -> None:
    if width * height > MAX_PIXELS:
        raise _too_large_error(label, f"{width:,} × {height:,} pixels")


def _too_large_error(label: str, received: str) -> DataError:
    return DataError(
        f"The picture {label} is too large: a picture may have at most {MAX_PIXELS // 10**6} million pixels "
        f"and {MAX_FILE_BYTES // 2**20} MB. Received: {received}. "
        "Make it smaller; the model sees a small copy."
    )


def _opaque(image: Any, label: str) -> Any:
    """Return the picture in a mode that converts to RGB or grey without clipping.

    If pixels are transparent, they are put on a white background.
    """
    image_module = _pillow()
    # 16 bits per pixel, in mode "I" as numbers of 32 bits. Pillow would clip them to 255 instead of scaling.
    if image.mode.startswith("I"):
        values = np.asarray(image).astype(np.int64).clip(0, 2**16 - 1)
        return image_module.fromarray((values >> 8).astype(np.uint8))
    if image.mode == "F":
        raise DataError(
            f"The pixels of the picture {label} are floating-point numbers, whose scale is unknown. "
            "Convert it to PNG or JPEG, or take it out of the corpus."
        )
    if image.mode in ("RGBA", "LA", "PA", "La", "RGBa") or "transparency" in image.info:
        layer = image.convert("RGBA")
        background = image_module.new("RGBA", layer.size, "white")
        return image_module.alpha_composite(background, layer)
    return image
