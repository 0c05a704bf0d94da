"""The command line trains models on pictures with captions or classes, and all other commands use them."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from support.picture_files import write_captions

if TYPE_CHECKING:
    from pathlib import Path

    from support.cli_calls import Call

SMALL = [
    *("--steps", "3", "--set", "model.width=16", "--set", "model.heads=2", "--set", "model.feed_forward=16"),
    *("--set", "source.patch_size=4"),
]


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    """A folder with pictures in subfolders of `halves`, and with `captions.tsv`."""
    write_captions(tmp_path, 12)
    return tmp_path


@pytest.mark.medium
def test_a_caption_model_is_trained_and_every_command_works_with_it(call: Call, pictures: Path) -> None:
    captions, model = pictures / "captions.tsv", pictures / "run" / "model"
    picture = pictures / "halves" / "left" / "000.png"
    training = call("train", captions, *SMALL, "--out", pictures / "run")
    assert training.code == 0, training.err
    assert "pictures → en · transformer" in training.err
    assert re.search(r"\b4[348] pictures of 4 patches", training.err)  # of 48, some may be held out
    info = json.loads(call("info", model, "--json").out)
    assert info["source"] == "pictures of 8 × 8 pixels (grey) in 4 patches of 4 × 4"
    assert info["languages"] == "pictures → en"

    caption = call("translate", model, picture)
    assert caption.code == 0, caption.err
    assert len(caption.out.splitlines()) == 1
    lines = call("translate", model, "--json", stdin=f"{picture}\n\n{picture}\n".encode()).out.splitlines()
    assert [json.loads(line)["source"] for line in lines] == [str(picture), "", str(picture)]

    (pictures / "paths.txt").write_text(f"{picture}\n")
    # Pictures are refused because a part file does not detect that a picture has changed.
    bulk = ("--out", pictures / "bulk.txt", "--workers", "1")
    for command, file in (("translate", pictures / "paths.txt"), ("evaluate", captions)):
        refused = call(command, model, file, *bulk)
        assert "Pictures are not translated in parts" in refused.error_of(command)
    assert not list(pictures.glob("bulk*"))

    scores = json.loads(call("evaluate", model, captions, "--json").out)
    assert {"bleu", "chrf", "pointing", "pointing_words"} <= scores.keys()
    assert scores["pointing_words"] == 48

    starts = {".svg": b"<svg", ".png": b"\x89PNG", ".html": b"<!doctype html>", ".json": b"{", ".npz": b"PK"}
    for suffix, start in starts.items():
        look = call("look", model, picture, "--out", pictures / f"maps{suffix}")
        assert look.code == 0, look.err
        assert (pictures / f"maps{suffix}").read_bytes().startswith(start)
    assert "data:image/png;base64," in (pictures / "maps.html").read_text()
    two_models = call("look", model, model, picture, "--out", pictures / "both.html")
    assert two_models.code == 0, two_models.err
    assert (pictures / "both.html").read_text().count('"picture":{"rows"') == 2
    terminal = call("look", model, picture, "--target", "the left half")
    assert terminal.out.startswith("the left half\n")
    assert "of each word's greatest weight" in terminal.out


@pytest.mark.medium
def test_a_classifier_is_trained_and_every_command_works_with_it(call: Call, pictures: Path) -> None:
    folder, model = pictures / "halves", pictures / "run" / "model"
    picture = folder / "top" / "003.png"
    training = call("train", folder, "--model", "encoder-only", *SMALL, "--out", pictures / "run")
    assert training.code == 0, training.err
    assert "pictures → classes · encoder-only" in training.err
    assert "4 classes" in call("info", model).out
    names = {"left", "right", "top", "bottom"}
    assert call("translate", model, picture).out.strip() in names
    answer = json.loads(call("translate", model, "--json", stdin=f"{picture}\n".encode()).out)
    assert answer["probabilities"].keys() == names
    scores = json.loads(call("evaluate", model, folder, "--json").out)
    assert scores["pictures"] == 48
    assert 0 <= scores["accuracy"] <= 1
    look = call("look", model, picture, "--out", pictures / "map.svg")
    assert look.out.split()[0] in names
    assert "roll-out" in (pictures / "map.svg").read_text()
    assert call("look", model, picture, "--out", pictures / "map.html").code == 0
    assert "<class>" in json.loads(_page_data(pictures / "map.html"))["explanations"][0]["source"]["tokens"]
    for option in ("--beam", "--engine", "--length-penalty", "--max-length-ratio"):
        refused = call("translate", model, picture, option, "2").error_of("translate")
        assert f"{option} would be ignored" in refused
    paths = pictures / "paths.txt"
    paths.write_text(f"{picture}\n")
    refused = call("translate", model, paths, "--out", pictures / "classes.txt", "--shortlist").error_of(
        "translate"
    )
    assert "--out, --shortlist would be ignored" in refused
    assert "writes no caption" in call("look", model, picture, "--target", "x").error_of("look")
    assert "names the classes of pictures" in call("complete", model).error_of("complete")


def _page_data(path: Path) -> str:
    match = re.search(r'id="jumok-data">(.*?)</script>', path.read_text(), re.DOTALL)
    assert match is not None
    return match[1]


@pytest.mark.medium
def test_commands_for_text_say_that_the_model_reads_pictures(
    call: Call, pictures: Path, model: Path, pairs: Path
) -> None:
    captions, captioner = pictures / "captions.tsv", pictures / "run" / "model"
    picture = pictures / "halves" / "left" / "000.png"
    assert call("train", captions, *SMALL, "--out", pictures / "run").code == 0
    unnamed = pictures / "unnamed.tsv"
    unnamed.write_text(captions.read_text().replace("\ten\t", "\tcaption\t"))
    messages = {
        ("serve", captioner, "--check"): "All of these models read pictures",
        ("look", captioner, model, "--live"): "models that read text or models that read pictures, not both",
        ("look", captioner, model, picture, "--out", pictures / "x.html"): "only models that read pictures",
        ("shortlist", captioner, captions): "reads pictures",
        ("translate", captioner, picture, "--shortlist"): "reads pictures",
        ("evaluate", captioner, pairs): "is scored on pictures with captions",
        ("evaluate", model, unnamed): "is scored on sentence pairs",
        ("train", captions, "--model", "recurrent", "--out", pictures / "r"): "A recurrent model reads text",
        ("compare", captions, "--model", "recurrent", "--out", pictures / "c"): "recurrent",
    }
    for arguments, message in messages.items():
        error = call(*arguments).error_of(str(arguments[0]))
        assert message in " ".join(error.split()), error


@pytest.mark.slow
def test_two_systems_are_compared_on_pictures(call: Call, pictures: Path) -> None:
    out = pictures / "comparison"
    options = ["--system", "transformer:scaled-dot", "--system", "transformer:efficient"]
    comparison = call("compare", pictures / "captions.tsv", *options, *SMALL, "--out", out, "--json")
    assert comparison.code == 0, comparison.err
    names = [system["name"] for system in json.loads(comparison.out)["systems"]]
    assert names == ["transformer-scaled-dot", "transformer-efficient"]
    assert (out / "report.html").exists()
    again = call("compare", pictures / "captions.tsv", *options, *SMALL, "--out", out, "--json")
    assert again.code == 0, again.err


@pytest.mark.medium
def test_training_and_check_name_a_truncated_picture(call: Call, pictures: Path) -> None:
    truncated = pictures / "halves" / "left" / "bad.png"
    truncated.write_bytes((pictures / "halves" / "left" / "000.png").read_bytes()[:45])
    training = call(
        "train", pictures / "halves", "--model", "encoder-only", *SMALL, "--out", pictures / "run"
    )
    assert training.code == 2
    check = call("check", pictures / "halves")
    assert check.code == 1, check.err
    assert "49 pictures" in check.out
    output = " ".join(check.out.split())
    assert "bad.png cannot be decoded" in output
    assert "Training would be refused: Pictures that cannot be decoded: 1." in output
    assert "training will use" not in output
    report = json.loads(call("check", pictures / "halves", "--json").out)
    assert len(report["unreadable_pictures"]) == 1
    assert report["refusal"].startswith("Pictures that cannot be decoded: 1")
    truncated.unlink()
    assert call("check", pictures / "halves").code == 0
    assert "bad.png cannot be decoded: image file is truncated" in training.err
    assert "Traceback" not in training.err


def test_the_corpus_of_drawn_pictures_needs_an_output_folder(call: Call, tmp_path: Path) -> None:
    result = call("corpus", "drawn-pictures", "--out", tmp_path / "drawn", "--count", "5")
    assert result.code == 0, result.err
    assert sorted(path.name for path in (tmp_path / "drawn").iterdir()) == [
        *("train", "train-classes", "train.en.tsv", "train.ko.tsv")
    ]
    assert "give --out" in call("corpus", "drawn-pictures").error_of("corpus")
    assert "Pairs are printed" in call("corpus", "english-korean", "--out", tmp_path).error_of("corpus")
