"""Pages of the site that would rot as copies: they are made from the code, the fixtures and the files at the top."""

from __future__ import annotations

import difflib
import posixpath
import re
import tempfile
from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING

from cudalint import config, proof, rules
from cudalint.report.maps.formats import MapFormat, render
from cudalint.session import Session
from cudalint.structs import replace

if TYPE_CHECKING:
    from mkdocs.config.defaults import MkDocsConfig
    from mkdocs.structure.files import Files
    from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent.parent
# Files at the top of the repository that are pages of the site.
TOP = {"README.md": "index.md", "SECURITY.md": "security.md", "CHANGELOG.md": "changelog.md"}
_LINK = re.compile(r"(?<!!)\[(?P<text>[^\]\[]*)\]\((?P<target>[^)\s]+)\)")
_MAP = re.compile(r"^<!-- map: (?P<program>\S+)(?: for Python (?P<versions>\S+))? -->$", re.MULTILINE)
_FILE = re.compile(r"^<!-- file: (?P<name>\S+) -->$", re.MULTILINE)
# A code in running text; what stands in code, in a link, in a heading, in HTML or in a path is left as it is.
_RULE = re.compile(
    r"(?P<other>`[^`]*`|\[[^\]]*\]\([^)]*\)|^[#<].*$)|(?<![\w/])(?P<code>CUD\d{3})(?![\w/])", re.MULTILINE
)
_BLOCK = re.compile(r"^[ ]*```.*?^[ ]*```[ ]*$", re.MULTILINE | re.DOTALL)
_PYTHON = re.compile(r"^## (Example|Use instead)\n```python\n(.*?)```\n", re.MULTILINE | re.DOTALL)


# -- pages -----------------------------------------------------------------------------------------------------


def pages() -> dict[str, str]:
    """All pages that are made here, by their path in the site."""
    made = {target: (ROOT / name).read_text(encoding="utf-8") for name, target in TOP.items()}
    for code in rules.codes():
        made[f"rules/{code}.md"] = rule_page(code)
    for page in sorted((ROOT / "docs").glob("*.md")):
        for found in _MAP.finditer(page.read_text(encoding="utf-8")):
            made[_picture(found["program"])] = _drawn(found, MapFormat.HTML)
    return made


def _picture(program: str) -> str:
    """Where the drawn processes of a program stand on the site."""
    return f"maps/{program.removeprefix('fixtures/').removesuffix('.py').replace('/', '-')}.html"


def _drawn(found: re.Match[str], output_format: MapFormat) -> str:
    return processes(ROOT / found["program"], str(ROOT), output_format, found["versions"])


def _embedded(found: re.Match[str]) -> str:
    """The drawn processes of a program in a frame, and below it the same as text."""
    text = _drawn(found, MapFormat.TEXT).rstrip()
    title = text.split("\n")[0]
    height = 16 + 2 * text.count("\n")
    frame = f'<iframe src="../{_picture(found["program"])}" title="{escape(title)}" loading="lazy"'
    frame += f' style="width: 100%; height: {height}rem; border: 1px solid gray; border-radius: .3rem"></iframe>'
    return f'{frame}\n\n??? abstract "The same as text"\n{_indented(_fenced(text))}'


def rule_page(code: str) -> str:
    """The page of a rule: its docstring with drawn examples, a repair as it was made, and the evidence."""
    text = _PYTHON.sub(_with_processes, f"{rules.page(code)}\n")
    return "\n\n".join(filter(None, (text.rstrip(), _repair(code), proof.section(code)))) + "\n"


def _with_processes(found: re.Match[str]) -> str:
    """An example, and the processes that it starts."""
    drawn = _tree_of(found[2])
    if "─ " not in drawn:
        return found[0]
    return f'{found[0]}\n??? abstract "Its processes"\n{_indented(_fenced(drawn))}\n'


def _tree_of(text: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "example.py"
        path.write_text(text, encoding="utf-8")
        return processes(path, folder, MapFormat.TEXT)


def processes(path: Path, directory: str, output_format: MapFormat, versions: str | None = None) -> str:
    """The processes of a program, taken by itself: not as a part of this repository."""
    settings = replace(config.load([str(path)], isolated=True), root=None)
    if versions is not None:
        settings = replace(settings, target_versions=config.parse_versions(versions))
    return render(Session(settings).map([str(path)]), output_format, directory)


def _repair(code: str) -> str:
    """What a repair makes of the first fixture of a rule that has one."""
    for fixed in sorted((ROOT / "fixtures" / code).glob("*.fixed")):
        broken = fixed.with_suffix(".py")
        if not broken.is_file():
            continue
        rows = (path.read_text(encoding="utf-8").splitlines() for path in (broken, fixed))
        changed = "\n".join(difflib.unified_diff(*rows, "before", "after", lineterm="", n=2))
        if changed:
            told = f"`{broken.relative_to(ROOT)}` was run on GPUs as it is, and as its repair leaves it."
            return f"## A repair, as it was run\n\n{told}\n\n```diff\n{changed}\n```"
    return ""


def _fenced(text: str) -> str:
    return f"```text\n{text.rstrip()}\n```"


_LANGUAGES = {".yml": "yaml", ".py": "python", ".ini": "ini", "": "groovy"}


def _quoted(path: Path) -> str:
    """A file as a block of code."""
    language = "docker" if path.name == "Containerfile" else _LANGUAGES[path.suffix]
    return f"```{language}\n{path.read_text(encoding='utf-8').rstrip()}\n```"


def _indented(text: str) -> str:
    return "\n".join(f"    {row}".rstrip() for row in text.split("\n")) + "\n"


# -- changes of pages --------------------------------------------------------------------------------------------


def adapted(text: str, path: str, known: frozenset[str]) -> str:
    """A page as the site needs it: maps drawn, files quoted, rules linked, and no link to what is not on the site.

    ``path`` is where it stands on the site, ``known`` holds all pages and pictures of the site.
    """
    text = _MAP.sub(_embedded, text)
    text = _FILE.sub(lambda found: _quoted(ROOT / found["name"]), text)
    return "".join(_outside_code(text, path, known))


def _outside_code(text: str, path: str, known: frozenset[str]) -> Iterator[str]:
    """The text with its links adapted and its codes linked, but not in blocks of code."""
    end = 0
    for block in _BLOCK.finditer(text):
        yield _prose(text[end : block.start()], path, known)
        yield block[0]
        end = block.end()
    yield _prose(text[end:], path, known)


def _prose(text: str, path: str, known: frozenset[str]) -> str:
    text = _LINK.sub(lambda found: _linked(found, path, known), text)
    return _RULE.sub(lambda found: _to_rule(found, path, known), text)


def _to_rule(found: re.Match[str], path: str, known: frozenset[str]) -> str:
    """A code as a link to its page, where that is another page of the site."""
    target = f"rules/{found['code']}.md"
    if found["other"] is not None or target not in known or target == path:
        return found[0]
    return f"[{found['code']}]({posixpath.relpath(target, posixpath.dirname(path) or '.')})"


def _linked(found: re.Match[str], path: str, known: frozenset[str]) -> str:
    target = found["target"]
    if re.match(r"[a-z]+:|#", target):
        return found[0]
    name, _, anchor = target.partition("#")
    home = "docs" if path not in TOP.values() else ""
    in_repository = posixpath.normpath(posixpath.join(home, posixpath.dirname(path), name))
    on_site = TOP.get(in_repository, in_repository.removeprefix("docs/"))
    if on_site not in known:
        return found["text"]
    there = posixpath.relpath(on_site, posixpath.dirname(path) or ".")
    return f"[{found['text']}]({there}{f'#{anchor}' if anchor else ''})"


# -- what mkdocs calls -------------------------------------------------------------------------------------------


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """The pages of rules go below their list."""
    for place in config.nav or ():
        if place.get("Rules") == "rules.md":
            place["Rules"] = ["rules.md", *({code: f"rules/{code}.md"} for code in rules.codes())]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the pages that are made here."""
    from mkdocs.structure.files import File

    for path, text in pages().items():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Adapt each page."""
    known = frozenset(file.src_uri for file in files if file.inclusion.is_included())
    return adapted(markdown, page.file.src_uri, known)
