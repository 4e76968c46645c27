"""What the conformance suite wants a server to offer, added to ours. For tests only.

The names, texts and shapes are the suite's own. What asks the client for something, and goes on
with its answers, is in `conformance_asks.py`.
"""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

from fastmcp import Context  # noqa: TC002 - FastMCP reads it
from fastmcp.prompts import Message, PromptResult
from fastmcp.tools import Tool
from fastmcp.tools.base import ToolResult
from mcp_types import (
    AudioContent,
    ContentBlock,
    EmbeddedResource,
    ImageContent,
    TextContent,
    TextResourceContents,
)

from tests_clients.support.conformance_asks import offer_asks

if TYPE_CHECKING:
    from fastmcp import FastMCP

#: one red pixel
_PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQ"
    "DwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
)
#: no sound
_WAV = base64.b64encode(
    b"RIFF$\0\0\0WAVEfmt \x10\0\0\0\x01\0\x01\0\x44\xac\0\0\x88\x58\x01\0\x02\0\x10\0data\0\0\0\0"
).decode()
_SCHEMA = {
    "$schema": "https://json-schema.org/draft/2020-12/schema",
    "type": "object",
    "$defs": {
        "address": {
            "$anchor": "addressDef",
            "type": "object",
            "properties": {"street": {"type": "string"}, "city": {"type": "string"}},
        }
    },
    "properties": {
        "name": {"type": "string"},
        "address": {"$ref": "#/$defs/address"},
        "contactMethod": {"type": "string", "enum": ["phone", "email"]},
        "phone": {"type": "string"},
        "email": {"type": "string"},
    },
    "allOf": [{"anyOf": [{"required": ["phone"]}, {"required": ["email"]}]}],
    "if": {"properties": {"contactMethod": {"const": "phone"}}, "required": ["contactMethod"]},
    "then": {"required": ["phone"]},
    "else": {"required": ["email"]},
    "additionalProperties": False,
}
_HEADER = {
    "type": "object",
    "properties": {"region": {"type": "string", "x-mcp-header": "Region"}},
}


class Fixed(Tool):
    """A tool whose schema is exactly this, and which always answers the same."""

    async def run(self, arguments: dict[str, Any]) -> ToolResult:
        """Answer."""
        del arguments
        return ToolResult(content="done")


def offer(server: FastMCP) -> FastMCP:
    """Add everything to a server, and return it."""
    _offer_contents(server)
    _offer_news(server)
    _offer_schemas(server)
    _offer_resources(server)
    _offer_prompts(server)
    offer_asks(server)
    return server


def _offer_contents(server: FastMCP) -> None:
    image = ImageContent(type="image", data=_PNG, mime_type="image/png")
    audio = AudioContent(type="audio", data=_WAV, mime_type="audio/wav")
    text = "This is an embedded resource content."
    mixed = json.dumps({"test": "data", "value": 123})
    contents: dict[str, list[ContentBlock]] = {
        "test_simple_text": [_text("This is a simple text response for testing.")],
        "test_image_content": [image],
        "test_audio_content": [audio],
        "test_embedded_resource": [_resource("test://embedded-resource", "text/plain", text)],
        "test_multiple_content_types": [
            _text("Multiple content types test:"),
            image,
            _resource("test://mixed-content-resource", "application/json", mixed),
        ],
    }
    for name, blocks in contents.items():
        server.tool(_says(blocks), name=name, description=f"Returns the content of {name}")

    @server.tool(name="test_error_handling", description="Always fails")
    async def fail() -> ToolResult:
        text = "This tool intentionally returns an error for testing"
        return ToolResult(content=[_text(text)], is_error=True)


def _says(blocks: list[ContentBlock]) -> Any:  # noqa: ANN401 - a function that FastMCP reads
    async def say() -> ToolResult:
        return ToolResult(content=blocks)

    return say


def _offer_news(server: FastMCP) -> None:
    for name in ("test_tool_with_logging", "test_logging_tool"):

        @server.tool(name=name, description="Logs three times")
        async def log(context: Context) -> str:
            await context.info("Tool execution started")
            await context.info("Tool processing data")
            await context.info("Tool execution completed")
            return "logged"

    @server.tool(name="test_tool_with_progress", description="Reports progress three times")
    async def progress(context: Context) -> str:
        for done in (0, 50, 100):
            await context.report_progress(done, 100)
        return "reported"


def _offer_schemas(server: FastMCP) -> None:
    for name, schema in (("json_schema_2020_12_tool", _SCHEMA), ("test_custom_header", _HEADER)):
        server.add_tool(Fixed(name=name, description="Has a schema of its own", parameters=schema))


def _offer_resources(server: FastMCP) -> None:
    @server.resource("test://static-text", description="A text", mime_type="text/plain")
    def text() -> str:
        return "This is the content of the static text resource."

    @server.resource("test://static-binary", description="A picture", mime_type="image/png")
    def binary() -> bytes:
        return base64.b64decode(_PNG)

    uri = "test://template/{id}/data"

    @server.resource(uri, description="A template", mime_type="application/json")
    def template(id: str) -> str:  # noqa: A002 - the suite's name
        return json.dumps({"id": id, "templateTest": True, "data": f"Data for ID: {id}"})


def _offer_prompts(server: FastMCP) -> None:
    @server.prompt(name="test_simple_prompt", description="A text")
    def simple() -> str:
        return "This is a simple prompt for testing."

    @server.prompt(name="test_prompt_with_arguments", description="A text with two words of yours")
    def arguments(arg1: str, arg2: str) -> str:
        return f"Prompt with arguments: arg1='{arg1}', arg2='{arg2}'"

    @server.prompt(name="test_prompt_with_embedded_resource", description="A resource")
    def resource(resourceUri: str) -> PromptResult:  # noqa: N803 - the suite's name
        text = "Embedded resource content for testing."
        embedded = _resource(resourceUri, "text/plain", text)
        words = "Please process the embedded resource above."
        return PromptResult([Message(embedded), Message(words)])

    @server.prompt(name="test_prompt_with_image", description="A picture")
    def image() -> PromptResult:
        picture = ImageContent(type="image", data=_PNG, mime_type="image/png")
        return PromptResult([Message(picture), Message("Please analyze the image above.")])


def _text(text: str) -> TextContent:
    return TextContent(type="text", text=text)


def _resource(uri: str, mime_type: str, text: str) -> EmbeddedResource:
    contents = TextResourceContents(uri=uri, mime_type=mime_type, text=text)
    return EmbeddedResource(type="resource", resource=contents)
