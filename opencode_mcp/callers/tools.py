"""The MCP tools: check the arguments, call the engine, present what it says."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from opencode_mcp.callers.approving import answer_given, chosen_rules
from opencode_mcp.callers.arguments import (
    ApproveArguments,
    CancelArguments,
    EndArguments,
    ReplyArguments,
    StartArguments,
)
from opencode_mcp.callers.arguments_reading import InfoArguments, StatusArguments
from opencode_mcp.callers.checking import check_together, one_reference, schema_of
from opencode_mcp.callers.outputs import OutputPages
from opencode_mcp.callers.principals import current_principal
from opencode_mcp.callers.request_ids import begun
from opencode_mcp.callers.shown import Shown
from opencode_mcp.errors import InvalidArgumentError, PathNotAllowedError, SessionNotFoundError
from opencode_mcp.records import EndAction
from opencode_mcp.roots import allowed_directory, is_too_wide

if TYPE_CHECKING:
    from mcp_types import InputRequiredResult

    from opencode_mcp.callers.progress import Reporter
    from opencode_mcp.callers.request_ids import Beginning
    from opencode_mcp.callers.service import Service
    from opencode_mcp.callers.shown import ShownArguments
    from opencode_mcp.callers.wire import Result
    from opencode_mcp.engine.engine import Engine
    from opencode_mcp.engine.keeper import Keeper
    from opencode_mcp.engine.overview import View
    from opencode_mcp.engine.requests import StartRequest
    from opencode_mcp.records import Principal, RequestClaim

DEFAULT_PAGE = 20
DEFAULT_CANCEL_WAIT_MS = 1000


class Tools:
    """The bodies of the tools. The engine and what presents it are imported at the first call."""

    def __init__(self, service: Service) -> None:
        self._service = service
        #: `opencode-output`
        self.output = OutputPages(service).page

    async def start(
        self, arguments: StartArguments, reporter: Reporter
    ) -> Result | InputRequiredResult:
        """`opencode`: start a session and run its first turn."""
        wait_s = self._wait(arguments.wait_seconds)
        resumed = await self._resumed(reporter, wait_s, self._shown(arguments))
        if resumed is not None:
            return resumed
        owner = self._asker().name

        async def begin(claim: RequestClaim | None) -> Keeper:
            request = self._start_request(arguments, owner, claim)
            directory = await self._directory(arguments.cwd)  # last: it may ask OpenCode
            return await (await self._service.engine()).start(request, directory)

        return await self._run(begin, reporter, wait_s, self._shown(arguments))

    def _start_request(
        self, arguments: StartArguments, owner: str, claim: RequestClaim | None
    ) -> StartRequest:
        from opencode_mcp.engine.requests import StartRequest  # noqa: PLC0415

        settings = self._service.settings
        sandbox, policy = chosen_rules(arguments, settings)
        timeout_s = self._turn_limit(arguments.timeout_seconds)
        return StartRequest(
            owner=owner,
            prompt=arguments.prompt,
            directory=arguments.cwd,
            timeout_s=timeout_s,
            model=arguments.model or settings.default_model,
            agent=arguments.agent or settings.default_agent,
            variant=arguments.variant,
            base_instructions=arguments.base_instructions,
            developer_instructions=arguments.developer_instructions,
            title=arguments.title,
            output_schema=schema_of(arguments),
            sandbox=sandbox,
            approval_policy=policy,
            claim=claim,
        )

    async def reply(
        self, arguments: ReplyArguments, reporter: Reporter
    ) -> Result | InputRequiredResult:
        """`opencode-reply`: run another turn."""
        from opencode_mcp.engine.requests import ReplyRequest  # noqa: PLC0415

        reference = one_reference(arguments)
        wait_s = self._wait(arguments.wait_seconds)
        resumed = await self._resumed(reporter, wait_s, self._shown(arguments))
        if resumed is not None:
            return resumed
        asker = self._asker()

        async def begin(claim: RequestClaim | None) -> Keeper:
            request = ReplyRequest(
                asker=asker,
                session_id=reference,
                prompt=arguments.prompt,
                timeout_s=self._turn_limit(arguments.timeout_seconds),
                model=arguments.model,
                agent=arguments.agent,
                variant=arguments.variant,
                developer_instructions=arguments.developer_instructions,
                output_schema=schema_of(arguments),
                claim=claim,
            )
            return await (await self._service.engine()).reply(request)

        return await self._run(begin, reporter, wait_s, self._shown(arguments))

    async def _run(
        self, begin: Beginning, reporter: Reporter, wait_s: float, shown: Shown
    ) -> Result | InputRequiredResult:
        """Begin a turn, or join the one that the same call began before, and watch it."""
        engine = await self._service.engine()
        # from here to the watch nothing may wait: a call that is cancelled has to be told of
        view = await begun(engine, reporter.call, begin)
        if view.keeper is None:
            view = await engine.structures.seen(view)
        return await self._watch(engine, view, reporter, wait_s, shown, owns=True)

    async def _resumed(
        self, reporter: Reporter, wait_s: float, shown: Shown, *, owns: bool = True
    ) -> Result | InputRequiredResult | None:
        """Go on with the turn of a call that its client repeats with a person's answers."""
        if reporter.context.request_state is None:
            return None
        from opencode_mcp.callers.eliciting import resume  # noqa: PLC0415

        engine = await self._service.engine()
        view = await resume(engine, reporter, self._asker(), owns=owns)
        return await self._watch(engine, view, reporter, wait_s, shown, owns=owns)

    async def approve(self, arguments: ApproveArguments, _reporter: Reporter) -> Result:
        """`opencode-approve`: answer an ask, and say where its turn stands then."""
        from opencode_mcp.callers.presenting import present_view  # noqa: PLC0415

        reference = one_reference(arguments)
        answer = answer_given(arguments)
        engine = await self._service.engine()
        view = await engine.approve(reference, self._asker(), arguments.approval_id, answer)
        return present_view(view, self._shown(), now=engine.clock.now())

    async def status(
        self, arguments: StatusArguments, reporter: Reporter
    ) -> Result | InputRequiredResult:
        """`opencode-status`: observe one session or several, or list them."""
        from opencode_mcp.callers.listing import present_page  # noqa: PLC0415

        check_together(arguments)
        engine = await self._service.engine()
        if arguments.references:
            return await self._observe(engine, arguments, reporter)
        if arguments.ids:
            from opencode_mcp.callers.batching import Batch  # noqa: PLC0415

            shown, wait_for = self._shown(arguments), arguments.wait_for or "any"
            batch = Batch(engine, self._asker(), arguments.ids, wait_for, shown)
            return await batch.observe(reporter, float(arguments.wait_seconds or 0))
        offset, limit = arguments.offset or 0, arguments.limit or DEFAULT_PAGE
        asker = self._asker()
        page = await engine.page(asker, offset=offset, limit=limit)
        return present_page(
            *page,
            offset=offset,
            owners=asker.sees_all,
            is_compact=arguments.detail == "compact",
            version=engine.opencode_version,
        )

    async def _observe(
        self, engine: Engine, arguments: StatusArguments, reporter: Reporter
    ) -> Result | InputRequiredResult:
        wait_s = float(arguments.wait_seconds or 0)
        resumed = await self._resumed(reporter, wait_s, self._shown(arguments), owns=False)
        if resumed is not None:
            return resumed
        view = await engine.view(one_reference(arguments), self._asker())
        return await self._watch(engine, view, reporter, wait_s, self._shown(arguments), owns=False)

    async def _watch(  # noqa: PLR0913 - as watch_turn
        self,
        engine: Engine,
        view: View,
        reporter: Reporter,
        wait_s: float,
        shown: Shown,
        *,
        owns: bool,
    ) -> Result | InputRequiredResult:
        """Watch the turn of a view while it runs, and present it."""
        from opencode_mcp.callers.presenting import present_view  # noqa: PLC0415
        from opencode_mcp.callers.watching import watch_turn  # noqa: PLC0415

        if view.keeper is not None:
            answers = view.session.owner == self._asker().name
            return await watch_turn(
                engine, view.keeper, reporter, wait_s, shown, owns=owns, answers=answers
            )
        return present_view(view, shown, now=engine.clock.now())

    async def cancel(self, arguments: CancelArguments, _reporter: Reporter) -> Result:
        """`opencode-cancel`: ask a running turn to stop, and say what is known of it."""
        from opencode_mcp.callers.cancels import present_cancel, present_no_turn  # noqa: PLC0415

        reference = one_reference(arguments)
        engine = await self._service.engine()
        wait_ms = DEFAULT_CANCEL_WAIT_MS if arguments.wait_ms is None else arguments.wait_ms
        cancelled = await engine.cancel(reference, self._asker(), arguments.turn_id, wait_ms / 1000)
        if cancelled is None:
            return present_no_turn(await engine.find(reference, self._asker()))
        return present_cancel(cancelled, self._shown(), now=engine.clock.now())

    async def info(self, arguments: InfoArguments, _reporter: Reporter) -> Result:
        """`opencode-info`: say what this server and its OpenCode offer."""
        from opencode_mcp.callers.infos import inform  # noqa: PLC0415

        return await inform(self._service, arguments, self._directory)

    async def end(self, arguments: EndArguments, _reporter: Reporter) -> Result:
        """`opencode-end`: end a session, or say why that is not confirmed."""
        from opencode_mcp.callers import answers  # noqa: PLC0415
        from opencode_mcp.callers.wording import advise  # noqa: PLC0415
        from opencode_mcp.engine.ends import Unconfirmed  # noqa: PLC0415

        reference = one_reference(arguments)
        engine = await self._service.engine()
        started = engine.clock.monotonic()

        def elapsed_ms() -> int:
            return round((engine.clock.monotonic() - started) * 1000)

        action = EndAction(arguments.action) if arguments.action else None
        try:
            end = await engine.end(reference, self._asker(), action)
        except SessionNotFoundError as error:
            return answers.present_not_found(reference, str(error), elapsed_ms=elapsed_ms())
        if isinstance(end, Unconfirmed):
            advice = advise(end.cause, self._service.settings)
            return answers.present_unconfirmed(end, elapsed_ms=elapsed_ms(), advice=advice)
        return answers.present_end(end, elapsed_ms=elapsed_ms())

    async def _directory(self, cwd: str | None) -> str:
        """Return the folder to run in. Raises PathNotAllowedError.

        Attached with no folder set, OpenCode's own is the default and the only root; like every
        implied root, it must not be `/` or a home folder (contract §4).
        """
        settings = self._service.settings
        default, roots = settings.default_cwd, settings.allowed_roots
        if default is None and (cwd is None or not roots):
            own = await self._service.own_directory()
            default = Path(own.path)
            if not roots and is_too_wide(default, home=own.home):
                msg = (
                    f"OpenCode's own folder {own.path[:100]!r} is too wide to be allowed without"
                    " being named: set OPENCODE_MCP_ALLOWED_ROOTS"
                )
                raise PathNotAllowedError(msg)
            roots = roots or (default,)
        return allowed_directory(cwd, default=default, roots=roots, remote=settings.remote_paths)

    def _shown(self, asked: ShownArguments | None = None) -> Shown:
        """Return how results are shown: as the call asks, else as the operator has set it."""
        max_chars = self._service.settings.max_output_chars
        if asked is None:
            return Shown(max_chars)
        return Shown(asked.max_output_chars or max_chars, asked.detail or "standard")

    def _asker(self) -> Principal:
        return current_principal(self._service.settings)

    def _turn_limit(self, asked: int | None) -> float:
        settings = self._service.settings
        if asked is None:
            return float(settings.turn_timeout_seconds)
        if asked > settings.max_turn_timeout_seconds:
            msg = (
                f"timeout-seconds is {asked}; this server allows 1 to"
                f" {settings.max_turn_timeout_seconds}"
            )
            raise InvalidArgumentError(msg)
        return float(asked)

    def _wait(self, asked: int | None) -> float:
        return float(self._service.settings.default_wait_seconds if asked is None else asked)
