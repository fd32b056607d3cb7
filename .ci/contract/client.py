"""Whether a client that was generated of the document is whole: a module for each operation, and all can be imported."""

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
    sys.exit(f"left out: {sorted(promised - made)}; nobody's: {sorted(made - promised)}")
print(f"A client of all {len(made)} operations.")
