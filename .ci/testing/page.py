"""Runs the examples of docs/testing.md, each as its page says, with a server of its own. The first argument is the program.

The examples in Rust are tests of the crate, and `go test` needs Go and tests.
"""

import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile

program = pathlib.Path(sys.argv[1]).resolve()
page = pathlib.Path(__file__).parents[2].joinpath("docs/testing.md").read_text()
blocks = re.findall(r"^```(\w+)\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
path = f"{program.parent}:{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"
scratch = tempfile.TemporaryDirectory()
folder = pathlib.Path(scratch.name)
ran = 0


def run(what, *command):
    """Runs a command in the folder. It must end well, and say nothing of an error."""
    global ran
    print(f"--- {what}", flush=True)
    done = subprocess.run(command, cwd=folder, env=os.environ | {"PATH": path}, timeout=120, stdout=subprocess.PIPE, text=True)
    print(done.stdout)
    if done.returncode != 0 or '"type":"' in done.stdout:
        sys.exit(f"{what}: exit code {done.returncode}")
    ran += 1
    return done.stdout


for number, (language, text) in enumerate(blocks):
    name = f"example_{number}"
    if language == "python":
        folder.joinpath(f"test_{name}.py").write_text(text)
        run("pytest", "steward", "test", "--", "pytest", "-q")
    elif language == "ts":
        folder.joinpath(f"{name}.test.mjs").write_text(text + "if (response.status !== 201) throw response.status;\n")
        run("node", "steward", "test", "--", "node", "--test")
    elif language == "json":
        line = run("ready line", "steward", "test", "--json", "--until-stdin-closes")
        same = [sorted(json.loads(ready)) for ready in (line, text)]
        if same[0] != same[1]:
            sys.exit(f"the ready line has {same[0]}, and the page {same[1]}")
    elif language == "sh" and "go test" not in text and "--until-stdin-closes" not in text:
        folder.joinpath(f"{name}.sh").write_text(f"set -e\n{text}")
        within = ["sh"] if "steward test" in text else ["steward", "test", "--", "sh"]
        run("shell", *within, f"{name}.sh")

if ran != 6:
    sys.exit(f"{ran} examples were run")
