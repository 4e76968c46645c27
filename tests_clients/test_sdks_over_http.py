"""Clients made with the Python and TypeScript SDKs that call a server which runs already."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests_clients.conftest import TOKEN
from tests_clients.support.sdk_clients import Url
from tests_clients.support.sdk_tests import SdkTests

if TYPE_CHECKING:
    from tests.support.http_bridge import HttpProcess


class TestOverHttp(SdkTests):
    @pytest.fixture
    def server(self, served: HttpProcess) -> Url:
        """Where it is."""
        return Url(served.url, TOKEN)
