"""Which files of a folder are translated, and where their translations are written."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from jumok.documents.files import plan_files
from jumok.errors import DataError

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder with one document. The folder around it is the working folder."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("one", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path / "docs"


@pytest.mark.parametrize("out", [".", "docs/.."])
def test_a_folder_is_translated_into_the_folder_around_it(folder: Path, out: str) -> None:
    plan = plan_files(folder, type(folder)(out))
    [(source, target)] = plan.files
    assert (source, target.resolve()) == (folder / "a.md", folder.parent / "a.md")


def test_a_folder_cannot_be_its_own_translation(folder: Path) -> None:
    with pytest.raises(DataError, match="would replace its own source"):
        plan_files(folder, folder)


def test_translations_inside_the_source_folder_are_not_sources(folder: Path) -> None:
    (folder / "ko").mkdir()
    (folder / "ko" / "old.md").write_text("하나", encoding="utf-8")
    assert plan_files(folder, folder / "ko").files == [(folder / "a.md", folder / "ko" / "a.md")]
