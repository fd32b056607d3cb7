"""What the drills of this repository share: processes that end with the drill, nodes, a load, and its judgement.

It needs Python 3.9 and nothing else.
"""

import ctypes
import glob
import http.client
import json
import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import uuid
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PARENT_DEATH_SIGNAL = 1  # PR_SET_PDEATHSIG
# Ends a drill that hangs. Nothing that works comes near it, also if the machine is busy.
TIMEOUT = 300.0
# A loopback address that no other process uses, so a port of it stays free while a node is down.
HOST = f"127.{64 + (os.getpid() >> 16) % 64}.{os.getpid() >> 8 & 255}.{os.getpid() & 255}"


class CannotRun(Exception):
    """Something that the drill needs is missing."""


def steward_program():
    """Returns the path of the program: that of `STEWARD`, or the one that was built best."""
    built = [ROOT / "target" / profile / "steward" for profile in ("dist", "release", "debug")]
    named = os.environ.get("STEWARD")
    for path in [Path(named)] if named else built:
        if path.exists():
            return str(path.resolve())
    raise CannotRun("there is no program: cargo build --release, or set STEWARD")


def program(name, package):
    """Returns the path of a program, also if it is where Debian keeps the commands of PostgreSQL."""
    newest = sorted(glob.glob("/usr/lib/postgresql/*/bin"), key=lambda path: int(path.split("/")[4]))
    path = os.pathsep.join([*reversed(newest), os.environ.get("PATH", ""), "/usr/sbin"])
    found = shutil.which(name, path=path)
    if not found:
        raise CannotRun(f"{name} is missing: apt install {package}")
    return found


def database_user():
    """Returns the user that runs PostgreSQL: it refuses to run as root."""
    if os.geteuid() != 0:
        return None
    try:
        return pwd.getpwnam("postgres")
    except KeyError:
        raise CannotRun("there is no user postgres: apt install postgresql") from None


def free_ports(count):
    """Returns ports of `HOST` that nothing uses."""
    sockets = [socket.socket() for _ in range(count)]
    for one in sockets:
        one.bind((HOST, 0))
    ports = [one.getsockname()[1] for one in sockets]
    for one in sockets:
        one.close()
    return ports


def end_with_parent():
    ctypes.CDLL(None).prctl(PARENT_DEATH_SIGNAL, signal.SIGKILL)


class Stage:
    """A temporary folder, and the processes that were started. All of it is gone when the drill ends."""

    def __enter__(self):
        self.folder = Path(tempfile.mkdtemp(prefix="steward-"))
        self.folder.chmod(0o755)
        self.processes = []
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
        return self

    def __exit__(self, *_):
        for process, how in reversed(self.processes):
            self.end(process, how)
        shutil.rmtree(self.folder, ignore_errors=True)

    def subfolder(self, name, user=None):
        """Creates a folder, which belongs to this user."""
        path = self.folder / name
        path.mkdir(mode=0o700)
        if user:
            os.chown(path, user.pw_uid, user.pw_gid)
        return path

    def start(self, words, name, cwd=None, env=None, user=None, end=signal.SIGTERM):
        """Starts a process with its output in the file `name`.log. It ends with this process, however that ends: at the end of
        the drill by the signal `end`."""
        log = open(self.folder / f"{name}.log", "ab")
        identity = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []} if user else {}
        process = subprocess.Popen(
            words, cwd=cwd, env={**os.environ, **(env or {})}, stdin=subprocess.DEVNULL, stdout=log, stderr=log,
            start_new_session=True, preexec_fn=end_with_parent, **identity,
        )
        log.close()
        self.processes.append((process, end))
        return process

    def end(self, process, how=signal.SIGTERM):
        """Stops a process and waits until it is gone."""
        if process.poll() is None:
            process.send_signal(how)
            try:
                process.wait(TIMEOUT)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def log(self, name):
        return (self.folder / f"{name}.log").read_text(errors="replace")


def run(words, cwd=None, env=None, user=None):
    """Runs a command and returns its output. Fails with its output if it fails."""
    identity = {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []} if user else {}
    done = subprocess.run(
        words, cwd=cwd, env={**os.environ, **(env or {})}, stdin=subprocess.DEVNULL, capture_output=True, text=True,
        timeout=TIMEOUT, check=False, **identity,
    )
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(map(str, words))}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout


def wait_until(what, is_true, pause=0.02):
    """Waits until `is_true` returns something true. Returns how many seconds that took."""
    begun = time.monotonic()
    while not is_true():
        if time.monotonic() - begun > TIMEOUT:
            raise RuntimeError(f"timed out: {what}")
        time.sleep(pause)
    return time.monotonic() - begun


class Node:
    """A node of a shared database: the real program, with a folder of its own."""

    def __init__(self, stage, name, database, port):
        self.stage, self.name, self.port = stage, name, port
        self.folder = stage.subfolder(f"node-{name}")
        self.env = {"STEWARD_DATA": database, "STEWARD_NODE": name, "STEWARD_LOG_FORMAT": "text"}
        # No limit of the nodes ends a request that only a busy machine delays.
        for limit in ("BODY_TIMEOUT", "DRAIN_DELAY", "GRACE", "HEADER_TIMEOUT", "REQUEST_TIMEOUT"):
            self.env[f"STEWARD_{limit}"] = "1h"
        self.process = None

    def command(self, *words):
        return run([steward_program(), *words], cwd=self.folder, env=self.env)

    def start(self):
        words = [steward_program(), "serve", "--listen", f"{HOST}:{self.port}", "--trusted-proxy", "127.0.0.0/8"]
        self.process = self.stage.start(words, f"node-{self.name}", cwd=self.folder, env=self.env, end=signal.SIGKILL)

    def kill(self):
        self.stage.end(self.process, signal.SIGKILL)

    def restart(self, is_out):
        """Stops the node as a service manager does, and starts it again. The node ends when `is_out` returns that the balancer
        sends it nothing more. Returns when it is ready."""
        self.process.send_signal(signal.SIGTERM)
        wait_until(f"the balancer leaves out node {self.name}", is_out)
        # A second signal ends the drain.
        self.stage.end(self.process)
        self.start()
        return wait_until(f"node {self.name} is ready again", self.is_ready)

    def is_ready(self):
        if self.process.poll() is not None:
            raise RuntimeError(f"node {self.name} ended:\n{self.stage.log(f'node-{self.name}')}")
        try:
            return Connection(self.port, None).send("GET", "/_readyz")[0] == 200
        except OSError:
            return False


class Connection:
    """An HTTP connection that is kept open. It is opened again after a failure."""

    def __init__(self, port, key):
        self.port, self.key, self.http = port, key, None

    def send(self, method, path, body=None, headers=None):
        """Sends a request. Returns the status and the body. Fails with `OSError` if no whole response comes."""
        headers = dict(headers or {})
        if self.key:
            headers["Authorization"] = f"Bearer {self.key}"
        if body is not None:
            headers["Content-Type"] = "application/json"
            body = json.dumps(body)
        if self.http is None:
            self.http = http.client.HTTPConnection(HOST, self.port, timeout=TIMEOUT)
        try:
            self.http.request(method, path, body, headers)
            response = self.http.getresponse()
            content = response.read()
        except (OSError, http.client.HTTPException) as cause:
            self.http = None
            raise ConnectionError(f"{method} {path}: {cause!r}") from cause
        is_json = "json" in response.getheader("Content-Type", "")
        return response.status, json.loads(content) if is_json else content


class Event:
    """A request of the load, as its client saw it. `status` is 0 if no response came."""

    def __init__(self, method, status, sent, took):
        self.method, self.status, self.sent, self.took = method, status, sent, took

    def has_failed(self):
        return self.status == 0 or self.status >= 500


class Client(threading.Thread):
    """One connection of the load. It changes a dashboard of its own, reads it after each change, and creates others."""

    def __init__(self, number, port, key, pause):
        super().__init__(daemon=True)
        self.number, self.pause = number, pause
        self.prefix = uuid.uuid4().hex[:8]
        self.connection = Connection(port, key)
        self.events, self.problems = [], []
        self.is_over = threading.Event()
        self.dashboard = None
        # The last acknowledged and the last sent change, and the names of the created dashboards.
        self.acknowledged = self.sent = 0
        self.changes, self.created = 0, []

    def run(self):
        try:
            turn = 0
            while not self.is_over.is_set():
                turn += 1
                if self.dashboard is None or turn % 4 == 0:
                    self.create()
                else:
                    self.change()
                self.read()
                time.sleep(self.pause)
        except Exception as problem:  # The drill reports it, and fails.
            self.problems.append(f"client {self.number}: {problem!r}")

    def send(self, method, path, body=None, headers=None):
        sent = time.monotonic()
        try:
            status, content = self.connection.send(method, path, body, headers)
        except ConnectionError:
            status, content = 0, None
        self.events.append(Event(method, status, sent, time.monotonic() - sent))
        if 400 <= status < 500:
            self.problems.append(f"{method} {path}: {status} {content}")
        return status, content

    def create(self):
        """Creates a dashboard. Sends the same request, with the same Idempotency-Key, until it is acknowledged."""
        name = f"{self.prefix}-{len(self.created)}"
        headers = {"Idempotency-Key": str(uuid.uuid4())}
        until = time.monotonic() + TIMEOUT
        status = 0
        while status != 201:
            status, made = self.send("POST", "/api/projects/@current/dashboards/", {"name": name}, headers)
            if 400 <= status < 500 or time.monotonic() > until:
                raise RuntimeError(f"{name} was not created: {status} {made}")
            if status != 201:
                time.sleep(0.1)
        self.created.append(name)
        if self.dashboard is None:
            self.dashboard = made["id"]
            self.path = f"/api/projects/@current/dashboards/{made['id']}/"

    def change(self):
        self.sent += 1
        status, _ = self.send("PATCH", self.path, {"description": str(self.sent)})
        if status == 200:
            self.acknowledged = self.sent
            self.changes += 1
        else:
            time.sleep(0.1)

    def read(self):
        """Reads the dashboard. The response must have the last acknowledged change, or a later one that got no answer."""
        if self.dashboard is None:
            return
        status, found = self.send("GET", self.path)
        if status == 200:
            self.judge("a read through the balancer", found["description"])

    def writes(self):
        return self.changes + len(self.created)

    def judge(self, where, description):
        if not self.acknowledged <= int(description or 0) <= self.sent:
            expected = f"{self.acknowledged} to {self.sent}"
            self.problems.append(f"{where} of client {self.number}: {description!r} instead of {expected}")


class Load:
    """Clients at one address."""

    def __init__(self, port, key, clients, pause=0.005):
        self.clients = [Client(number, port, key, pause) for number in range(clients)]
        self.begun = time.monotonic()
        for client in self.clients:
            client.start()

    def stop(self):
        for client in self.clients:
            client.is_over.set()
        for client in self.clients:
            client.join(2 * TIMEOUT)
            if client.is_alive():
                client.problems.append(f"client {client.number} did not end")
        self.ended = time.monotonic()

    def events(self):
        return sorted((event for client in self.clients for event in client.events), key=lambda event: event.sent)

    def problems(self):
        return [problem for client in self.clients for problem in client.problems]

    def acknowledged_writes(self):
        return sum(client.writes() for client in self.clients)

    def go_on(self, writes):
        """Waits until this many more writes are acknowledged, or something is wrong."""
        enough = self.acknowledged_writes() + writes
        wait_until("writes are acknowledged", lambda: self.acknowledged_writes() >= enough or self.problems())


def dashboards(port, key):
    """Returns all dashboards that a node shows, with their descriptions."""
    connection, found, offset = Connection(port, key), [], 0
    while True:
        path = f"/api/projects/@current/dashboards/?limit=1000&offset={offset}"
        status, page = connection.send("GET", path)
        if status != 200:
            raise RuntimeError(f"{path}: {status} {page}")
        found += page["results"]
        offset += 1000
        if page["next"] is None:
            return found


def compare(load, node, key):
    """Compares what a node has with what was acknowledged. Returns how many writes are lost, and how many were done twice."""
    found = dashboards(node.port, key)
    names = [one["name"] for one in found]
    acknowledged = {name for client in load.clients for name in client.created}
    lost = sum(name not in names for name in acknowledged)
    twice = len(names) - len(set(names))
    shown = {one["id"]: one["description"] for one in found}
    for client in load.clients:
        before = len(client.problems)
        if client.dashboard is not None:
            client.judge(f"node {node.name}", shown.get(client.dashboard, "-1"))
        lost += len(client.problems) - before
    return lost, twice
