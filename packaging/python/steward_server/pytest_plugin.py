"""Fixtures for pytest. The package registers them."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

import pytest

from . import Organization, Server


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addini("steward_args", "further arguments of `steward test`, as a shell splits them", default="")


def pytest_configure(config: pytest.Config) -> None:
    marker = "steward(reset=False, **organization): begin and end with a reset instead of an organization of its own, or make it so"
    config.addinivalue_line("markers", marker)


@pytest.fixture(scope="session")
def steward_server(request: pytest.FixtureRequest) -> Iterator[Server]:
    """A server for all tests of this process."""
    with Server(args=shlex.split(request.config.getini("steward_args"))) as server:
        yield server


@pytest.fixture
def steward(request: pytest.FixtureRequest, steward_server: Server) -> Iterator[Organization | Server]:
    """An organization for this test. With the marker `steward(reset=True)`, the server, after a reset."""
    marker = request.node.get_closest_marker("steward")
    wanted = dict(marker.kwargs) if marker else {}
    if wanted.pop("reset", False):
        steward_server.reset()
        yield steward_server
        steward_server.reset()
    else:
        yield steward_server.organization(**wanted)
        # They concern all organizations.
        steward_server.faults()
