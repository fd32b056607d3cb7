"""Tests of the package, run by its own fixtures."""

import json
import multiprocessing
import os
import signal
import time
import urllib.error
import urllib.request

import pytest

import steward_server
from steward_server import ControlError, Organization, Server


def send(place, method, path, body=None, key=None):
    data = None if body is None else json.dumps(body).encode()
    headers = {"Authorization": f"Bearer {key or place.key}", "Content-Type": "application/json"}
    request = urllib.request.Request(place.url + path, data=data, method=method, headers=headers)
    try:
        with urllib.request.urlopen(request) as response:
            return response.status, json.loads(response.read() or "null")
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.loads(error.read())


def dashboards(place):
    return f"/api/projects/{place.project}/dashboards/"


def test_organization_is_private(steward, steward_server):
    assert isinstance(steward, Organization)
    assert send(steward, "POST", dashboards(steward), {"name": "A"})[0] == 201
    assert send(steward, "GET", dashboards(steward_server))[0] == 403
    other = steward_server.organization(name="Other", projects=["One", "Two"], members=[{"level": 8}])
    assert (other.name, [project["name"] for project in other.projects]) == ("Other", ["One", "Two"])
    assert other.members[0]["level"] == 8
    assert send(other, "GET", dashboards(steward))[0] == 403


@pytest.mark.steward(members=2)
def test_marker_describes_the_organization(steward):
    assert len(steward.members) == 2


@pytest.mark.steward(reset=True)
def test_reset_begins_anew(steward):
    assert isinstance(steward, Server)
    assert send(steward, "POST", dashboards(steward), {"name": "A"})[0] == 201
    steward.snapshot("one")
    assert send(steward, "POST", dashboards(steward), {"name": "B"})[0] == 201
    count = lambda: send(steward, "GET", dashboards(steward))[1]["count"]
    assert count() == 2
    steward.restore("one")
    assert count() == 1
    steward.reset()
    assert count() == 0
    assert send(steward, "GET", "/api/users/@me/", key=steward.member_key)[1]["email"] == "member@example.com"


def test_requests_faults_mails_and_time_are_in_the_hands_of_a_test(steward):
    path = f"/api/organizations/{steward.organization_id}/invites/"
    rules = steward.faults({"match": {"method": "POST", "path": path}, "times": 1, "effect": {"status": 503}})
    assert (rules[0]["id"], rules[0]["applied"]) == (1, 0)
    assert send(steward, "POST", path, {"target_email": "ann@example.com"})[0] == 503
    assert send(steward, "POST", path, {"target_email": "ann@example.com"})[0] == 201
    statuses = [entry["status"] for entry in steward.wait_for(count=2, path=path, method="POST")]
    assert statuses == [503, 201]
    assert [entry["status"] for entry in steward.requests(path=path, status=503)] == [503]
    [mail] = steward.mails(to="ann@example.com")
    assert mail["kind"] == "invite" and mail["links"]["token"]
    with pytest.raises(ControlError, match="408") as late:
        steward.wait_for(path="/api/nowhere/", timeout=0)
    assert late.value.status == 408
    read_only = steward.create_key(steward.owner["email"], ["dashboard:read"])
    assert send(steward, "POST", dashboards(steward), {"name": "A"}, key=read_only)[0] == 403
    steward.dns("example.com", "a text")
    steward.dns("example.org", error="timeout")


def test_faults_end_with_their_test(steward_server):
    assert steward_server.control("GET", "faults") == {"results": []}


def test_server_of_its_own():
    with Server(now="2026-03-01T00:00:00Z", random=3, strict=True) as server:
        assert (server.ready["random"], server.clock.now, server.clock.frozen) == (3, "2026-03-01T00:00:00Z", True)
        assert send(server, "POST", dashboards(server), {"name": "A", "nonsense": 1})[0] == 400
        key = server.create_key("owner@example.com", ["*"], expires_at="2026-03-02T00:00:00Z")
        assert server.clock.advance("72h")["keys"] == 1
        assert send(server, "GET", "/api/users/@me/", key=key)[0] == 401
        server.clock.set("2026-04-01T00:00:00Z")
        server.clock.run()
        assert not server.clock.frozen
        server.clock.freeze()
        with pytest.raises(ControlError, match="now: The clock only moves forward"):
            server.clock.set("2026-03-01T00:00:00Z")
        pid = server.ready["pid"]
        with pytest.raises(RuntimeError, match="runs"):
            server.start()
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)
    assert server.log == ""
    server.close()


def test_server_that_cannot_start_says_why(tmp_path):
    with pytest.raises(RuntimeError, match="ended with 2: .*--from"):
        Server(data=tmp_path / "absent").start()
    with pytest.raises(FileNotFoundError):
        Server(binary=str(tmp_path / "absent")).start()


def test_server_ends_although_a_forked_child_holds_its_stdin(monkeypatch):
    monkeypatch.setattr(steward_server, "_PATIENCE", 5.0)
    server = Server(args=["--log=info"]).start()
    child = multiprocessing.get_context("fork").Process(target=time.sleep, args=(600,))
    child.start()
    process = server._process
    server.close()
    child.kill()
    child.join()
    assert process.returncode == 0
    first = server.log
    with server:
        pass
    assert json.loads(first.splitlines()[0]) and json.loads(server.log.splitlines()[0])


def test_server_that_is_gone_is_named():
    server = Server()
    with pytest.raises(RuntimeError, match="does not run"):
        server.reset()
    with server:
        os.kill(server.ready["pid"], signal.SIGKILL)
        server._process.wait()
        with pytest.raises(RuntimeError, match="ended with -9"):
            server.reset()


def test_variable_that_names_no_program_is_named(monkeypatch, tmp_path):
    monkeypatch.setenv("STEWARD_BIN", str(tmp_path / "absent"))
    with pytest.raises(FileNotFoundError, match="STEWARD_BIN"):
        Server()
