"""Pages that the code writes: MkDocs calls these functions while it builds the site.

In: Markdown with markers such as ``{{ options }}``. Out: Markdown with tables made from the package's own tables.
It states no fact of its own.
"""

from __future__ import annotations

import inspect
import re
import sys
import typing
from collections.abc import Callable
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
MARKER = re.compile(r"\{\{ (\w+)(?: ([\w.]+))? \}\}")
OPTION = re.compile(r"\* ``(\w+)``: (.*?)(?=\n *\* |\n\n|\Z)", re.DOTALL)  # an item of the list in a docstring


def on_config(config: Any) -> Any:
    """An entry of the navigation that ends with a slash stands for the pages of that folder, in order of names."""
    config.nav = [_with_folder(entry, Path(config.docs_dir)) for entry in config.nav]
    return config


def on_page_markdown(markdown: str, **_: Any) -> str:
    """``markdown`` with its markers replaced.

    Raises:
        KeyError: a marker has no function.
    """

    def replacement(marker: re.Match[str]) -> str:
        function, argument = MARKERS[marker[1]], marker[2]
        return function(argument) if argument else function()

    return MARKER.sub(replacement, markdown)


def options_table() -> str:
    """One row per option of the backend: its name, default and meaning.

    Raises:
        ValueError: an option is not described in the backend's docstring, or the other way round.
    """
    from qsim_ozaki import OzakiBackend

    options = sys.modules[type(OzakiBackend._default_options()).__module__].OPTIONS
    meanings = dict(OPTION.findall(inspect.getdoc(OzakiBackend) or ""))
    if meanings.keys() != options.keys():
        raise ValueError(f"options {set(meanings) ^ set(options)} are not in both the table and the docstring")
    lines = ["| option | default | meaning |", "| --- | --- | --- |"]
    for name, (default, _) in options.items():
        meaning = _code(" ".join(meanings[name].split()))
        lines.append(f"| `{name}` | `{default!r}` | {meaning[0].upper()}{meaning[1:]} |")
    return "\n".join(lines)


def aer_options_table() -> str:
    """One row per option of Aer: its name or pattern of names, how it is treated, and its meaning to this backend."""
    from qsim_ozaki import OzakiBackend

    options = sys.modules[type(OzakiBackend._default_options()).__module__]
    foreign = sys.modules[options.find_foreign.__module__].FOREIGN
    lines = ["| Aer's option | treatment | meaning |", "| --- | --- | --- |"]
    for name, option in foreign.items():
        lines.append(f"| `{name}` | {option.treatment} | {_code(option.meaning)} |")
    return "\n".join(lines)


def command_line() -> str:
    """Every command with its arguments and options, from the command line's own help."""
    import typer
    from typer.cli import get_docs_for_click
    from typer.main import get_command

    from qsim_ozaki.cli import main

    command = get_command(sys.modules[main.__module__].app)
    context = typer.Context(command, info_name="qsim-ozaki")
    text = get_docs_for_click(obj=command, ctx=context, name="qsim-ozaki")
    commands = text[text.index("\n## ") :]  # before them: the page's own title, and a list of what follows
    return commands.replace("```console", "```text")


def families_table() -> str:
    """One row per circuit family: its name, least width, circuit and source."""
    from importlib import import_module

    from qsim_ozaki.circuits import FAMILIES

    lines = ["| family | least width | circuit | source |", "| --- | --- | --- | --- |"]
    for name, family in FAMILIES.items():
        function = getattr(import_module(f"qsim_ozaki.circuits.{family.function}"), family.function)
        source = (inspect.getdoc(function) or "").partition("Source:")[2].split("\n\n")[0]
        source = " ".join(source.split()).replace("|", r"\|")
        lines.append(f"| `{name}` | {family.min_qubits} | {family.about} | {_code(source)} |")
    return "\n".join(lines)


def returned(method: str) -> str:
    """The full name of the class that a method of the backend returns.

    Args:
        method: as ``OzakiBackend.plan``.
    """
    import qsim_ozaki

    owner, name = method.split(".")
    kind = typing.get_type_hints(getattr(getattr(qsim_ozaki, owner), name))["return"]
    return f"{kind.__module__}.{kind.__qualname__}"


def changelog() -> str:
    """The changelog below its title."""
    return (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").partition("\n")[2]


MARKERS: dict[str, Callable[..., str]] = {
    "options": options_table,
    "aer_options": aer_options_table,
    "command_line": command_line,
    "families": families_table,
    "returned": returned,
    "changelog": changelog,
}


def _with_folder(entry: Any, docs: Path) -> Any:
    title, target = next(iter(entry.items())) if isinstance(entry, dict) else ("", entry)
    if not isinstance(target, str) or not target.endswith("/"):
        return entry
    pages = sorted(page.name for page in (docs / target).iterdir() if page.suffix in (".md", ".ipynb"))
    pages.sort(key=lambda name: name != "index.md")
    return {title: [target + name for name in pages]}


def _code(text: str) -> str:
    """Double backticks of docstrings as Markdown's single ones."""
    return text.replace("``", "`")
