"""The failover that `run` describes: etcd, three members of Patroni, two nodes, and their clients."""

import argparse
import json
import os
import signal
import sys
import time
import urllib.request
from pathlib import Path

sys.dont_write_bytecode = True
sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "packaging" / "cluster"))
from kit import (HOST, CannotRun, Load, Node, Stage, compare, database_user, free_ports, program, run,  # noqa: E402
                 wait_until)

MEMBERS = 3
NODES = 2
CLIENTS_OF_NODE = 4
# The time after which Patroni takes a silent primary for dead, in seconds. Its documentation allows no less.
TTL = 20
# How many writes each client has acknowledged when all nodes and clients have found the new primary. No request fails later.
SETTLED = 10


class Member:
    """Patroni, and the PostgreSQL server that it runs."""

    def __init__(self, stage, number, etcd_port):
        self.stage, self.name = stage, f"member{number}"
        self.user = database_user()
        self.port, self.rest_port = free_ports(2)
        self.folder = stage.subfolder(self.name, self.user)
        self.data = self.folder / "data"
        self.config = self.folder / "patroni.json"
        # JSON is YAML.
        self.config.write_text(json.dumps(self.settings(etcd_port), indent=1))
        self.config.chmod(0o644)
        self.process = None

    def settings(self, etcd_port):
        address = f"{HOST}:{self.port}"
        return {
            "scope": "steward", "name": self.name,
            "restapi": {"listen": f"{HOST}:{self.rest_port}", "connect_address": f"{HOST}:{self.rest_port}"},
            "etcd3": {"hosts": f"{HOST}:{etcd_port}"},
            "bootstrap": {
                "dcs": {"ttl": TTL, "loop_wait": 2, "retry_timeout": 9, "synchronous_mode": True,
                        "postgresql": {"use_pg_rewind": True, "remove_data_directory_on_diverged_timelines": True,
                                       "parameters": {"max_connections": 60, "synchronous_commit": "on"}}},
                "initdb": [{"encoding": "UTF8"}, {"locale": "C"}],
                "pg_hba": ["local all all trust", "host all all 127.0.0.0/8 trust",
                           "host replication all 127.0.0.0/8 trust"],
            },
            "postgresql": {
                "listen": address, "connect_address": address, "data_dir": str(self.data),
                "bin_dir": str(Path(program("postgres", "postgresql")).parent), "pgpass": str(self.folder / "pgpass"),
                "authentication": {"superuser": {"username": "postgres"}, "replication": {"username": "replicator"}},
                "parameters": {"unix_socket_directories": str(self.folder)},
            },
        }

    def start(self):
        words = [program("patroni", "patroni"), self.config]
        self.process = self.stage.start(words, self.name, cwd="/", user=self.user)

    def server(self):
        """Returns the id of the PostgreSQL server, or `None` if there is none in this member's folder."""
        try:
            number = int((self.data / "postmaster.pid").read_text().split()[0])
            return number if os.readlink(f"/proc/{number}/cwd") == str(self.data) else None
        except (OSError, ValueError, IndexError):
            return None

    def kill(self):
        """Kills Patroni, PostgreSQL and its processes, as the loss of the machine does."""
        server = self.server()
        children = Path(f"/proc/{server}/task/{server}/children").read_text().split()
        self.process.kill()
        for number in [server, *map(int, children)]:
            try:
                os.kill(number, signal.SIGKILL)
            except ProcessLookupError:
                pass
        self.process.wait()

    def stop(self):
        """Stops Patroni, which stops its server, and the server itself if it is still there."""
        if self.process:
            self.stage.end(self.process)
        server = self.server()
        if server:
            os.kill(server, signal.SIGQUIT)
            wait_until(f"the server of {self.name} has ended", lambda: self.server() is None)

    def roles(self):
        """Returns the role of each running member, as this one knows it."""
        try:
            with urllib.request.urlopen(f"http://{HOST}:{self.rest_port}/cluster", timeout=10) as answer:
                members = json.load(answer)["members"]
        except (OSError, ValueError, KeyError):
            return {}
        return {one["name"]: one["role"] for one in members if one["state"] in ("running", "streaming")}


class Cluster:
    """The members, and the store in which they elect a primary."""

    def __init__(self, stage):
        self.stage = stage
        client, peer = (f"http://{HOST}:{port}" for port in free_ports(2))
        words = ["--name", "one", "--data-dir", stage.folder / "etcd", "--listen-client-urls", client]
        words += ["--advertise-client-urls", client, "--listen-peer-urls", peer]
        words += ["--initial-advertise-peer-urls", peer, "--initial-cluster", f"one={peer}"]
        stage.start([program("etcd", "etcd-server"), *words], "etcd")
        self.members = [Member(stage, number, client.split(":")[2]) for number in range(1, MEMBERS + 1)]

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for member in self.members:
            member.stop()

    def start(self):
        self.members[0].start()
        wait_until("there is a primary", lambda: self.primary())
        for member in self.members[1:]:
            member.start()
        self.wait_until_synchronous()

    def roles(self):
        """Returns the role of each running member."""
        return next(filter(None, (member.roles() for member in self.running())), {})

    def running(self):
        return [member for member in self.members if member.process and member.process.poll() is None]

    def primary(self):
        """Returns the member that is the primary now, or `None`."""
        roles = self.roles()
        return next((member for member in self.running() if roles.get(member.name) == "leader"), None)

    def wait_until_synchronous(self):
        """Waits until all members that run stream, one of them synchronously."""
        running = {member.name for member in self.running()}

        def is_synchronous():
            roles = self.roles()
            return set(roles) == running and "sync_standby" in roles.values()

        wait_until("a standby is synchronous", is_synchronous, 0.2)

    def create_database(self):
        """Creates the role and the database. Returns the URL, which names all members."""
        words = [program("psql", "postgresql"), "-X", "-q", "-v", "ON_ERROR_STOP=1", "-h", HOST, "-p",
                 str(self.primary().port), "-U", "postgres"]
        run([*words, "-c", "CREATE ROLE steward LOGIN", "-c", "CREATE DATABASE steward OWNER steward"], cwd="/")
        hosts = ",".join(f"{HOST}:{member.port}" for member in self.members)
        return f"postgres://steward@{hosts}/steward"


def start_nodes(stage, database):
    nodes = [Node(stage, name, database, port) for name, port in zip("ab", free_ports(NODES))]
    key = json.loads(nodes[0].command("--json", "init", "--email", "owner@example.com"))["api_key"]
    for node in nodes:
        node.start()
    for node in nodes:
        wait_until(f"node {node.name} is ready", node.is_ready)
    return nodes, key


def gap(events, killed_at):
    """Returns the longest time without a good response around or after the kill."""
    ends = sorted(event.sent + event.took for event in events if not event.has_failed())
    return max(after - before for before, after in zip(ends, ends[1:]) if after >= killed_at)


def failover(cluster, loads):
    """Kills the primary and waits for another one. Returns when it was killed and when all clients wrote again, how long the
    promotion took, and the killed member."""
    cluster.wait_until_synchronous()
    killed, killed_at = cluster.primary(), time.monotonic()
    killed.kill()
    promoted = wait_until("a standby is promoted", lambda: cluster.primary() not in (None, killed), 0.1)
    enough = [(client, client.writes() + SETTLED) for load in loads for client in load.clients]
    wait_until("every client writes again", lambda: all(client.writes() >= writes for client, writes in enough))
    return (killed_at, time.monotonic()), promoted, killed


def judge(events, outage):
    """Returns what is wrong with the failed requests, and the outages of writes and reads."""
    killed_at, settled_at = outage
    writes = gap([event for event in events if event.method != "GET"], killed_at)
    reads = gap([event for event in events if event.method == "GET"], killed_at)
    outside = [event for event in events if event.has_failed()
               and (event.sent + event.took < killed_at or event.sent > settled_at)]
    problems = [f"{event.method} failed with {event.status} {event.sent - killed_at:.1f} s after the kill"
                for event in outside]
    return problems, writes, reads


def one_round(cluster, nodes, key, options):
    """Does one failover under load. Returns whether everything is as it should be."""
    loads = [Load(node.port, key, CLIENTS_OF_NODE) for node in nodes]
    for load in loads:
        load.go_on(options.writes)
    outage, promoted, killed = failover(cluster, loads)
    for load in loads:
        load.go_on(options.writes)
    for load in loads:
        load.stop()
    events = sorted((event for load in loads for event in load.events()), key=lambda event: event.sent)
    problems, writes, reads = judge(events, outage)
    compared = [compare(load, node, key) for load in loads for node in nodes]
    problems += [problem for load in loads for problem in load.problems()]
    for node in nodes:
        node.command("check")
    lost, twice = (max(counts) for counts in zip(*compared))
    for name, value in [
        ("acknowledged writes", f"{sum(load.acknowledged_writes() for load in loads):,}"),
        ("  lost", lost),
        ("  done twice", twice),
        ("requests that failed during the outage", sum(event.has_failed() for event in events)),
        ("a standby was promoted after", f"{promoted:.1f} s"),
        ("no write was acknowledged for", f"{writes:.1f} s"),
        ("no read was answered for", f"{reads:.1f} s"),
    ]:
        print(f"{name:46}{value:>10}")
    for problem in problems:
        print(f"PROBLEM: {problem}")
    killed.start()
    return not problems and lost == 0 and twice == 0


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--writes", type=int, default=500,
                        help="how many writes each node acknowledges before and after the outage, at least (500)")
    parser.add_argument("--rounds", type=int, default=1, help="how many primaries are killed, one after the other (1)")
    options = parser.parse_args()
    try:
        with Stage() as stage, Cluster(stage) as cluster:
            cluster.start()
            nodes, key = start_nodes(stage, cluster.create_database())
            is_good = all([one_round(cluster, nodes, key, options) for _ in range(options.rounds)])
    except CannotRun as cause:
        print(cause, file=sys.stderr)
        return 2
    return 0 if is_good else 1


if __name__ == "__main__":
    sys.exit(main())
