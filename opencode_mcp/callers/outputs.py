"""`opencode-output`: pages of what a turn left."""

from __future__ import annotations

from typing import TYPE_CHECKING

from opencode_mcp.callers.checking import check_output, one_reference
from opencode_mcp.callers.principals import current_principal

if TYPE_CHECKING:
    from opencode_mcp.callers.arguments_reading import OutputArguments
    from opencode_mcp.callers.progress import Reporter
    from opencode_mcp.callers.service import Service
    from opencode_mcp.callers.wire import Result


class OutputPages:
    """The tool's body. The engine and what presents it are imported at the first call."""

    def __init__(self, service: Service) -> None:
        self._service = service

    async def page(self, arguments: OutputArguments, _reporter: Reporter) -> Result:
        """`opencode-output`: read a section of a turn, and answer with one page of it."""
        from opencode_mcp.callers.output_pages import present_output  # noqa: PLC0415 - late
        from opencode_mcp.engine.sections import Section  # noqa: PLC0415

        check_output(arguments)
        reference = one_reference(arguments)
        section = Section(arguments.section or "answer")
        asker = current_principal(self._service.settings)
        engine = await self._service.engine()
        output = await engine.output(
            reference, asker, arguments.turn, section, arguments.snapshot_id
        )
        return present_output(output, arguments)
