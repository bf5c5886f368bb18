"""Holds a bill of materials to the schema of CycloneDX 1.5, and to what it is for.

    materials.py FILE
"""

import json, pathlib, sys, tomllib
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator

text = pathlib.Path(sys.argv[1]).read_text()
fault = JsonStrictValidator(SchemaVersion.V1_5).validate_str(text)
if fault:
    sys.exit(f"{fault}")
materials = json.loads(text)
components = {component["name"]: component for component in materials["components"]}
lock = tomllib.loads((pathlib.Path(__file__).parent / "../../Cargo.lock").read_text())
sums = {(package["name"], package["version"]): package.get("checksum") for package in lock["package"]}
for component in materials["components"]:
    if component["name"] == "sqlite":
        continue
    key = component["name"], component["version"]
    assert component["purl"] == "pkg:cargo/{}@{}".format(*key), component
    assert component["hashes"] == [{"alg": "SHA-256", "content": sums[key]}], component
    assert component["licenses"][0]["expression"], component
# Some that are linked, for one engine each and for both; some that are not.
assert {"hyper", "rusqlite", "tokio-postgres", "ring", "sqlite"} <= components.keys()
assert not {"insta", "proptest", "cc", "unionhall", "bench"} & components.keys()
refs = {component["bom-ref"] for component in materials["components"]} | {materials["metadata"]["component"]["bom-ref"]}
assert refs == {entry["ref"] for entry in materials["dependencies"]}
