"""The architecture rules, checked on the source: who may import whom, and what the library must not contain.

The direction of the packages is read from docs/design.md, so that the page and this test cannot drift apart.
Each check returns its violations as sentences. The tests below "The checks themselves" write small sources
and compare what the checks find.
"""

from __future__ import annotations

import ast
import functools
import importlib
import re
import textwrap
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

PROJECT = Path(__file__).parent.parent
SOURCE = PROJECT / "src" / "jumok"
DESIGN = PROJECT / "docs" / "design.md"
FRONT = "__init__"  # the package jumok itself, as docs/design.md names it
CLI = "cli"
MAX_FUNCTION_LINES = 60
MAX_ARGUMENTS = 8
REASONS_TO_IMPORT_LATE = ("start-up", "optional")
VAGUE_NAMES = {"common", "helper", "helpers", "misc", "shared", "tools", "util", "utils"}
# multiprocessing and ray pickle what they send.
PICKLES = {"_pickle", "cloudpickle", "dill", "joblib", "multiprocessing", "pickle", "ray", "shelve"}


# --- Reading ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Import:
    """One import of a jumok module."""

    target: str  # the imported module, such as jumok.attention.masks
    line: int
    only_types: bool  # under `if TYPE_CHECKING`
    on_import: bool  # outside functions, so it runs when the importing module is imported


@dataclass(frozen=True)
class Module:
    name: str  # jumok.attention.masks; jumok.attention for its __init__
    path: Path
    tree: ast.Module

    @property
    def package(self) -> str:
        return package_of(self.name)

    @property
    def is_interface(self) -> bool:
        """Whether the module is a package's `__init__.py`."""
        return self.path.name == "__init__.py"

    def line(self, number: int) -> str:
        return self.path.read_text(encoding="utf-8").splitlines()[number - 1]

    def at(self, line: int) -> str:
        """Return the place of a line for a message: jumok/attention/masks.py:12."""
        return f"{'/'.join(self.path.parts[self.path.parts.index('jumok') :])}:{line}"


def package_of(name: str) -> str:
    """Return the package of a module as docs/design.md names it: `attention` for jumok.attention.masks."""
    parts = name.split(".")
    if len(parts) == 1:
        return FRONT
    return CLI if parts[1] == "__main__" else parts[1]


def read_modules(source: Path) -> list[Module]:
    modules = []
    for path in sorted(source.rglob("*.py")):
        parts = ["jumok", *path.relative_to(source).with_suffix("").parts]
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        modules.append(Module(name, path, ast.parse(path.read_text(encoding="utf-8"), str(path))))
    return modules


def imports_of(module: Module, known: set[str]) -> Iterator[Import]:
    """Yield every import of a jumok module, including those in functions and under `if TYPE_CHECKING`."""

    def walk(node: ast.AST, *, only_types: bool, on_import: bool) -> Iterator[Import]:
        for child in ast.iter_child_nodes(node):
            for_types = isinstance(node, ast.If) and child in node.body and is_type_checking(node.test)
            is_function = isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            types, eager = only_types or for_types, on_import and not is_function
            if isinstance(child, ast.Import | ast.ImportFrom):
                for target in targets_of(child, module, known):
                    yield Import(target, child.lineno, types, eager)
            yield from walk(child, only_types=types, on_import=eager)

    yield from walk(module.tree, only_types=False, on_import=True)


def is_type_checking(test: ast.expr) -> bool:
    return ast.unparse(test) in {"TYPE_CHECKING", "typing.TYPE_CHECKING"}


def targets_of(node: ast.Import | ast.ImportFrom, module: Module, known: set[str]) -> Iterator[str]:
    """Yield the jumok modules that a statement imports.

    `from jumok.plots import grid` imports jumok.plots.grid, if that is a module.
    """
    if isinstance(node, ast.Import):
        yield from (alias.name for alias in node.names if alias.name.split(".")[0] == "jumok")
        return
    base = node.module or ""
    if node.level:
        parts = module.name.split(".")
        # One dot is the package of the module. The name of an `__init__.py` is its package already.
        keep = len(parts) - node.level + module.is_interface
        base = ".".join([*parts[:keep], *filter(None, [base])])
    if base.split(".")[0] == "jumok":
        for alias in node.names:
            submodule = f"{base}.{alias.name}"
            yield submodule if submodule in known else base


# --- The direction, as docs/design.md draws it --------------------------------------------------------------


@dataclass(frozen=True)
class Direction:
    """The packages that each package may import: those to its left, and those beside it."""

    left: dict[str, frozenset[str]]
    beside: dict[str, frozenset[str]]
    strict: frozenset[str]
    """Packages with a line 'NAME: … only': the limit also holds for imports under `if TYPE_CHECKING`."""

    def allows(self, package: str, target: str, *, only_types: bool) -> bool:
        if target in {package, "errors"} | self.left[package] | self.beside[package]:
            return True
        # A type may also come from a package that is neither left nor right, since that import never runs.
        return only_types and package not in self.strict and package not in self.left.get(target, {package})


def read_direction(page: str) -> Direction:
    block = re.search(r"^Direction .*?:\n\n((?: {4}.*\n)+)", page, re.MULTILINE)
    assert block, "docs/design.md has no block 'Direction (…):' of indented lines; this test reads it."
    left: dict[str, set[str]] = {}
    beside: dict[str, set[str]] = {}
    strict = set()
    for line in re.split(r"\n| {3,}", block[1]):
        if only := re.fullmatch(r"\s*(\w+): (.+) only\s*", line):
            left[only[1]] = set(only[2].replace(" ", "").split(","))
            strict.add(only[1])
        elif "<" in line:
            read_chain([set(re.findall(r"\w+", group)) for group in line.split("<")], left, beside)
    all_left = {package: frozenset(all_left_of(package, left)) for package in left}
    return Direction(all_left, {name: frozenset(beside.get(name, ())) for name in left}, frozenset(strict))


def read_chain(groups: list[set[str]], left: dict[str, set[str]], beside: dict[str, set[str]]) -> None:
    """Add a line of the block, such as `a, b < c`, to `left` and `beside`.

    A group is what a line has between two `<`. Packages of one group are beside each other, except those that
    an earlier line has. The word `everything` stands for all packages of the earlier lines.
    """
    before: set[str] = set()
    for group in groups:
        members = set(left) if group == {"everything"} else group
        for package in members:
            if package not in left:
                beside[package] = members - set(left) - {package}
        for package in members:
            left.setdefault(package, set()).update(before if group != {"everything"} else ())
        before = before | members


def all_left_of(package: str, left: dict[str, set[str]]) -> set[str]:
    reached: set[str] = set()
    waiting = list(left[package])
    while waiting:
        current = waiting.pop()
        if current not in reached:
            reached.add(current)
            waiting.extend(left.get(current, ()))
    return reached


# --- Checks -------------------------------------------------------------------------------------------------


def imports_against_direction(modules: list[Module], direction: Direction) -> list[str]:
    known = {module.name for module in modules}
    violations = []
    for module in modules:
        if module.package not in direction.left:
            violations.append(
                f"{module.at(1)}: docs/design.md does not list the package {module.package!r}. Add it to the "
                "block 'Direction', or move the file into the package it belongs to."
            )
            continue
        for imported in imports_of(module, known):
            target = package_of(imported.target)
            if not direction.allows(module.package, target, only_types=imported.only_types):
                allowed = sorted(direction.left[module.package] | direction.beside[module.package])
                violations.append(
                    f"{module.at(imported.line)}: the package {module.package!r} imports {imported.target}, "
                    f"which is not to its left. It may import: {', '.join(allowed) or 'none'}. "
                    "Move the shared code to the left, or pass it as an argument."
                )
    return violations


def package_cycles(modules: list[Module]) -> list[str]:
    """Find a cycle between packages. Imports inside functions count."""
    known = {module.name for module in modules}
    graph: dict[str, set[str]] = {}
    for module in modules:
        packages = {package_of(i.target) for i in imports_of(module, known) if not i.only_types}
        graph.setdefault(module.package, set()).update(packages - {module.package})
    cycle = find_cycle(graph)
    return (
        [f"These packages import each other in a cycle: {' → '.join(cycle)}. Break one arrow."]
        if cycle
        else []
    )


def module_cycles(modules: list[Module]) -> list[str]:
    """Find a cycle between modules at import time, when Python would use half-initialised modules."""
    known = {module.name for module in modules}
    graph = {
        module.name: {i.target for i in imports_of(module, known) if i.on_import and not i.only_types}
        for module in modules
    }
    cycle = find_cycle(graph)
    return (
        [f"These modules import each other in a cycle: {' → '.join(cycle)}. Break one arrow."]
        if cycle
        else []
    )


def find_cycle(graph: dict[str, set[str]]) -> list[str]:
    """Return one cycle as [a, b, …, a], or an empty list."""
    finished: set[str] = set()

    def visit(node: str, path: list[str]) -> list[str]:
        if node in path:
            return [*path[path.index(node) :], node]
        if node in finished:
            return []
        for following in sorted(graph.get(node, ())):
            if cycle := visit(following, [*path, node]):
                return cycle
        finished.add(node)
        return []

    return next((cycle for node in sorted(graph) if (cycle := visit(node, []))), [])


def prints_and_exits(modules: list[Module]) -> list[str]:
    """Only the command line prints and exits; the library returns values and raises errors."""
    exits = {"sys.exit", "os._exit", "exit", "quit"}
    violations = []
    for module in modules:
        if module.package == CLI:
            continue
        for node in ast.walk(module.tree):
            called = ast.unparse(node.func) if isinstance(node, ast.Call) else ""
            raised = ast.unparse(node.exc) if isinstance(node, ast.Raise) and node.exc else ""
            if called == "print":
                violations.append(
                    f"{module.at(node.lineno)}: print() outside cli/. Return the text, or yield an event."
                )
            if called in exits or raised.startswith("SystemExit"):
                violations.append(
                    f"{module.at(node.lineno)}: {called or raised} outside cli/. Raise a JumokError."
                )
    return violations


def assertions(modules: list[Module]) -> list[str]:
    return [
        f"{module.at(node.lineno)}: python -O removes assert. Raise an error that says what to do."
        for module in modules
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Assert)
    ]


def long_functions(modules: list[Module]) -> list[str]:
    """Functions may not have too many lines, except in cli/, where commands have long lists of options."""
    return [
        f"{module.at(node.lineno)}: {node.name} has {lines} lines; the limit is {MAX_FUNCTION_LINES}. "
        "Extract a part that deserves a name."
        for module in modules
        if module.package != CLI
        for node in ast.walk(module.tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and (lines := (node.end_lineno or node.lineno) - node.lineno + 1) > MAX_FUNCTION_LINES
    ]


def many_arguments(modules: list[Module]) -> list[str]:
    """Functions may not have too many arguments, except commands, whose arguments are their options."""
    return [
        f"{module.at(node.lineno)}: {node.name} takes {count} arguments; the limit is {MAX_ARGUMENTS}. "
        "Group what belongs together in a value with a name."
        for module in modules
        for node in ast.walk(module.tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        and not (module.package == CLI and node.name == module.name.rpartition(".")[2])
        and (count := num_arguments(node.args)) > MAX_ARGUMENTS
    ]


def num_arguments(arguments: ast.arguments) -> int:
    """Return the number of arguments with a name, without `self` or `cls`."""
    names = [item.arg for item in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]
    return len(names) - (names[:1] in (["self"], ["cls"]))


def late_imports(modules: list[Module]) -> list[str]:
    """An import inside a function has a comment that says why: start-up time, or an optional package."""
    return [
        f"{module.at(line)}: an import inside a function. Move it to the top, or say why it is late with "
        f"a comment: {' or '.join(f'# {reason}' for reason in REASONS_TO_IMPORT_LATE)}."
        for module in modules
        for line in sorted(lines_of_late_imports(module.tree))
        if not module.line(line).partition("# ")[2].startswith(REASONS_TO_IMPORT_LATE)
    ]


def lines_of_late_imports(tree: ast.Module) -> set[int]:
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    return {
        node.lineno
        for function in functions
        for node in ast.walk(function)
        if isinstance(node, ast.Import | ast.ImportFrom)
    }


def vague_names(modules: list[Module]) -> list[str]:
    return [
        f"{module.at(1)}: {part!r} says nothing about the content. Name the module after what it holds."
        for module in modules
        for part in module.name.split(".")
        if part in VAGUE_NAMES
    ]


def pickles(modules: list[Module]) -> list[str]:
    """Reading a pickle runs code. Weights are safetensors, messages and records are JSON.

    One module may call torch's restricted unpickler, which `jumok import` needs for pytorch_model.bin. One
    may import ray, which pickles what it sends between the machines of a user's own cluster.
    """
    return [
        f"{module.at(node.lineno)}: {used} unpickles, which can run foreign code. Use safetensors or JSON."
        for module in modules
        for node in ast.walk(module.tree)
        if (used := pickle_used_in(node))
        and not is_restricted_load(module, node)
        and (used, module.name) != ("ray", "jumok.inference.bulk.ray_workers")
    ]


def is_restricted_load(module: Module, node: ast.AST) -> bool:
    """Whether the node is torch.load(…, weights_only=True) in the one module that may use it."""
    if module.name != "jumok.interop.pickled_weights":
        return False
    restricted = [
        call.func
        for call in ast.walk(module.tree)
        if isinstance(call, ast.Call)
        and any(word.arg == "weights_only" and ast.unparse(word.value) == "True" for word in call.keywords)
    ]
    return node in restricted


def pickle_used_in(node: ast.AST) -> str:
    """Return what the node uses to unpickle: a module, a function or an argument; "" if nothing."""
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


def package_interfaces(
    modules: list[Module], importer: Callable[[str], object] = importlib.import_module
) -> list[str]:
    """The `__all__` of jumok and of each of its packages is sorted, complete and importable."""
    violations = []
    for module in modules:
        if module.is_interface and module.name.count(".") <= 1:
            violations.extend(f"{module.at(1)}: {fault}" for fault in interface_violations(module, importer))
    return violations


def imports_through_packages(text: str, source: Path) -> list[str]:
    """Find imports of a name from a package whose `__init__.py` does not define or re-export the name."""
    violations = []
    for package, names in re.findall(r"from jumok\.([\w.]+) import (\([^)]*\)|[\w ,]+)", text):
        folder = source.joinpath(*package.split("."))
        if not (folder / "__init__.py").is_file():
            continue
        init = (folder / "__init__.py").read_text(encoding="utf-8")
        for name in re.findall(r"\w+", re.sub(r" as \w+|#.*", "", names)):
            submodules = (folder / name, folder / f"{name}.py")
            if not any(path.exists() for path in submodules) and not re.search(
                rf"^[^\"]*\b{name}\b", init, re.MULTILINE
            ):
                violations.append(f"{name} from jumok.{package}: import it from the module that defines it.")
    return violations


def interface_violations(module: Module, importer: Callable[[str], object]) -> Iterator[str]:
    listed = names_in_all(module.tree)
    public = set() if module.package == CLI else public_names(module.tree)
    if listed is None:
        if public:
            yield "it imports or defines names and has no __all__ (a plain list of strings)."
        return
    if listed != sorted(listed, key=interface_order):
        yield f"__all__ is not sorted. Expected: {sorted(listed, key=interface_order)}."
    if len(set(listed)) < len(listed):
        yield f"__all__ names something twice: {listed}."
    if unlisted := sorted(public - set(listed)):
        names = ", ".join(unlisted)
        yield f"imported or defined, and not in __all__: {names}. List it, or import it where it is used."
    package = importer(module.name)
    if missing := [name for name in listed if not hasattr(package, name)]:
        yield f"in __all__ and not importable: {', '.join(missing)}."


def interface_order(name: str) -> tuple[int, str]:
    """Sort key: constants, then classes, then functions, as ruff sorts them."""
    return (0 if name.isupper() else 1 if name[:1].isupper() else 2, name)


def names_in_all(tree: ast.Module) -> list[str] | None:
    for node in tree.body:
        targets = node.targets if isinstance(node, ast.Assign) else []
        if any(isinstance(target, ast.Name) and target.id == "__all__" for target in targets):
            return list(ast.literal_eval(node.value))
    return None


def public_names(tree: ast.Module) -> set[str]:
    """Return the public names that an `__init__.py` imports from jumok or defines."""
    names: set[str] = set()
    for node in tree.body:
        if isinstance(node, ast.ImportFrom) and (node.level or (node.module or "").startswith("jumok")):
            names.update(alias.asname or alias.name for alias in node.names)
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
    return {name for name in names if not name.startswith("_")}


# --- The source as it is ------------------------------------------------------------------------------------


@functools.cache
def modules_of_jumok() -> list[Module]:
    return read_modules(SOURCE)


@functools.cache
def drawn_direction() -> Direction:
    return read_direction(DESIGN.read_text(encoding="utf-8"))


def expect_none(violations: list[str]) -> None:
    if violations:
        pytest.fail("Against the rules of docs/design.md and CONTRIBUTING.md:\n\n" + "\n".join(violations))


def test_packages_import_only_packages_to_their_left() -> None:
    expect_none(imports_against_direction(modules_of_jumok(), drawn_direction()))


def test_packages_do_not_import_in_a_cycle() -> None:
    expect_none(package_cycles(modules_of_jumok()))


def test_modules_do_not_import_in_a_cycle() -> None:
    expect_none(module_cycles(modules_of_jumok()))


def test_only_the_command_line_prints_and_exits() -> None:
    expect_none(prints_and_exits(modules_of_jumok()))


def test_the_library_does_not_assert() -> None:
    expect_none(assertions(modules_of_jumok()))


def test_imports_inside_functions_say_why() -> None:
    expect_none(late_imports(modules_of_jumok()))


def test_functions_are_short() -> None:
    expect_none(long_functions(modules_of_jumok()))


def test_functions_take_few_arguments() -> None:
    expect_none(many_arguments(modules_of_jumok()))


def test_modules_are_named_after_what_they_hold() -> None:
    expect_none(vague_names(modules_of_jumok()))


def test_nothing_is_unpickled() -> None:
    expect_none(pickles(modules_of_jumok()))


def test_every_import_names_the_module_that_defines_it() -> None:
    folders = ("src", "tests", "benchmarks", "docs")
    paths = [
        path
        for folder in folders
        for path in (PROJECT / folder).rglob("*.py")
        if path != Path(__file__) and ".venv" not in path.parts  # `make bench` creates benchmarks/.venv
    ]
    expect_none(
        [
            f"{path.relative_to(PROJECT)}: {fault}"
            for path in paths
            for fault in imports_through_packages(path.read_text(encoding="utf-8"), SOURCE)
        ]
    )


def test_tests_import_shared_code_from_the_package_support() -> None:
    shared_modules = "|".join(path.stem for path in (PROJECT / "tests" / "support").glob("[a-z]*.py"))
    paths = (PROJECT / "tests").rglob("*.py")
    expect_none(
        [
            f"{path.relative_to(PROJECT)}: {found}. Write `from support.{found.split()[-1]} import …`."
            for path in paths
            for found in re.findall(
                rf"^\s*(?:from|import) (?:{shared_modules})\b", path.read_text("utf-8"), re.MULTILINE
            )
        ]
    )


def test_an_import_through_a_package_is_caught() -> None:
    text = (
        "from jumok.data import (\n    Corpus,\n    corpora,\n)\nfrom jumok.attention import ScaledDot as S\n"
    )
    faults = imports_through_packages(text, SOURCE)
    assert faults == ["Corpus from jumok.data: import it from the module that defines it."]


def test_package_interfaces_are_sorted_and_complete() -> None:
    expect_none(package_interfaces(modules_of_jumok()))


def test_the_design_lists_every_dependency() -> None:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    groups = [project["dependencies"], *project["optional-dependencies"].values()]
    names = {re.split(r"[^\w-]", requirement)[0] for group in groups for requirement in group}
    names -= {"jumok"}  # an extra may include another extra of jumok
    _, _, section = DESIGN.read_text(encoding="utf-8").partition("## Dependencies")
    assert names <= set(re.findall(r"[\w-]+", section)), names - set(re.findall(r"[\w-]+", section))


# --- The checks themselves ----------------------------------------------------------------------------------


def write_tree(folder: Path, **files: str) -> list[Module]:
    """Write a small source tree and read it: `attention__masks="…"` becomes jumok/attention/masks.py.

    The name `init` becomes `__init__`.
    """
    source = folder / "jumok"
    for name, text in {"init": "", **files}.items():
        parts = [part.replace("init", "__init__") for part in name.split("__")]
        path = source.joinpath(*parts).with_suffix(".py")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")
    return read_modules(source)


def test_the_direction_is_read_from_docs_design() -> None:
    direction = drawn_direction()
    assert {"errors", "types", "config"} <= direction.left["attention"]
    assert {"models", "data", "text", "inference", "evaluation"} <= direction.left["training"]
    assert "training" not in direction.left["inference"]
    assert "models" not in direction.left["data"]
    assert direction.left["plots"] == {"types"}
    assert direction.left[CLI] >= {"training", "plots", FRONT}
    assert CLI not in direction.left[FRONT]


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("attention__masks", "from jumok.models import build", "'attention' imports jumok.models"),
        ("attention__masks", "import jumok.training.loop", "'attention' imports jumok.training.loop"),
        ("plots__grid", "def f():\n    from jumok.inference import load", "'plots' imports jumok.inference"),
        ("plots__grid", "from jumok import config", "'plots' imports jumok"),
        ("models__build", "from ..inference import load", "'models' imports jumok.inference"),
        ("data__store", "from jumok import load", "'data' imports jumok,"),
        ("types", "from jumok.config import Recipe", "'types' imports jumok.config"),
        ("training__loop", "from jumok.cli import main", "'training' imports jumok.cli"),
        ("cellar__box", "", "does not list the package 'cellar'"),
    ],
)
def test_an_import_against_the_direction_is_caught(tmp_path: Path, name: str, text: str, words: str) -> None:
    violations = imports_against_direction(write_tree(tmp_path, **{name: text}), drawn_direction())
    assert len(violations) == 1
    assert words in violations[0]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("models__build", "from jumok.attention import Attention\nimport jumok.errors"),
        ("storage", "from jumok.config import Recipe"),
        ("plots__grid", "from jumok.types import AttentionMap\nfrom jumok.errors import DataError"),
        (
            "text__learning",
            "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from jumok.config import Recipe",
        ),
        ("cli__train", "from jumok import __version__\nfrom jumok.training import train"),
        ("init", "from jumok.inference import load"),
    ],
)
def test_an_import_from_the_left_is_fine(tmp_path: Path, name: str, text: str) -> None:
    assert imports_against_direction(write_tree(tmp_path, **{name: text}), drawn_direction()) == []


def test_only_one_module_may_load_weights_from_a_pickle(tmp_path: Path) -> None:
    restricted, unrestricted = "torch.load(file, weights_only=True)", "torch.load(file, weights_only=False)"
    assert pickles(write_tree(tmp_path / "a", interop__pickled_weights=restricted)) == []
    assert len(pickles(write_tree(tmp_path / "b", interop__pickled_weights=unrestricted))) == 1
    assert len(pickles(write_tree(tmp_path / "c", interop__other=restricted))) == 1


def test_only_one_module_may_import_ray(tmp_path: Path) -> None:
    assert pickles(write_tree(tmp_path / "a", inference__bulk__ray_workers="import ray")) == []
    assert len(pickles(write_tree(tmp_path / "b", inference__bulk__ray_workers="import pickle"))) == 1
    assert len(pickles(write_tree(tmp_path / "c", inference__other="import ray"))) == 1


def test_type_imports_from_the_right_or_into_plots_are_caught(tmp_path: Path) -> None:
    text = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from jumok.inference import Stepper"
    modules = write_tree(tmp_path, models__model=text, plots__grid=text)
    violations = imports_against_direction(modules, drawn_direction())
    assert len(violations) == 2
    assert "'models'" in violations[0]
    assert "'plots'" in violations[1]  # which may import types only


def test_a_cycle_of_packages_is_caught_even_inside_functions(tmp_path: Path) -> None:
    modules = write_tree(
        tmp_path,
        config="from jumok.storage import save",
        storage="def save():\n    from jumok.config import Recipe",
    )
    assert "config → storage → config" in package_cycles(modules)[0]
    assert module_cycles(modules) == []


def test_a_cycle_of_modules_is_caught(tmp_path: Path) -> None:
    modules = write_tree(
        tmp_path,
        plots__one="from jumok.plots import two",
        plots__two="from jumok.plots.three import x",
        plots__three="import jumok.plots.one",
    )
    assert (
        "jumok.plots.one → jumok.plots.two → jumok.plots.three → jumok.plots.one" in module_cycles(modules)[0]
    )
    assert package_cycles(modules) == []


def test_a_module_that_imports_its_own_package_is_caught(tmp_path: Path) -> None:
    modules = write_tree(
        tmp_path, plots__init="from jumok.plots.grid import Grid", plots__grid="from jumok.plots import Grid"
    )
    assert "jumok.plots → jumok.plots.grid → jumok.plots" in module_cycles(modules)[0]


@pytest.mark.parametrize(
    "text", ["print('x')", "import sys\nsys.exit(1)", "raise SystemExit", "raise SystemExit(2)", "exit()"]
)
def test_printing_and_exiting_are_caught(tmp_path: Path, text: str) -> None:
    assert len(prints_and_exits(write_tree(tmp_path, plots__grid=text, cli__look=text))) == 1


@pytest.mark.parametrize(
    "text",
    [
        "import pickle",
        "from multiprocessing import Pipe",
        "from pickle import loads",
        "import torch\ntorch.load('x')",
        "from torch import load",
        "load = torch.load",
        "numpy.load('x', allow_pickle=True)",
    ],
)
def test_pickles_are_caught(tmp_path: Path, text: str) -> None:
    assert len(pickles(write_tree(tmp_path, storage=text))) == 1


def test_code_that_only_looks_like_a_pickle_is_fine(tmp_path: Path) -> None:
    text = "from jumok.inference import load\nnumpy.load('x', allow_pickle=False)\ntorch.loader\n'pickle'"
    assert pickles(write_tree(tmp_path, storage=text)) == []


@pytest.mark.parametrize(
    ("line", "caught"),
    [
        ("from jumok.models import Model", True),
        ("import torch  # because", True),
        ("import torch  # start-up", False),
        ("from matplotlib import pyplot  # optional", False),
    ],
)
def test_imports_inside_functions_without_a_reason_are_caught(
    tmp_path: Path, line: str, caught: bool
) -> None:
    violations = late_imports(write_tree(tmp_path, training__run=f"import json\ndef f():\n    {line}\n"))
    assert len(violations) == caught


def test_asserts_long_functions_and_vague_names_are_caught(tmp_path: Path) -> None:
    body = "    x = 1\n" * MAX_FUNCTION_LINES  # with the line `def`, one line too many
    modules = write_tree(
        tmp_path,
        plots__grid="assert True",
        text__utils="",
        config=f"async def long():\n{body}",
        types=f"def longest_allowed():\n{body[len('    x = 1') + 1 :]}",
    )
    assert "plots/grid.py:1" in assertions(modules)[0]
    [fault] = long_functions(modules)
    assert f"config.py:1: long has {MAX_FUNCTION_LINES + 1} lines" in fault
    assert ["'utils'" in fault for fault in vague_names(modules)] == [True]


def test_many_arguments_are_caught_except_in_commands(tmp_path: Path) -> None:
    count = MAX_ARGUMENTS + 1
    too_many = ", ".join(f"a{number}" for number in range(count))
    allowed = too_many.rpartition(", ")[0]  # as many as allowed, since `self` and `**more` do not count
    modules = write_tree(
        tmp_path,
        plots__grid=f"class Grid:\n    def __init__(self, *, {too_many}): ...",
        text__words=f"class Words:\n    def split(self, {allowed}, **more): ...",
        cli__look=f"def look({too_many}): ...",
        cli__info=f"def other({too_many}): ...",
    )
    faults = many_arguments(modules)
    assert [f"__init__ takes {count}" in fault for fault in faults] == [False, True]
    assert f"cli/info.py:1: other takes {count} arguments" in faults[0]


@pytest.mark.parametrize(
    ("init", "words"),
    [
        ("from jumok.plots.grid import Grid", "has no __all__"),
        ("from jumok.plots.grid import Grid, flat\n__all__ = ['Grid']", "not in __all__: flat"),
        ("from jumok.plots.grid import Grid, flat\n__all__ = ['flat', 'Grid']", "not sorted"),
        ("from jumok.plots.grid import Grid\n__all__ = ['Grid', 'Grid']", "twice"),
        ("from jumok.plots.grid import Grid\n__all__ = ['Grid', 'grind']", "not importable: grind"),
        ("def draw(): ...\n__all__ = []", "not in __all__: draw"),
    ],
)
def test_a_bad_interface_is_caught(tmp_path: Path, init: str, words: str) -> None:
    package = type("Package", (), {"Grid": 1, "flat": 2, "draw": 3})
    violations = package_interfaces(write_tree(tmp_path, plots__init=init), lambda _: package)
    assert len(violations) == 1
    assert words in violations[0]


def test_an_empty_interface_is_fine(tmp_path: Path) -> None:
    assert package_interfaces(write_tree(tmp_path, plots__init='"""Soon."""'), lambda _: object()) == []


def test_all_lists_constants_then_classes_then_functions(tmp_path: Path) -> None:
    init = "__all__ = ['BEGIN', 'END', 'Alignment', 'Pair', 'align']"
    package = type("Package", (), dict.fromkeys(["BEGIN", "END", "Alignment", "Pair", "align"]))
    assert package_interfaces(write_tree(tmp_path, plots__init=init), lambda _: package) == []


def paths_in_tables(page: str) -> Iterator[str]:
    """Yield the paths in the tables of a page. A bare file name is in the folder of the path before it."""
    for row in re.findall(r"^\|.*\|$", page, re.MULTILINE):
        folder = ""
        for name in re.findall(r"`([\w./-]+(?:/|\.(?:py|ts|md|html)))`", row):
            path = (
                name
                if (PROJECT / name).exists() or name.startswith(("src/", "web/", "docs/"))
                else folder + name
            )
            folder = path if path.endswith("/") else path.rpartition("/")[0] + "/"
            yield path


def test_the_files_in_the_tables_of_contributing_exist() -> None:
    page = (PROJECT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    paths = list(paths_in_tables(page))
    assert len(paths) > 50
    assert [path for path in paths if not (PROJECT / path).exists()] == []


def test_a_bare_file_name_in_a_table_is_in_the_folder_of_the_path_before_it() -> None:
    page = "| the loop | `src/jumok/training/loop/trainer.py`, `nowhere.py` |"
    assert list(paths_in_tables(page)) == [
        "src/jumok/training/loop/trainer.py",
        "src/jumok/training/loop/nowhere.py",
    ]


def steps_of_walks(page: str) -> list[tuple[str, str]]:
    """Return (module, name of a function or class) for every step of the walks in docs/design.md."""
    walks = page.partition("## Four walks")[2].partition("\n## ")[0]
    return re.findall(r"`([\w/]+\.py)` `(\w+)`", walks)


def test_every_step_of_the_walks_exists() -> None:
    steps = steps_of_walks(DESIGN.read_text(encoding="utf-8"))
    assert len(steps) > 35
    defined = re.compile(r"^\s*(?:async )?(?:def|class) (\w+)", re.MULTILINE)
    missing = [
        f"{module} {name}"
        for module, name in steps
        if not (SOURCE / module).exists() or name not in defined.findall((SOURCE / module).read_text("utf-8"))
    ]
    assert missing == []


def test_modules_and_packages_of_the_drawing_exist() -> None:
    block = DESIGN.read_text(encoding="utf-8").partition("    src/jumok/\n")[2].partition("    web/")[0]
    parts: list[str] = []  # of the path that a line of the drawing stands for
    for indent, name in re.findall(r"^    ( +)([\w.]+/?)(?= |$)", block, re.MULTILINE):
        parts = [*parts[: (len(indent) - 2) // 2], name]
        assert (SOURCE / "".join(parts)).exists(), "".join(parts)
