"""Clients made with the Python and TypeScript SDKs that start our server themselves."""

from __future__ import annotations

import pytest

from tests_clients.support.sdk_tests import SdkTests


class TestOverStdio(SdkTests):
    @pytest.fixture
    def server(self) -> None:
        """None: the client starts it."""
