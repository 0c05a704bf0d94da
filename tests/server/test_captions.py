"""Captions over HTTP equal the captions of the library. Invalid requests for captions are refused."""

from __future__ import annotations

import struct
import zlib
from typing import TYPE_CHECKING

import pytest

import jumok
from jumok.config.recipe import make_recipe
from jumok.errors import ModelFolderError, UnsupportedError
from jumok.pictures.reading import write_picture
from jumok.server.language_pairs import read_language_pairs
from jumok.storage.model_folder import ModelCard, save_model
from jumok.storage.tensors import module_weights
from jumok.text.tokenizer_files import tokenizers_to_files
from support.picture_files import half_bright
from support.random_translators import SMALL, picture_translator
from support.serve_process import serving_in_thread

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from support.serve_process import RunningServer


@pytest.fixture(scope="module")
def caption_model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model from pictures to German captions, with random weights."""
    translator = picture_translator()
    settings = {"model.encoder_layers": 2, "model.decoder_layers": 2, "search.max_length_ratio": 0.5}
    source = {"source.kind": "pictures", "source.size": 8, "source.patch_size": 2, "source.colour": "grey"}
    recipe = make_recipe(
        {"languages": {"target": "de"}, "text": {"shared": False}},
        **{f"model.{name}": value for name, value in SMALL.items()},
        **settings,
        **source,
    )
    folder = tmp_path_factory.mktemp("captioner") / "model"
    files = tokenizers_to_files(translator.tokenizers)
    save_model(folder, ModelCard(recipe), module_weights(translator.model), files, checked=True)
    return folder


@pytest.fixture(scope="module")
def captioning_server(
    caption_model: Path, model: Path, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[RunningServer]:
    with serving_in_thread(tmp_path_factory.mktemp("captions"), caption_model, model) as server:
        yield server


def one_colour_png(width: int, height: int) -> bytes:
    """Return a black PNG. Its few bytes decode to width × height pixels."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0))
    rows = zlib.compressobj()
    packed = b"".join(rows.compress(bytes(1 + width)) for _ in range(height)) + rows.flush()
    return b"\x89PNG\r\n\x1a\n" + head + chunk(b"IDAT", packed) + chunk(b"IEND", b"")


def test_a_caption_over_http_equals_that_of_the_library(
    captioning_server: RunningServer, caption_model: Path, tmp_path: Path
) -> None:
    picture = tmp_path / "picture.png"
    write_picture(picture, half_bright("top", 3))
    answer = captioning_server.post_file("picture.png", picture.read_bytes(), path="/v1/caption", target="de")
    [expected] = jumok.load(caption_model).translate([str(picture)])
    assert (answer.status, answer.json["text"]) == (200, expected.text)
    assert answer.json["score"] == pytest.approx(expected.score, abs=1e-4)
    assert 0 <= answer.json["confidence"] <= 1
    # The server's other model translates texts. The caption model has no source language, so it adds no
    # language to /languages. The OpenAPI document of this server has the route for captions.
    assert (
        captioning_server.post("/translate", {"q": "one two", "source": "en", "target": "de"}).status == 200
    )
    assert captioning_server.get("/spec").json["paths"]["/v1/caption"]["post"]["operationId"] == "caption"
    assert [language["code"] for language in captioning_server.get("/languages").json] == ["en", "de"]


def test_a_caption_request_that_cannot_be_answered_is_refused(captioning_server: RunningServer) -> None:
    valid_png = one_colour_png(8, 8)
    for data, fields, status, message in (
        (b"no picture", {"target": "de"}, 400, "is not a picture that jumok reads"),
        (one_colour_png(64, 64)[:-30], {"target": "de"}, 400, "damaged or incomplete"),
        (one_colour_png(5000, 5000), {"target": "de"}, 400, "5,000 × 5,000 pixels, and at most 16 million"),
        (valid_png, {"target": "fr"}, 400, "no model writes captions; known: de"),
        (valid_png, {}, 400, "missing target parameter"),
        (b"x" * 3_000_000, {"target": "de"}, 413, "The request is too large"),
    ):
        answer = captioning_server.post_file("picture.png", data, path="/v1/caption", **fields)
        assert (answer.status, message in answer.json["error"]) == (status, True), answer.json
    assert (
        captioning_server.post_file("picture.png", valid_png, path="/v1/caption", target="de").status == 200
    )


def test_a_server_without_a_caption_model_refuses_caption_requests(shared_server: RunningServer) -> None:
    answer = shared_server.post_file("picture.png", one_colour_png(8, 8), path="/v1/caption", target="de")
    assert (answer.status, answer.json["error"]) == (
        400,
        "Invalid request: target parameter is de, a language in which no model writes captions; known: none",
    )
    assert "/v1/caption" not in shared_server.get("/spec").json["paths"]


def test_a_server_needs_a_text_model_and_at_most_one_caption_model_per_language(
    caption_model: Path, model: Path
) -> None:
    assert read_language_pairs([caption_model, model]).captions["de"].model_index == 0
    with pytest.raises(UnsupportedError, match="at least one model that translates text"):
        read_language_pairs([caption_model])
    with pytest.raises(ModelFolderError, match="both write captions in de"):
        read_language_pairs([model, caption_model, caption_model])
