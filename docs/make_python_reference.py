"""Write docs/python.md from the docstrings and types of jumok's public names: `make reference`."""

from __future__ import annotations

import inspect
import sys
from pathlib import Path
from typing import Any

import jumok

PAGE = Path(__file__).with_name("python.md")
SECTIONS: dict[str, tuple[str, ...]] = {
    "Load and translate": (
        "load",
        "Translator",
        "Translation",
        "Glossary",
        "read_glossary",
        "split_sentences",
    ),
    "See attention": (
        "explain",
        "ExplanationOptions",
        "Explanation",
        "Silence",
        "Paint",
        "Pin",
        "save_explanation",
        "open_explanation",
        "show_explanation",
        "plot_attention",
        "AttentionMap",
        "Alignment",
    ),
    "Train": ("train", "training_events", "Overrides", "Recipe", "Pair", "open_corpora", "check_corpora"),
    "Score": ("score",),
    "Other toolkits": ("import_model", "ImportChoices", "export"),
    "Plain text and pictures": (
        "load_text_model",
        "TextModel",
        "load_picture_classifier",
        "PictureClassifier",
        "explain_class",
        "view_picture",
        "PictureView",
    ),
    "Errors": (
        "JumokError",
        "DataError",
        "ModelFolderError",
        "RecipeError",
        "RunFolderError",
        "StorageError",
        "TrainingError",
        "UnsupportedError",
    ),
}
HEAD = """\
# Python

Every public name of jumok with its types. `make reference` writes this page from the docstrings.

<!-- not run: it trains for minutes -->
```python
import jumok

general = jumok.train("pairs.tsv", out="runs/general", minutes=15)
mine = jumok.train("mine.tsv", out="runs/mine", start_from=general, keep=["test.tsv"])
translator = jumok.load(mine)
print(translator.translate(["I go home."])[0].text)
print(translator.align("I go home.", "나는 집에 간다."))
jumok.save_explanation(jumok.explain(translator, "I go home."), "attention.html")
jumok.export(mine, "for-transformers", "huggingface")
```

`jumok.train` takes every setting of a recipe by its name: `minutes=5`, `start_from="model"`, or with its
section, `**{"model.dropout": 0.2}`. `recipe.toml` in a run folder lists them with their meaning.
"""


def reference() -> str:
    """Return the page."""
    parts = [HEAD]
    for title, names in SECTIONS.items():
        parts.append(f"## {title}\n")
        parts.extend(_entry(name) for name in names)
    return "\n".join(parts).rstrip("\n") + "\n"


def _entry(name: str) -> str:
    value, full_name = getattr(jumok, name), f"jumok.{name}"
    if not inspect.isclass(value):
        return _function(full_name, value, level=3)
    if issubclass(value, BaseException):
        return f"### `{full_name}`\n\n{_docstring(value)}\n"
    parts = [f"### `{full_name}`\n", _docstring(value), ""]
    fields = [f"- `{field}: {kind}`" for field, kind in _fields(value).items()]
    parts += [*fields, ""] if fields else []
    for method, member in _members(value).items():
        if isinstance(member, property):
            kind = inspect.get_annotations(member.fget).get("return", "") if member.fget else ""
            parts.append(f"#### `.{method}: {kind}`\n\n{_docstring(member)}\n")
        else:
            parts.append(_function(f".{method}", member, level=4))
    return "\n".join(parts)


def _function(name: str, function: Any, *, level: int) -> str:
    signature = inspect.signature(function)
    parameters = _parameters([p for p in signature.parameters.values() if p.name not in ("self", "cls")])
    return_type = f" -> {signature.return_annotation}"
    declaration = f"{name}({', '.join(parameters)}){return_type}"
    if len(declaration) > 100:
        lines = "".join(f"    {parameter},\n" for parameter in parameters)
        declaration = f"{name}(\n{lines}){return_type}"
    return f"{'#' * level} `{name}`\n\n```text\n{declaration}\n```\n\n{_docstring(function)}\n"


def _parameters(parameters: list[inspect.Parameter]) -> list[str]:
    """Return the parameters as they are written in Python, with the star before keyword-only ones."""
    stars = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    texts, has_star = [], False
    for parameter in parameters:
        if parameter.kind is inspect.Parameter.KEYWORD_ONLY and not has_star:
            texts.append("*")
        has_star = has_star or parameter.kind in (
            inspect.Parameter.KEYWORD_ONLY,
            inspect.Parameter.VAR_POSITIONAL,
        )
        default = "" if parameter.default is parameter.empty else f" = {parameter.default!r}"
        texts.append(f"{stars.get(parameter.kind, '')}{parameter.name}: {parameter.annotation}{default}")
    return texts


def _fields(value: type) -> dict[str, str]:
    """Return the fields of a dataclass or of settings with their types, inherited fields first."""
    if not (hasattr(value, "__dataclass_fields__") or hasattr(value, "model_fields")):
        return {}
    classes = [each for each in reversed(value.__mro__) if each.__module__.startswith("jumok.")]
    return {
        name: str(kind)
        for each in classes
        for name, kind in inspect.get_annotations(each).items()
        if not name.startswith("_") and not str(kind).startswith("ClassVar")
    }


def _members(value: type) -> dict[str, Any]:
    """Return the public methods and properties that a class itself defines and documents."""
    members = {}
    for name, member in vars(value).items():
        function = member.__func__ if isinstance(member, classmethod | staticmethod) else member
        if name.startswith("_") or not (inspect.isfunction(function) or isinstance(function, property)):
            continue
        if function.__doc__:
            members[name] = function
    return members


def _docstring(value: Any) -> str:
    """Return a docstring as Markdown, in which an indented block is code."""
    text = inspect.getdoc(value) or ""
    return text.replace("\\", "\\\\").strip()


if __name__ == "__main__":
    PAGE.write_text(reference(), encoding="utf-8")
    sys.exit(0)
