"""Changes have one schema: Python, the server's JSON schema and the page's TypeScript agree."""

from __future__ import annotations

import re
import subprocess
import sys
from dataclasses import fields
from pathlib import Path

import pytest
from pydantic import TypeAdapter

from jumok.analysis.changes import ChangeList, Paint, Pin, Silence, change_from_json
from jumok.errors import DataError

TYPESCRIPT = Path(__file__).parents[2] / "web" / "src" / "lib" / "changes.ts"
KINDS = [Silence, Paint, Pin]


@pytest.mark.parametrize("kind", KINDS)
def test_typescript_has_the_same_fields(kind: type) -> None:
    source = TYPESCRIPT.read_text(encoding="utf-8")
    body = re.search(rf"export interface {kind.__name__} \{{(.*?)\}}", source, flags=re.DOTALL)
    assert body is not None
    assert set(re.findall(r"(\w+)\??:", body[1])) == {field.name for field in fields(kind)}
    [name] = [field.default for field in fields(kind) if field.name == "kind"]
    assert f'kind: "{name}"' in body[1]


@pytest.mark.parametrize("kind", KINDS)
def test_the_servers_json_schema_has_the_same_fields_and_requires_the_kind(kind: type) -> None:
    schema = TypeAdapter(ChangeList).json_schema()["$defs"][kind.__name__]
    assert set(schema["properties"]) == {field.name for field in fields(kind)}
    assert {"kind", "site"} <= set(schema["required"])
    assert schema["additionalProperties"] is False


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "silence", "site": "cross", "layer": 1.0}, "layer"),
        ({"kind": "silence", "site": "cross", "layer": -1}, "layer"),
        ({"kind": "silence", "site": "nowhere"}, "site"),
        ({"kind": "paint", "site": "cross", "query": 0, "key": 0, "weight": 2}, "weight"),
        ({"kind": "pin", "site": "cross", "queries": [], "keys": [0]}, "queries"),
        ({"kind": "pin", "site": "cross", "queries": [0], "keys": [0], "weight": 2}, "weight"),
        ({"kind": "pin", "site": "cross", "queries": [0], "keys": [0], "query": 1}, "query"),
    ],
)
def test_invalid_json_is_refused(change: dict[str, object], message: str) -> None:
    with pytest.raises(DataError, match=rf"not a valid change of kind .*{message}"):
        change_from_json(change)


def test_the_schema_imports_neither_torch_nor_numpy() -> None:
    code = (
        "import sys; from jumok.analysis.changes import Silence, change_from_json; "
        "raise SystemExit(bool({'torch', 'numpy'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
