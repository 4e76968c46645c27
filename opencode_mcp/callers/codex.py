"""The tools of the removed Codex MCP server, on OpenCode: they wait until the turn is over."""

from __future__ import annotations

from typing import TYPE_CHECKING

from mcp_types import InputRequiredResult

from opencode_mcp.callers.approving import check_rules
from opencode_mcp.callers.arguments_codex import CodexArguments, CodexReplyArguments
from opencode_mcp.callers.checking import one_reference
from opencode_mcp.callers.codex_answers import say_what_came
from opencode_mcp.callers.shown import Shown
from opencode_mcp.callers.tools import Tools
from opencode_mcp.errors import InvalidArgumentError
from opencode_mcp.records import ApprovalPolicy, Sandbox

if TYPE_CHECKING:
    from opencode_mcp.callers.progress import Reporter
    from opencode_mcp.callers.wire import Result
    from opencode_mcp.engine.engine import Engine
    from opencode_mcp.engine.keeper import Keeper
    from opencode_mcp.engine.requests import LooseModel
    from opencode_mcp.settings import Settings

_NO_CONFIG = (
    "config cannot be honoured: OpenCode's configuration is its own (opencode.json). Leave it out;"
    " model, sandbox and approval-policy are arguments of their own. Nothing was sent."
)
_NO_COMPACT_PROMPT = (
    "compact-prompt cannot be honoured: OpenCode compacts with a prompt of its own. Leave it out."
    " Nothing was sent."
)


class CodexTools(Tools):
    """The bodies of `codex` and `codex-reply`."""

    async def codex(
        self, arguments: CodexArguments, reporter: Reporter
    ) -> Result | InputRequiredResult:
        """`codex`: start a session and run its first turn to its end."""
        from opencode_mcp.engine.requests import StartRequest  # noqa: PLC0415 - late, see Tools

        _refuse_what_cannot_be_honoured(arguments)
        resumed = await self._resumed_to_the_end(reporter)
        if resumed is not None:
            return resumed
        settings = self._service.settings
        sandbox, policy = _rules(arguments, settings)
        directory = await self._directory(await self._absolute(arguments.cwd))
        engine = await self._service.engine()
        request = StartRequest(
            owner=self._asker().name,
            prompt=arguments.prompt,
            directory=directory,
            timeout_s=self._turn_limit(None),
            model=None if arguments.model else settings.default_model,
            loose_model=_loose_model(arguments.model, settings),
            agent=settings.default_agent,
            base_instructions=arguments.base_instructions,
            developer_instructions=arguments.developer_instructions,
            sandbox=sandbox,
            approval_policy=policy,
        )
        keeper = await engine.start(request, directory)
        return await self._to_the_end(engine, keeper, reporter)

    async def codex_reply(
        self, arguments: CodexReplyArguments, reporter: Reporter
    ) -> Result | InputRequiredResult:
        """`codex-reply`: run another turn to its end."""
        from opencode_mcp.engine.requests import ReplyRequest  # noqa: PLC0415

        reference = one_reference(arguments, ("threadId", "conversationId"))
        resumed = await self._resumed_to_the_end(reporter)
        if resumed is not None:
            return resumed
        request = ReplyRequest(
            asker=self._asker(),
            session_id=reference,
            prompt=arguments.prompt,
            timeout_s=self._turn_limit(None),
        )
        engine = await self._service.engine()
        keeper = await engine.reply(request)
        return await self._to_the_end(engine, keeper, reporter)

    async def _resumed_to_the_end(self, reporter: Reporter) -> Result | InputRequiredResult | None:
        """Go on with the turn of a call that its client repeats with a person's answers."""
        if reporter.context.request_state is None:
            return None
        from opencode_mcp.callers.eliciting import resume  # noqa: PLC0415
        from opencode_mcp.callers.presenting import present_view  # noqa: PLC0415

        engine = await self._service.engine()
        view = await resume(engine, reporter, self._asker(), owns=True)
        if view.keeper is not None:
            return await self._to_the_end(engine, view.keeper, reporter)
        max_chars = self._service.settings.max_output_chars
        result = present_view(view, Shown(max_chars), now=engine.clock.now())
        return say_what_came(result, view.verdict, max_chars)

    async def _to_the_end(
        self, engine: Engine, keeper: Keeper, reporter: Reporter
    ) -> Result | InputRequiredResult:
        """Watch a turn until it is over, and so much longer than its limit as a stop may take."""
        from opencode_mcp.callers.watching import verdict_now, watch_turn  # noqa: PLC0415

        settings = self._service.settings
        left_s = (keeper.turn.deadline_at - engine.clock.now()).total_seconds()
        wait_s = max(0.0, left_s) + settings.cleanup_timeout_seconds
        max_chars = settings.max_output_chars
        result = await watch_turn(
            engine, keeper, reporter, wait_s, Shown(max_chars), owns=True, returns_open=False
        )
        if isinstance(result, InputRequiredResult):
            return result
        return say_what_came(result, verdict_now(engine, keeper), max_chars)

    async def _absolute(self, cwd: str | None) -> str | None:
        """Return a folder; a relative one counts from the default folder, as with Codex."""
        if cwd is None or cwd.startswith(("/", "~")):
            return cwd
        default = self._service.settings.default_cwd
        base = default or (await self._service.own_directory()).path
        return f"{base}/{cwd}"


def _loose_model(name: str | None, settings: Settings) -> LooseModel | None:
    from opencode_mcp.engine.requests import LooseModel  # noqa: PLC0415

    default = settings.default_model
    preferred = default.partition("/")[0] if default else None
    return LooseModel(name, preferred) if name else None


def _refuse_what_cannot_be_honoured(arguments: CodexArguments) -> None:
    """Raise InvalidArgumentError. What is empty asks for nothing, and counts as absent."""
    if arguments.config:
        raise InvalidArgumentError(_NO_CONFIG)
    if arguments.compact_prompt:
        raise InvalidArgumentError(_NO_COMPACT_PROMPT)


def _rules(arguments: CodexArguments, settings: Settings) -> tuple[Sandbox, ApprovalPolicy]:
    """Return the thread's sandbox and approval policy. Raises PolicyNotAllowedError.

    Where the operator's default is `caller`, which Codex did not know, a person is asked instead.
    """
    sandbox = Sandbox(arguments.sandbox or settings.default_sandbox)
    default = settings.default_approval_policy
    if default is ApprovalPolicy.CALLER:
        has_person = ApprovalPolicy.ON_REQUEST in settings.allowed_approval_policies
        default = ApprovalPolicy.ON_REQUEST if has_person else ApprovalPolicy.NEVER
    policy = ApprovalPolicy(arguments.approval_policy or default)
    check_rules(sandbox, policy, settings)
    return sandbox, policy
