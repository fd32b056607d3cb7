"""A Steward server for one test run.

    with Server() as steward:
        requests.get(steward.url + "/api/users/@me/", headers=steward.auth)

The server is a process of this machine that ends with this one. Nothing is left of it.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterable, Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any

__all__ = ["Clock", "ControlError", "Organization", "Server", "find_steward"]

Json = dict[str, Any]

#: How long a server may take to start, to answer and to end, in seconds.
_PATIENCE = 60.0
#: The control plane is on this machine, so no proxy leads to it.
_opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def find_steward() -> str:
    """Returns the path of the program: that of the variable `STEWARD_BIN`, the one of this package, or one on the path.

    Raises `FileNotFoundError` if there is none.
    """
    named = os.environ.get("STEWARD_BIN")
    if named:
        found = shutil.which(named)
        if found is None:
            raise FileNotFoundError(f"the variable STEWARD_BIN names no program: {named}")
        return found
    of_user = sysconfig.get_path("scripts", f"{os.name}_user")
    # The last one is that of `pip install --target`.
    of_target = str(Path(__file__).parents[1] / "bin")
    for folder in [sysconfig.get_path("scripts"), of_user, str(Path(sys.executable).parent), of_target]:
        found = shutil.which("steward", path=folder)
        if found:
            return found
    found = shutil.which("steward")
    if found:
        return found
    raise FileNotFoundError("there is no program named steward; set the variable STEWARD_BIN to its path")


class ControlError(Exception):
    """An error of the control plane. `status` is the status, and `body` the error."""

    def __init__(self, status: int, body: Json) -> None:
        attr = body.get("attr")
        super().__init__(f"{status}: " + (f"{attr}: " if attr else "") + str(body.get("detail")))
        self.status = status
        self.body = body


class Clock:
    """The clock of a server."""

    def __init__(self, server: Server) -> None:
        self._server = server

    @property
    def now(self) -> str:
        """The time of the service, such as `2026-03-01T00:00:00Z`."""
        return str(self._server.control("GET", "clock")["now"])

    @property
    def frozen(self) -> bool:
        """Whether it stands."""
        return bool(self._server.control("GET", "clock")["frozen"])

    def advance(self, by: str) -> Json:
        """Moves it by a length of time such as `72h`. Returns how much of what became due."""
        return self._set(advance=by)

    def set(self, now: str) -> Json:
        """Moves it forward to a time. Returns how much of what became due."""
        return self._set(now=now)

    def freeze(self) -> None:
        """Stops it."""
        self._set(frozen=True)

    def run(self) -> None:
        """Lets it run."""
        self._set(frozen=False)

    def _set(self, **change: object) -> Json:
        due: Json = self._server.control("POST", "clock", change)["due"]
        return due


class _Place:
    """What a server and an organization have in common. `url` is that of the service, without a slash at the end."""

    _server: Server
    url: str
    #: The key of the owner, which has all scopes.
    key: str
    #: The id of the first project.
    project: int
    #: The id of the organization.
    organization_id: str

    @property
    def auth(self) -> dict[str, str]:
        """The headers of a request with the owner's key."""
        return {"Authorization": f"Bearer {self.key}"}

    @property
    def clock(self) -> Clock:
        """The clock, which all organizations of a server have in common."""
        return Clock(self._server)

    def mails(self, to: str | None = None) -> list[Json]:
        """Returns the mails to an address, or all, oldest first."""
        return self._results("mails", {"to": to})

    def requests(self, **filters: object) -> list[Json]:
        """Returns the newest requests to the service, oldest first. The filters are `method`, `path`, `status`, `operation`, `key`,
        `since` and `limit`."""
        return self._results("requests", filters)

    def wait_for(self, count: int = 1, timeout: float = 5.0, **match: object) -> list[Json]:
        """Waits until so many requests match the filters, and returns them. Raises `ControlError` with 408 after the time."""
        body = {"match": match, "count": count, "timeout_ms": round(timeout * 1000)}
        found: list[Json] = self._server.control("POST", "requests/wait", body)["results"]
        return found

    def faults(self, *rules: Json) -> list[Json]:
        """Replaces all faults. Without rules, ends them. Returns the rules as the server has them."""
        found: list[Json] = self._server.control("PUT", "faults", {"results": list(rules)})["results"]
        return found

    def create_key(self, email: str, scopes: Sequence[str], **limits: object) -> str:
        """Creates a key of any user, and returns its value."""
        made = self._server.control("POST", "keys", {"email": email, "scopes": list(scopes), **limits})
        return str(made["value"])

    def dns(self, name: str, *txt: str, error: str | None = None) -> None:
        """Sets what the verification of a domain finds at a name: texts, or the error `servfail` or `timeout`."""
        answer = {"error": error} if error else {"txt": list(txt)}
        self._server.control("PUT", f"dns/{urllib.parse.quote(name)}", answer)

    def _results(self, path: str, filters: dict[str, Any]) -> list[Json]:
        query = urllib.parse.urlencode({name: value for name, value in filters.items() if value is not None})
        found: list[Json] = self._server.control("GET", f"{path}?{query}" if query else path)["results"]
        return found


class Organization(_Place):
    """An organization for one test, whose keys open nothing else. `members` and `projects` are as the server made them."""

    def __init__(self, server: Server, made: Json) -> None:
        self._server = server
        self.url = server.url
        self.organization_id = made["organization_id"]
        self.name: str = made["name"]
        self.projects: list[Json] = made["projects"]
        self.project = self.projects[0]["id"]
        self.owner: Json = made["owner"]
        self.key = self.owner["api_key"]
        self.members: list[Json] = made["members"]


class Server(_Place):
    """A server with a workspace in memory. Use it in a `with` statement, or call `start` and `close`.

    `data` is a backup or an export to start from, `now` the time at which the clock stands, `random` the number that ids are drawn
    from, `strict` whether unknown fields are refused, and `args` are further arguments of `steward test`. `binary` is the program,
    by default that of `find_steward`.
    """

    def __init__(
        self,
        *,
        data: str | os.PathLike[str] | None = None,
        now: str | None = None,
        random: int | None = None,
        strict: bool = False,
        args: Iterable[str] = (),
        binary: str | None = None,
    ) -> None:
        self._server = self
        self._args = [binary or find_steward(), "test", "--json", "--until-stdin-closes"]
        for flag, value in (("--from", data), ("--now", now), ("--random", random)):
            if value is not None:
                self._args.append(f"{flag}={os.fspath(value) if isinstance(value, os.PathLike) else value}")
        if strict:
            self._args.append("--strict")
        self._args.extend(args)
        self._process: subprocess.Popen[str] | None = None
        self._log_file: IO[bytes] | None = None
        self._log = ""
        #: What the server says when it is ready.
        self.ready: Json = {}

    def start(self) -> Server:
        """Starts the server. Raises `RuntimeError` with what it says if it does not."""
        if self._process is not None:
            raise RuntimeError("the server runs")
        # Not a pipe, which would be full at some time, because nobody reads it.
        self._log_file = tempfile.TemporaryFile("w+b")
        pipe = subprocess.PIPE
        try:
            # In a session of its own, an interrupt from the terminal ends the tests before it ends the server.
            self._process = subprocess.Popen(
                self._args, stdin=pipe, stdout=pipe, stderr=self._log_file, text=True, start_new_session=True
            )
            assert self._process.stdout is not None
            line = self._process.stdout.readline()
            if not line:
                self._process.wait(_PATIENCE)
                raise RuntimeError(self._how_it_ended())
            self.ready = json.loads(line)
        except BaseException:
            self.close()
            raise
        self.url = self.ready["url"]
        self.test_url: str = self.ready["test_url"]
        self.organization_id = self.ready["organization_id"]
        self.project = self.ready["project_id"]
        self.key = self.ready["user"]["api_key"]
        return self

    @property
    def member_key(self) -> str | None:
        """The key of the member, who has the lowest level; `None` if there is none."""
        member = self.ready.get("member")
        return member["api_key"] if member else None

    @property
    def log(self) -> str:
        """What the server has logged."""
        if self._log_file is None:
            return self._log
        file = self._log_file.fileno()
        return os.pread(file, os.fstat(file).st_size, 0).decode(errors="replace")

    def _how_it_ended(self) -> str:
        code = self._process and self._process.poll()
        return f"steward test ended with {code}: {self.log.strip()}"

    def close(self) -> None:
        """Ends the server."""
        process, self._process = self._process, None
        if process is not None:
            # A child that this process forked may keep the server's stdin open.
            process.terminate()
            try:
                process.communicate(timeout=_PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.communicate()
        if self._log_file is not None:
            self._log = self.log
            self._log_file.close()
            self._log_file = None

    def __enter__(self) -> Server:
        return self.start()

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None) -> None:
        self.close()

    def reset(self) -> None:
        """Puts everything but the snapshots back to how it was at the start."""
        self.control("POST", "reset")

    def snapshot(self, name: str) -> None:
        """Saves the state under a name."""
        self.control("PUT", f"snapshots/{urllib.parse.quote(name, safe='')}")

    def restore(self, name: str) -> None:
        """Puts the service back to a snapshot."""
        self.control("POST", f"snapshots/{urllib.parse.quote(name, safe='')}/restore")

    def organization(
        self,
        name: str | None = None,
        projects: int | Sequence[str] | None = None,
        members: int | Sequence[Json] | None = None,
    ) -> Organization:
        """Creates an organization for one test, with an owner, projects, members and a key for each of them."""
        asked = {"name": name, "projects": projects, "members": members}
        return Organization(self, self.control("POST", "organizations", {key: value for key, value in asked.items() if value is not None}))

    def control(self, method: str, path: str, body: object = None) -> Json:
        """Calls the control plane. Returns the JSON of the response, or an empty object without one.

        Raises `ControlError` for any status but 2xx, and `RuntimeError` if the server does not run.
        """
        if self._process is None:
            raise RuntimeError("the server does not run")
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.test_url + path, data=data, method=method)
        request.add_header("Content-Type", "application/json")
        try:
            with _opener.open(request, timeout=_PATIENCE + 600) as response:
                text = response.read()
        except urllib.error.HTTPError as error:
            with error:
                raise ControlError(error.code, json.loads(error.read())) from None
        except OSError:
            if self._process.poll() is None:
                raise
            raise RuntimeError(self._how_it_ended()) from None
        return json.loads(text) if text else {}
