"""`opencode-info`: what this server and its OpenCode offer. Nothing of sessions is in it."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from opencode_mcp.callers.info_pages import AGENTS, MODELS, ROOTS, Page, paged
from opencode_mcp.callers.server_facts import present_server, shown_path, shown_roots
from opencode_mcp.callers.tools import DEFAULT_PAGE
from opencode_mcp.engine.pinning import PinnedLists
from opencode_mcp.errors import InvalidArgumentError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from opencode_mcp.callers.arguments_reading import InfoArguments
    from opencode_mcp.callers.service import Service
    from opencode_mcp.callers.wire import Result
    from opencode_mcp.engine.catalogue import Catalogue

    #: settles `cwd`, as for a new session
    DirectoryOf: TypeAlias = Callable[[str | None], Awaitable[str]]

SERVER = "server"
#: what goes only with some sections
_GOES_WITH = {
    "cwd": ("models", "agents"),
    "provider": ("models",),
    "offset": ("models", "agents", "roots"),
    "limit": ("models", "agents", "roots"),
    "snapshot-id": ("models", "agents", "roots"),
}


async def inform(service: Service, arguments: InfoArguments, directory_of: DirectoryOf) -> Result:
    """Answer a call.

    Raises InvalidArgumentError, PathNotAllowedError, SnapshotExpiredError and, where OpenCode has
    to be asked, what a read of it raises.
    """
    section = arguments.section or SERVER
    check_section(section, arguments)
    page = Page(arguments.offset or 0, arguments.limit or DEFAULT_PAGE)
    if section == "roots":
        return await _roots(service, arguments.snapshot_id, directory_of, page)
    catalogue = (await service.engine()).catalogue
    if section == SERVER:
        return present_server(service.settings, await catalogue.look())
    directory = await directory_of(arguments.cwd)
    return await _offers(catalogue, arguments, directory, page)


def check_section(section: str, arguments: InfoArguments) -> None:
    """Raise InvalidArgumentError for an argument that the section has no use for."""
    given = arguments.model_dump(by_alias=True, exclude_none=True)
    for name, sections in _GOES_WITH.items():
        if name in given and section not in sections:
            msg = f"{name} only goes with section {' or '.join(sections)}, not with {section}"
            raise InvalidArgumentError(msg)


async def _offers(
    catalogue: Catalogue, arguments: InfoArguments, directory: str, page: Page
) -> Result:
    """Return a page of the models or agents of a folder."""
    where, pinned = shown_path(directory), arguments.snapshot_id
    if arguments.section == "models":
        provider = arguments.provider
        models = await catalogue.models(directory, provider=provider, snapshot=pinned)
        of = f" of provider {provider}" if provider else ""
        result = paged(MODELS, models, page, f"models{of} for {where}")
        is_fresh = models.is_fresh
    else:
        agents = await catalogue.agents(directory, snapshot=pinned)
        result = paged(AGENTS, agents, page, f"agents for {where}")
        is_fresh = agents.is_fresh
    result["directory"] = where
    if is_fresh:  # a page of a snapshot says nothing of how OpenCode is now
        result["availability"] = "ok"
    return result


async def _roots(
    service: Service, pinned: str | None, directory_of: DirectoryOf, page: Page
) -> Result:
    """Return a page of the allowed roots, and the default folder where it is known.

    Attached with no folder set, OpenCode's own is both, and only then is it asked.
    """
    settings = service.settings
    default = None if settings.default_cwd is None else str(settings.default_cwd)
    roots = tuple(shown_roots(settings))
    if not roots:
        default = await directory_of(None)
        roots = (shown_path(default),)

    async def read() -> tuple[str, ...]:
        return roots

    # settings do not change while we run, so nothing needs to be kept
    listing = await PinnedLists[str](max_chars=0).get((), pinned, read)
    remote = " on OpenCode's machine" if settings.remote_paths else ""
    named = shown_path(default) if default else "OpenCode's own, if it lies within them"
    result = paged(ROOTS, listing, page, f"allowed roots{remote}; default folder: {named}")
    if default:
        result["directory"] = shown_path(default)
    return result
