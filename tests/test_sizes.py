"""Modules of at most 300 lines, functions of at most 40: what grew beyond has more than one job."""

from __future__ import annotations

import ast
from pathlib import Path

REPO = Path(__file__).resolve().parent.parent
#: where Python is; one that does not exist yet has none
FOLDERS = ("opencode_mcp", "tests", "tests_image", "tests_clients", "container", "scripts", "bench")
MODULE_LINES = 300
FUNCTION_LINES = 40


def modules() -> list[Path]:
    """Return all of ours, found without git: an unpacked release has none."""
    found = (file for folder in FOLDERS for file in (REPO / folder).rglob("*.py"))
    return sorted(file for file in found if "__pycache__" not in file.parts)


def too_long(source: str, name: str) -> list[str]:
    """Return what is too long in a module, and the module itself, each with its length."""
    lines = source.count("\n")
    found = [f"{name}: {lines} lines"] if lines > MODULE_LINES else []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            length = (node.end_lineno or node.lineno) - node.lineno + 1
            if length > FUNCTION_LINES:
                found.append(f"{name}:{node.lineno} {node.name}: {length} lines")
    return found


def test_no_module_and_no_function_is_too_long() -> None:
    found = [
        one
        for file in modules()
        for one in too_long(file.read_text(encoding="utf-8"), str(file.relative_to(REPO)))
    ]
    assert not found, "too long:\n" + "\n".join(found)


def test_what_is_one_line_too_long_is_found() -> None:
    def function(lines: int) -> str:
        return "@decorated\ndef long():\n" + "    pass\n" * (lines - 1)

    assert too_long(function(FUNCTION_LINES), "a.py") == []
    assert too_long(function(FUNCTION_LINES + 1), "a.py") == ["a.py:2 long: 41 lines"]
    method = "class One:\n    async def long(self):\n" + "        pass\n" * FUNCTION_LINES
    assert too_long(method, "a.py") == ["a.py:2 long: 41 lines"]
    assert too_long("pass\n" * MODULE_LINES, "a.py") == []
    assert too_long("pass\n" * (MODULE_LINES + 1), "a.py") == ["a.py: 301 lines"]
