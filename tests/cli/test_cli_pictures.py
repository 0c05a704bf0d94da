"""The command line on pictures, from a folder or a TSV to captions, classes, scores and maps."""

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
    write_captions(tmp_path, 12)
    return tmp_path


@pytest.mark.medium
def test_captions_from_training_to_maps(call: Call, pictures: Path) -> None:
    captions, model = pictures / "captions.tsv", pictures / "run" / "model"
    picture = pictures / "halves" / "left" / "000.png"
    trained = call("train", captions, *SMALL, "--out", pictures / "run")
    assert trained.code == 0, trained.err
    assert "pictures → en · transformer" in trained.err
    assert re.search(r"\b4[348] pictures of 4 patches", trained.err)  # of 48, some may be held out
    info = json.loads(call("info", model, "--json").out)
    assert info["source"] == "pictures of 8 × 8 pixels (grey) in 4 patches of 4 × 4"
    assert info["languages"] == "pictures → en"

    written = call("translate", model, picture)
    assert written.code == 0, written.err
    assert len(written.out.splitlines()) == 1
    lines = call("translate", model, "--json", stdin=f"{picture}\n\n{picture}\n".encode()).out.splitlines()
    assert [json.loads(line)["source"] for line in lines] == [str(picture), "", str(picture)]

    (pictures / "paths.txt").write_text(f"{picture}\n")
    # A part file would not notice that a picture changed.
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
        looked = call("look", model, picture, "--out", pictures / f"maps{suffix}")
        assert looked.code == 0, looked.err
        assert (pictures / f"maps{suffix}").read_bytes().startswith(start)
    assert "data:image/png;base64," in (pictures / "maps.html").read_text()
    both = call("look", model, model, picture, "--out", pictures / "both.html")
    assert both.code == 0, both.err
    assert (pictures / "both.html").read_text().count('"picture":{"rows"') == 2
    shown = call("look", model, picture, "--target", "the left half")
    assert shown.out.startswith("the left half\n")
    assert "of each word's greatest weight" in shown.out


@pytest.mark.medium
def test_classes_from_training_to_the_roll_out(call: Call, pictures: Path) -> None:
    folder, model = pictures / "halves", pictures / "run" / "model"
    picture = folder / "top" / "003.png"
    trained = call("train", folder, "--model", "encoder-only", *SMALL, "--out", pictures / "run")
    assert trained.code == 0, trained.err
    assert "pictures → classes · encoder-only" in trained.err
    assert "4 classes" in call("info", model).out
    names = {"left", "right", "top", "bottom"}
    assert call("translate", model, picture).out.strip() in names
    answer = json.loads(call("translate", model, "--json", stdin=f"{picture}\n".encode()).out)
    assert answer["probabilities"].keys() == names
    scores = json.loads(call("evaluate", model, folder, "--json").out)
    assert scores["pictures"] == 48
    assert 0 <= scores["accuracy"] <= 1
    looked = call("look", model, picture, "--out", pictures / "map.svg")
    assert looked.out.split()[0] in names
    assert "roll-out" in (pictures / "map.svg").read_text()
    assert call("look", model, picture, "--out", pictures / "map.html").code == 0
    assert "<class>" in json.loads(_page_data(pictures / "map.html"))["explanations"][0]["source"]["tokens"]
    for option in ("--beam", "--length-penalty", "--max-length-ratio"):
        refused = call("translate", model, picture, option, "2").error_of("translate")
        assert f"{option} would be ignored" in refused
    assert "writes no caption" in call("look", model, picture, "--target", "x").error_of("look")
    assert "names the classes of pictures" in call("complete", model).error_of("complete")


def _page_data(path: Path) -> str:
    found = re.search(r'id="jumok-data">(.*?)</script>', path.read_text(), re.DOTALL)
    assert found is not None
    return found[1]


@pytest.mark.medium
def test_commands_for_text_say_that_the_model_reads_pictures(
    call: Call, pictures: Path, model: Path, pairs: Path
) -> None:
    captions, captioner = pictures / "captions.tsv", pictures / "run" / "model"
    picture = pictures / "halves" / "left" / "000.png"
    assert call("train", captions, *SMALL, "--out", pictures / "run").code == 0
    unnamed = pictures / "unnamed.tsv"
    unnamed.write_text(captions.read_text().replace("\ten\t", "\tcaption\t"))
    refused = {
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
    for arguments, message in refused.items():
        found = call(*arguments).error_of(str(arguments[0]))
        assert message in " ".join(found.split()), found


@pytest.mark.slow
def test_two_systems_are_compared_on_pictures(call: Call, pictures: Path) -> None:
    out = pictures / "comparison"
    options = ["--system", "transformer:scaled-dot", "--system", "transformer:efficient"]
    compared = call("compare", pictures / "captions.tsv", *options, *SMALL, "--out", out, "--json")
    assert compared.code == 0, compared.err
    names = [system["name"] for system in json.loads(compared.out)["systems"]]
    assert names == ["transformer-scaled-dot", "transformer-efficient"]
    assert (out / "report.html").exists()
    again = call("compare", pictures / "captions.tsv", *options, *SMALL, "--out", out, "--json")
    assert again.code == 0, again.err


@pytest.mark.medium
def test_training_and_check_name_a_truncated_picture(call: Call, pictures: Path) -> None:
    bad = pictures / "halves" / "left" / "bad.png"
    bad.write_bytes((pictures / "halves" / "left" / "000.png").read_bytes()[:45])
    stopped = call("train", pictures / "halves", "--model", "encoder-only", *SMALL, "--out", pictures / "run")
    assert stopped.code == 2
    checked = call("check", pictures / "halves")
    assert checked.code == 1, checked.err
    assert "49 pictures" in checked.out
    said = " ".join(checked.out.split())
    assert "bad.png cannot be decoded" in said
    assert "Training would be refused: Pictures that cannot be decoded: 1." in said
    assert "training will use" not in said
    report = json.loads(call("check", pictures / "halves", "--json").out)
    assert len(report["unreadable_pictures"]) == 1
    assert report["refusal"].startswith("Pictures that cannot be decoded: 1")
    bad.unlink()
    assert call("check", pictures / "halves").code == 0
    assert "bad.png cannot be decoded: image file is truncated" in stopped.err
    assert "Traceback" not in stopped.err


def test_drawn_pictures_need_a_folder(call: Call, tmp_path: Path) -> None:
    written = call("corpus", "drawn-pictures", "--out", tmp_path / "drawn", "--count", "5")
    assert written.code == 0, written.err
    assert sorted(path.name for path in (tmp_path / "drawn").iterdir()) == [
        *("train", "train-classes", "train.en.tsv", "train.ko.tsv")
    ]
    assert "give --out" in call("corpus", "drawn-pictures").error_of("corpus")
    assert "Pairs are printed" in call("corpus", "english-korean", "--out", tmp_path).error_of("corpus")
