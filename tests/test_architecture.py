"""The house rules, read from the source: who may import whom, and what stands nowhere.

The direction of the rooms is read from docs/design.md itself, so the page and this test cannot drift apart.
Each check returns its complaints as sentences; the tests at the end plant bad sources and see them caught.
"""

from __future__ import annotations

import ast
import functools
import importlib
import re
import textwrap
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PROJECT = Path(__file__).parent.parent
SOURCE = PROJECT / "src" / "jumok"
DESIGN = PROJECT / "docs" / "design.md"
FRONT_DOOR, COMMANDS = "__init__", "cli"
LONGEST_FUNCTION = 100
VAGUE_NAMES = {"common", "helper", "helpers", "misc", "shared", "tools", "util", "utils"}
PICKLES = {"_pickle", "cloudpickle", "dill", "joblib", "pickle", "shelve"}


# --- Reading ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Import:
    """One module of jumok named by another: where, and whether it happens at run time and on import."""

    target: str
    line: int
    only_types: bool
    on_import: bool


@dataclass(frozen=True)
class Module:
    name: str  # jumok.attention.masks; jumok.attention for its __init__
    path: Path
    tree: ast.Module

    @property
    def room(self) -> str:
        return room_of(self.name)

    @property
    def is_door(self) -> bool:
        return self.path.name == "__init__.py"

    def at(self, line: int) -> str:
        return f"{'/'.join(self.path.parts[self.path.parts.index('jumok') :])}:{line}"


def room_of(name: str) -> str:
    parts = name.split(".")
    if len(parts) == 1:
        return FRONT_DOOR
    return COMMANDS if parts[1] == "__main__" else parts[1]


def read_modules(source: Path) -> list[Module]:
    modules = []
    for path in sorted(source.rglob("*.py")):
        parts = ["jumok", *path.relative_to(source).with_suffix("").parts]
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        modules.append(Module(name, path, ast.parse(path.read_text(encoding="utf-8"), str(path))))
    return modules


def imports_of(module: Module, known: set[str]) -> Iterator[Import]:
    """Every import of a jumok module, also inside functions and under `if TYPE_CHECKING`."""

    def walk(node: ast.AST, *, only_types: bool, on_import: bool) -> Iterator[Import]:
        for child in ast.iter_child_nodes(node):
            inside = isinstance(node, ast.If) and child in node.body and is_type_checking(node.test)
            within = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            types, eager = only_types or inside, on_import and not within
            if isinstance(child, ast.Import | ast.ImportFrom):
                for target in targets_of(child, module, known):
                    yield Import(target, child.lineno, types, eager)
            yield from walk(child, only_types=types, on_import=eager)

    yield from walk(module.tree, only_types=False, on_import=True)


def is_type_checking(test: ast.expr) -> bool:
    return ast.unparse(test) in {"TYPE_CHECKING", "typing.TYPE_CHECKING"}


def targets_of(node: ast.Import | ast.ImportFrom, module: Module, known: set[str]) -> Iterator[str]:
    """The jumok modules that a statement names: `from jumok.look import grid` names jumok.look.grid."""
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "jumok")
        return
    base = node.module or ""
    if node.level:
        package = module.name.split(".")
        keep = len(package) - node.level + module.is_door
        base = ".".join([*package[:keep], *filter(None, [base])])
    if base.split(".")[0] == "jumok":
        for alias in node.names:
            whole = f"{base}.{alias.name}"
            yield whole if whole in known else base


# --- The direction, as docs/design.md draws it --------------------------------------------------------------


@dataclass(frozen=True)
class Direction:
    """For each room, the rooms to its left. Rooms first named together may use one another, one way."""

    left: dict[str, frozenset[str]]
    beside: dict[str, frozenset[str]]
    strict: frozenset[str]
    """Rooms that are told 'values only', which holds for their types too."""

    def allows(self, room: str, target: str, *, only_types: bool) -> bool:
        if target in {room, "errors"} | self.left[room] | self.beside[room]:
            return True
        # A type may come from a room that lies neither left nor right: it costs nothing when the code runs.
        return only_types and room not in self.strict and room not in self.left.get(target, {room})


def read_direction(page: str) -> Direction:
    found = re.search(r"^Direction .*?:\n\n((?: {4}.*\n)+)", page, re.MULTILINE)
    assert found, "docs/design.md has no block 'Direction (…):' of indented lines; this test reads it."
    left: dict[str, set[str]] = {}
    beside: dict[str, set[str]] = {}
    strict = set()
    for line in re.split(r"\n| {3,}", found[1]):
        if only := re.fullmatch(r"\s*(\w+): (.+) only\s*", line):
            left[only[1]] = set(only[2].replace(" ", "").split(","))
            strict.add(only[1])
        elif "<" in line:
            read_chain([set(re.findall(r"\w+", group)) for group in line.split("<")], left, beside)
    closed = {room: frozenset(everything_left_of(room, left)) for room in left}
    return Direction(closed, {r: frozenset(beside.get(r, ())) for r in left}, frozenset(strict))


def read_chain(groups: list[set[str]], left: dict[str, set[str]], beside: dict[str, set[str]]) -> None:
    before: set[str] = set()
    for group in groups:
        members = set(left) if group == {"everything"} else group
        for room in members:
            if room not in left:
                beside[room] = members - set(left) - {room}
        for room in members:
            left.setdefault(room, set()).update(before if group != {"everything"} else ())
        before = before | members


def everything_left_of(room: str, left: dict[str, set[str]]) -> set[str]:
    seen: set[str] = set()
    waiting = list(left[room])
    while waiting:
        here = waiting.pop()
        if here not in seen:
            seen.add(here)
            waiting.extend(left.get(here, ()))
    return seen


# --- Checks -------------------------------------------------------------------------------------------------


def against_the_direction(modules: list[Module], direction: Direction) -> list[str]:
    known = {module.name for module in modules}
    complaints = []
    for module in modules:
        if module.room not in direction.left:
            complaints.append(
                f"{module.at(1)}: docs/design.md names no room {module.room!r}. Give it its place in the "
                "block 'Direction', or move the file into the room it belongs to."
            )
            continue
        for found in imports_of(module, known):
            target = room_of(found.target)
            if not direction.allows(module.room, target, only_types=found.only_types):
                allowed = (
                    ", ".join(sorted(direction.left[module.room] | direction.beside[module.room])) or "none"
                )
                complaints.append(
                    f"{module.at(found.line)}: the room {module.room!r} imports {found.target}, which is not "
                    f"to its left. It may import: {allowed}. Move what is shared to the left, or pass it in."
                )
    return complaints


def room_cycles(modules: list[Module]) -> list[str]:
    """Cycles between rooms, counting all that runs, also inside functions."""
    known = {module.name for module in modules}
    graph: dict[str, set[str]] = {}
    for module in modules:
        named = {room_of(i.target) for i in imports_of(module, known) if not i.only_types}
        graph.setdefault(module.room, set()).update(named - {module.room})
    cycle = find_cycle(graph)
    return (
        [f"The rooms import one another in a circle: {' → '.join(cycle)}. Break one arrow."] if cycle else []
    )


def module_cycles(modules: list[Module]) -> list[str]:
    """Cycles between modules when they are imported; Python would find half-made modules there."""
    known = {module.name for module in modules}
    graph = {
        module.name: {i.target for i in imports_of(module, known) if i.on_import and not i.only_types}
        for module in modules
    }
    cycle = find_cycle(graph)
    return (
        [f"These modules import one another in a circle: {' → '.join(cycle)}. Break one arrow."]
        if cycle
        else []
    )


def find_cycle(graph: dict[str, set[str]]) -> list[str]:
    """One cycle as [a, b, …, a], or nothing."""
    done: set[str] = set()

    def visit(node: str, path: list[str]) -> list[str]:
        if node in path:
            return [*path[path.index(node) :], node]
        if node in done:
            return []
        for following in sorted(graph.get(node, ())):
            if cycle := visit(following, [*path, node]):
                return cycle
        done.add(node)
        return []

    return next((cycle for node in sorted(graph) if (cycle := visit(node, []))), [])


def speaking_or_leaving(modules: list[Module]) -> list[str]:
    """Printing and ending the process belong to the command line; a library returns and raises."""
    leaving = {"sys.exit", "os._exit", "exit", "quit"}
    complaints = []
    for module in modules:
        if module.room == COMMANDS:
            continue
        for node in ast.walk(module.tree):
            called = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
            raised = ast.unparse(node.exc) if isinstance(node, ast.Raise) and node.exc else ""
            if called == "print":
                complaints.append(
                    f"{module.at(node.lineno)}: print() outside cli/. Return the text, or yield an event."
                )
            if called in leaving or raised.startswith("SystemExit"):
                complaints.append(
                    f"{module.at(node.lineno)}: {called or raised} outside cli/. Raise a JumokError."
                )
    return complaints


def assertions(modules: list[Module]) -> list[str]:
    return [
        f"{module.at(node.lineno)}: assert vanishes under python -O. Raise an error that tells the way out."
        for module in modules
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Assert)
    ]


def long_functions(modules: list[Module]) -> list[str]:
    return [
        f"{module.at(node.lineno)}: {node.name} has {lines} lines; the longest may have {LONGEST_FUNCTION}. "
        "Take a part out that deserves a name."
        for module in modules
        for node in ast.walk(module.tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (lines := (node.end_lineno or node.lineno) - node.lineno + 1) > LONGEST_FUNCTION
    ]


def vague_names(modules: list[Module]) -> list[str]:
    return [
        f"{module.at(1)}: {part!r} says nothing of what is inside. Name it after the noun it holds."
        for module in modules
        for part in module.name.split(".")
        if part in VAGUE_NAMES
    ]


def pickles(modules: list[Module]) -> list[str]:
    """A pickle runs code when it is read. Weights are safetensors, facts are JSON, arrays are plain."""
    return [
        f"{module.at(node.lineno)}: {used} can run code from a file. Use safetensors or JSON."
        for module in modules
        for node in ast.walk(module.tree)
        if (used := pickle_in(node))
    ]


def pickle_in(node: ast.AST) -> str:
    if isinstance(node, ast.Import):
        return next((a.name for a in node.names if a.name.split(".")[0] in PICKLES), "")
    if isinstance(node, ast.ImportFrom):
        base = (node.module or "").split(".")[0]
        loads = node.module == "torch" and any(alias.name == "load" for alias in node.names)
        return node.module or "" if base in PICKLES else "torch.load" if loads else ""
    if isinstance(node, ast.Attribute) and ast.unparse(node) == "torch.load":
        return "torch.load"
    if isinstance(node, ast.keyword) and node.arg == "allow_pickle" and ast.unparse(node.value) != "False":
        return "allow_pickle"
    return ""


def front_doors(
    modules: list[Module], importer: Callable[[str], object] = importlib.import_module
) -> list[str]:
    """Each room's `__all__` is sorted, can be imported, and names all that the door brings in."""
    complaints = []
    for module in modules:
        if module.is_door and module.name.count(".") <= 1:
            complaints.extend(f"{module.at(1)}: {fault}" for fault in door_faults(module, importer))
    return complaints


def door_faults(module: Module, importer: Callable[[str], object]) -> Iterator[str]:
    listed = names_listed(module.tree)
    brought_in = set() if module.room == COMMANDS else names_brought_in(module.tree)
    if listed is None:
        if brought_in:
            yield "it brings in names and has no __all__ (a plain list of strings)."
        return
    if listed != sorted(listed, key=door_order):
        yield f"__all__ is not sorted. Expected: {sorted(listed, key=door_order)}."
    if len(set(listed)) < len(listed):
        yield f"__all__ names something twice: {listed}."
    if unlisted := sorted(brought_in - set(listed)):
        yield f"brought in and not in __all__: {', '.join(unlisted)}. List it, or import it where it is used."
    room = importer(module.name)
    if missing := [name for name in listed if not hasattr(room, name)]:
        yield f"in __all__ and not importable: {', '.join(missing)}."


def door_order(name: str) -> tuple[int, str]:
    """Constants, then classes, then functions: the order that ruff sorts to."""
    return (0 if name.isupper() else 1 if name[:1].isupper() else 2, name)


def names_listed(tree: ast.Module) -> list[str] | None:
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        if any(isinstance(target, ast.Name) and target.id == "__all__" for target in targets):
            return list(ast.literal_eval(node.value))
    return None


def names_brought_in(tree: ast.Module) -> set[str]:
    """What a person could import from the door: names from jumok, functions and classes, when it runs."""
    names: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and (node.level or (node.module or "").startswith("jumok")):
            names.update(alias.asname or alias.name for alias in node.names)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
    return {name for name in names if not name.startswith("_")}


# --- The house as it stands ---------------------------------------------------------------------------------


@functools.cache
def house() -> list[Module]:
    return read_modules(SOURCE)


@functools.cache
def design() -> Direction:
    return read_direction(DESIGN.read_text(encoding="utf-8"))


def no_complaints(complaints: list[str]) -> None:
    if complaints:
        pytest.fail(
            "The house rules (docs/design.md, CONTRIBUTING.md) say otherwise:\n\n" + "\n".join(complaints)
        )


def test_rooms_import_only_rooms_to_their_left() -> None:
    no_complaints(against_the_direction(house(), design()))


def test_rooms_do_not_import_in_a_circle() -> None:
    no_complaints(room_cycles(house()))


def test_modules_do_not_import_in_a_circle() -> None:
    no_complaints(module_cycles(house()))


def test_only_the_command_line_prints_and_exits() -> None:
    no_complaints(speaking_or_leaving(house()))


def test_the_library_does_not_assert() -> None:
    no_complaints(assertions(house()))


def test_functions_are_short() -> None:
    no_complaints(long_functions(house()))


def test_modules_are_named_after_what_they_hold() -> None:
    no_complaints(vague_names(house()))


def test_nothing_is_unpickled() -> None:
    no_complaints(pickles(house()))


def test_front_doors_are_sorted_and_complete() -> None:
    no_complaints(front_doors(house()))


# --- The checks themselves ----------------------------------------------------------------------------------


def plant(folder: Path, **files: str) -> list[Module]:
    """A small house: `attention__masks="…"` becomes jumok/attention/masks.py, with doors where needed."""
    source = folder / "jumok"
    for name, text in {"door": "", **files}.items():
        parts = [part.replace("door", "__init__") for part in name.split("__")]
        path = source.joinpath(*parts).with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")
    return read_modules(source)


def test_the_direction_is_read_from_the_page() -> None:
    direction = design()
    assert {"errors", "values", "recipe", "storage"} <= direction.left["attention"]
    assert {"models", "corpus", "text", "decoding", "evaluation"} <= direction.left["training"]
    assert "training" not in direction.left["decoding"]
    assert "models" not in direction.left["corpus"]
    assert direction.left["look"] == {"values"}
    assert direction.left[COMMANDS] >= {"training", "look", FRONT_DOOR}
    assert COMMANDS not in direction.left[FRONT_DOOR]


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("attention__masks", "from jumok.models import build", "'attention' imports jumok.models"),
        ("attention__masks", "import jumok.training.loop", "'attention' imports jumok.training.loop"),
        ("look__grid", "def f():\n    from jumok.decoding import load", "'look' imports jumok.decoding"),
        ("look__grid", "from jumok import recipe", "'look' imports jumok"),
        ("models__build", "from ..decoding import load", "'models' imports jumok.decoding"),
        ("corpus__store", "from jumok import load", "'corpus' imports jumok,"),
        ("values", "from jumok.recipe import Recipe", "'values' imports jumok.recipe"),
        ("training__loop", "from jumok.cli import main", "'training' imports jumok.cli"),
        ("cellar__box", "", "names no room 'cellar'"),
    ],
)
def test_a_step_against_the_direction_is_caught(tmp_path: Path, name: str, text: str, words: str) -> None:
    complaints = against_the_direction(plant(tmp_path, **{name: text}), design())
    assert len(complaints) == 1
    assert words in complaints[0]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("models__build", "from jumok.attention import Attention\nimport jumok.errors"),
        ("storage", "from jumok.recipe import Recipe"),
        ("look__grid", "from jumok.values import AttentionMap\nfrom jumok.errors import DataError"),
        (
            "text__learning",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from jumok.recipe import Recipe",
        ),
        ("cli__train", "from jumok import __version__\nfrom jumok.training import train"),
        ("door", "from jumok.decoding import load"),
    ],
)
def test_a_step_to_the_left_is_fine(tmp_path: Path, name: str, text: str) -> None:
    assert against_the_direction(plant(tmp_path, **{name: text}), design()) == []


def test_types_may_come_from_the_side_but_not_from_the_right(tmp_path: Path) -> None:
    text = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from jumok.decoding import Stepper"
    modules = plant(tmp_path, models__model=text, look__grid=text)
    complaints = against_the_direction(modules, design())
    assert ["'look'" in complaints[0], "'models'" in complaints[1], len(complaints)] == [True, True, 2]


def test_a_circle_of_rooms_is_caught_even_inside_functions(tmp_path: Path) -> None:
    modules = plant(
        tmp_path,
        recipe="from jumok.storage import save",
        storage="def save():\n    from jumok.recipe import Recipe",
    )
    assert "recipe → storage → recipe" in room_cycles(modules)[0]
    assert module_cycles(modules) == []


def test_a_circle_of_modules_is_caught(tmp_path: Path) -> None:
    modules = plant(
        tmp_path,
        look__one="from jumok.look import two",
        look__two="from jumok.look.three import x",
        look__three="import jumok.look.one",
    )
    assert "jumok.look.one → jumok.look.two → jumok.look.three → jumok.look.one" in module_cycles(modules)[0]
    assert room_cycles(modules) == []


def test_a_module_that_imports_its_own_door_is_caught(tmp_path: Path) -> None:
    modules = plant(
        tmp_path, look__door="from jumok.look.grid import Grid", look__grid="from jumok.look import Grid"
    )
    assert "jumok.look → jumok.look.grid → jumok.look" in module_cycles(modules)[0]


@pytest.mark.parametrize(
    "text", ["print('x')", "import sys\nsys.exit(1)", "raise SystemExit", "raise SystemExit(2)", "exit()"]
)
def test_printing_and_leaving_are_caught(tmp_path: Path, text: str) -> None:
    assert len(speaking_or_leaving(plant(tmp_path, look__grid=text, cli__look=text))) == 1


@pytest.mark.parametrize(
    "text",
    [
        "import pickle",
        "from pickle import loads",
        "import torch\ntorch.load('x')",
        "from torch import load",
        "load = torch.load",
        "numpy.load('x', allow_pickle=True)",
    ],
)
def test_pickles_are_caught(tmp_path: Path, text: str) -> None:
    assert len(pickles(plant(tmp_path, storage=text))) == 1


def test_what_only_looks_like_a_pickle_is_fine(tmp_path: Path) -> None:
    text = "from jumok.decoding import load\nnumpy.load('x', allow_pickle=False)\ntorch.loader\n'pickle'"
    assert pickles(plant(tmp_path, storage=text)) == []


def test_asserts_long_functions_and_vague_names_are_caught(tmp_path: Path) -> None:
    body = "    x = 1\n" * LONGEST_FUNCTION
    modules = plant(
        tmp_path,
        look__grid="assert True",
        text__utils="",
        recipe=f"async def long():\n{body}",
        values=f"def just():\n{body[len('    x = 1') + 1 :]}",
    )
    assert "look/grid.py:1" in assertions(modules)[0]
    assert ["recipe.py:1: long has 101 lines" in fault for fault in long_functions(modules)] == [True]
    assert ["'utils'" in fault for fault in vague_names(modules)] == [True]


@pytest.mark.parametrize(
    ("door", "words"),
    [
        ("from jumok.look.grid import Grid", "has no __all__"),
        ("from jumok.look.grid import Grid, flat\n__all__ = ['Grid']", "not in __all__: flat"),
        ("from jumok.look.grid import Grid, flat\n__all__ = ['flat', 'Grid']", "not sorted"),
        ("from jumok.look.grid import Grid\n__all__ = ['Grid', 'Grid']", "twice"),
        ("from jumok.look.grid import Grid\n__all__ = ['Grid', 'grind']", "not importable: grind"),
        ("def draw(): ...\n__all__ = []", "not in __all__: draw"),
    ],
)
def test_a_bad_front_door_is_caught(tmp_path: Path, door: str, words: str) -> None:
    room = type("Room", (), {"Grid": 1, "flat": 2, "draw": 3})
    complaints = front_doors(plant(tmp_path, look__door=door), lambda _: room)
    assert len(complaints) == 1
    assert words in complaints[0]


def test_a_door_still_being_written_is_fine(tmp_path: Path) -> None:
    assert front_doors(plant(tmp_path, look__door='"""Soon."""'), lambda _: object()) == []


def test_constants_classes_and_functions_stand_in_that_order(tmp_path: Path) -> None:
    door = "__all__ = ['BEGIN', 'END', 'Alignment', 'Pair', 'align']"
    room = type("Room", (), dict.fromkeys(["BEGIN", "END", "Alignment", "Pair", "align"]))
    assert front_doors(plant(tmp_path, look__door=door), lambda _: room) == []
