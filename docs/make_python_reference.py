"""Write docs/python.md from the docstrings and types of jumok's public names: `make reference`.

A public name is in `jumok.__all__`. Each must be in `SECTIONS`.
"""

from __future__ import annotations

import functools
import inspect
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
"""Heading of each section of the page → its public names, in this order."""
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
    """Return the text of the page."""
    parts = [HEAD]
    for title, names in SECTIONS.items():
        parts.append(f"## {title}\n")
        parts.extend(_entry(name) for name in names)
    return "\n".join(parts).rstrip("\n") + "\n"


def _entry(name: str) -> str:
    """Return the part of the page about a public name, which is a class or a function."""
    definition, full_name = getattr(jumok, name), f"jumok.{name}"
    if not inspect.isclass(definition):
        return _function(full_name, definition, level=3)
    if issubclass(definition, BaseException):
        return f"### `{full_name}`\n\n{_docstring(definition)}\n"
    parts = [f"### `{full_name}`\n", _docstring(definition), ""]
    fields = [f"- `{field}: {type_name}`" for field, type_name in _fields(definition).items()]
    parts += [*fields, ""] if fields else []
    for member_name, member in _members(definition).items():
        if isinstance(member, property):
            type_name = inspect.get_annotations(member.fget).get("return", "") if member.fget else ""
            parts.append(f"#### `.{member_name}: {type_name}`\n\n{_docstring(member)}\n")
        else:
            parts.append(_function(f".{member_name}", member, level=4))
    return "\n".join(parts)


def _function(name: str, function: Any, *, level: int) -> str:
    """Return the part of the page about a function or method. `level` is the level of its heading."""
    signature = inspect.signature(function)
    parameters = _parameters([p for p in signature.parameters.values() if p.name not in ("self", "cls")])
    return_type = f" -> {signature.return_annotation}"
    declaration = f"{name}({', '.join(parameters)}){return_type}"
    if len(declaration) > 100:
        lines = "".join(f"    {parameter},\n" for parameter in parameters)
        declaration = f"{name}(\n{lines}){return_type}"
    return f"{'#' * level} `{name}`\n\n```text\n{declaration}\n```\n\n{_docstring(function)}\n"


def _parameters(parameters: list[inspect.Parameter]) -> list[str]:
    """Return the parameters as they are written in Python, with the star that precedes keyword-only ones."""
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


def _fields(definition: type) -> dict[str, str]:
    """Return field → type of a dataclass or of settings, inherited fields first; {} for other classes."""
    if not (hasattr(definition, "__dataclass_fields__") or hasattr(definition, "model_fields")):
        return {}
    classes = [each for each in reversed(definition.__mro__) if each.__module__.startswith("jumok.")]
    return {
        name: str(annotation)
        for each in classes
        for name, annotation in inspect.get_annotations(each).items()
        if not name.startswith("_") and not str(annotation).startswith("ClassVar")
    }


def _members(definition: type) -> dict[str, Any]:
    """Return the public methods and properties that a class itself defines with a docstring."""
    members = {}
    for name, member in vars(definition).items():
        function = member.__func__ if isinstance(member, classmethod | staticmethod) else member
        if isinstance(member, functools.cached_property):
            function = property(member.func)
        if name.startswith("_") or not (inspect.isfunction(function) or isinstance(function, property)):
            continue
        if function.__doc__:
            members[name] = function
    return members


def _docstring(definition: Any) -> str:
    """Return a docstring as Markdown. Its indented blocks need no conversion: Markdown shows them as code."""
    text = inspect.getdoc(definition) or ""
    return text.replace("\\", "\\\\").strip()


if __name__ == "__main__":
    PAGE.write_text(reference(), encoding="utf-8")
