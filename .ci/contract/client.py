"""Checks a generated client: it has a module for each operation, and all modules can be imported."""

import importlib
import json
import pathlib
import pkgutil
import sys

document, folder, name = sys.argv[1:]
paths = json.loads(pathlib.Path(document).read_text())["paths"]
promised = {operation["operationId"] for path in paths.values() for operation in path.values()}

sys.path.insert(0, folder)
package = importlib.import_module(name)
made = set()
for module in pkgutil.walk_packages(package.__path__, f"{name}."):
    importlib.import_module(module.name)
    if module.name.startswith(f"{name}.api.") and not module.ispkg:
        made.add(module.name.rsplit(".", 1)[1])

if made != promised:
    sys.exit(f"missing: {sorted(promised - made)}; unknown: {sorted(made - promised)}")
print(f"The client has all {len(made)} operations.")
