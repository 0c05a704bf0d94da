"""Options of `jumok serve`: what `--check` reports, the shortlist, and models that are refused."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import jumok
from jumok.cli import main
from jumok.inference.shortlist import Shortlist
from jumok.storage.model_folder import store_shortlist
from support.serve_process import serving


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (
            [],
            [
                "listens   http://127.0.0.1:5000, reachable from this machine only",
                "English → German",
                "keys      none",
            ],
        ),
        (
            ["--host", "0.0.0.0"],
            ["OTHER MACHINES TOO", "unsafe    Other machines can reach the server, and it requires no key"],
        ),
        (["--requests-per-minute", "0"], ["unsafe    Requests per minute are not limited"]),
        (["--allow-origin", "*"], ["unsafe    --allow-origin takes origins"]),
        (["--host", "::1"], ["listens   http://[::1]:5000, reachable from this machine only"]),
        (["--proxy", "nginx", "--proxy", "10.0.0.0/8"], ["unsafe    --proxy takes an address or a network"]),
        (["--allow-host", "*"], ["unsafe    --allow-host takes a name"]),
        (["--host", "0.0.0.0"], ["hosts     localhost, 0.0.0.0, any IP address\n"]),
        (
            ["--host", "0.0.0.0", "--proxy", "*"],
            ["cross the network unencrypted", "lets every client choose its own address"],
        ),
    ],
)
def test_check_describes_the_server_and_what_is_unsafe(
    model: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], expected: list[str]
) -> None:
    with pytest.raises(SystemExit) as end:
        main(["serve", str(model), "--check", *arguments])
    output = capsys.readouterr().out
    assert end.value.code == 0
    assert all(line in output for line in expected), output


def test_check_describes_shortlists_and_refuses_a_model_without_one(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = shutil.copytree(model, tmp_path / "model")
    with pytest.raises(SystemExit) as end:
        main(["serve", str(folder), "--check", "--shortlist"])
    assert end.value.code == 2
    assert "has no shortlist. Learn one with `jumok shortlist" in capsys.readouterr().err
    store_shortlist(folder, Shortlist((4, 5), {}).to_bytes(), {})  # allows the token ids 4 and 5
    for arguments, expected in (
        (["--shortlist"], "shortlist used: a translation can depend"),
        ([], "shortlist not used"),
    ):
        with pytest.raises(SystemExit):
            main(["serve", str(folder), "--check", *arguments])
        assert expected in capsys.readouterr().out


@pytest.mark.medium
def test_a_server_uses_the_shortlist_of_its_model(model: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(model, tmp_path / "model")
    token_ids = range(260, 290)  # ids 0 to 259 are 4 special tokens and 256 bytes
    store_shortlist(folder, Shortlist(tuple(token_ids), {}).to_bytes(), {})
    text = "one two three"
    with serving(tmp_path, folder, "--workers", "1", "--shortlist") as server:
        answer = server.post("/translate", {"q": text, "source": "en", "target": "de"}).json["translatedText"]
    limited, unlimited = (
        jumok.load(folder, shortlist=shortlist).translate([text])[0].text for shortlist in (True, False)
    )
    assert answer == limited != unlimited


def test_check_warns_about_keys_that_others_can_read(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    keys = tmp_path / "keys"
    keys.write_text("a-long-enough-secret\n", encoding="utf-8")
    keys.chmod(0o644)
    with pytest.raises(SystemExit):
        main(["serve", str(model), "--check", "--api-keys", str(keys)])
    output = capsys.readouterr().out
    assert f"unsafe    Others can read or write {keys}" in output
    assert "a-long-enough-secret" not in output


def test_check_trusts_keys_that_systemd_passes_to_the_service(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The access control list of such a file looks like permissions of the group."""
    keys = tmp_path / "keys"
    keys.write_text("a-long-enough-secret\n", encoding="utf-8")
    keys.chmod(0o440)
    for folder, is_trusted in ((tmp_path, True), (tmp_path / "other", False)):
        monkeypatch.setenv("CREDENTIALS_DIRECTORY", str(folder))
        with pytest.raises(SystemExit):
            main(["serve", str(model), "--check", "--api-keys", str(keys)])
        assert ("unsafe" not in capsys.readouterr().out) is is_trusted


@pytest.mark.parametrize(
    ("source", "target"), [("en", "en"), ("auto", "de"), ("en", "d\r\ne"), ("en", "d/e")]
)
def test_a_model_with_invalid_language_codes_is_refused(tmp_path: Path, source: str, target: str) -> None:
    from jumok.errors import ModelFolderError
    from jumok.server.language_pairs import read_language_pairs
    from support.serve_models import DIGITS, make_digit_model

    with pytest.MonkeyPatch.context() as patch:
        for code in (source, target):
            patch.setitem(DIGITS, code, DIGITS["en"])
        folder = make_digit_model(tmp_path, source, target)
    with pytest.raises(ModelFolderError, match="needs two languages"):
        read_language_pairs([folder])


def test_a_model_of_plain_text_is_refused_with_its_task() -> None:
    from jumok.errors import ModelFolderError
    from jumok.server.language_pairs import read_language_pairs

    language_model = Path(__file__).parent.parent / "stored" / "models" / "language-model"
    with pytest.raises(
        ModelFolderError, match=r"model of plain text \(language-model\), which does not trans"
    ):
        read_language_pairs([language_model])


def test_two_models_of_one_language_pair_are_refused(model: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        main(["serve", str(model), str(model), "--check"])
    assert end.value.code == 2
    assert "both translate en → de" in capsys.readouterr().err
