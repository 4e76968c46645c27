"""What the conformance suite wants a server to offer, added to ours. For tests only.

The names, texts and shapes are the suite's (`conformance list --server` names its scenarios).
"""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING, Any

from fastmcp import Context
from fastmcp.prompts import Message, PromptResult
from fastmcp.tools import Tool
from fastmcp.tools.base import ToolResult
from mcp_types import (
    AudioContent,
    ElicitRequest,
    ElicitRequestFormParams,
    EmbeddedResource,
    ImageContent,
    InputRequiredResult,
    ListRootsRequest,
    TextContent,
    TextResourceContents,
)
