"""Holds compose.yaml and the Dockerfile to deploy/ and to docs/container.md, whose commands it runs; no container engine is needed.

    container.py ROOT SERVER      ROOT is the folder of the sources, SERVER the program to prove
"""

import json, os, pathlib, re, shutil, subprocess, sys, tempfile
from ruamel.yaml import YAML

root, server = pathlib.Path(sys.argv[1]), sys.argv[2]
compose = YAML(typ="safe").load((root / "compose.yaml").read_text())
dockerfile = (root / "Dockerfile").read_text()


def same(found, expected, what):
    if found != expected:
        sys.exit(f"{what}: {found} is not {expected}")


def variables(text):
    lines = (line.partition("=") for line in text.splitlines() if re.match("[A-Z_]+=", line))
    return {name: value.strip("\"'") for name, _, value in lines}


settings = variables((root / "deploy/unionhall.env").read_text())
services = compose["services"]
nodes = {name: service for name, service in services.items() if name.startswith("node")}
address = {name: service["networks"]["union"]["ipv4_address"] for name, service in services.items()}

# The addresses are those of deploy/.
caddyfile = (root / "deploy/Caddyfile").read_text()
upstreams = re.search(r"reverse_proxy ([0-9.: ]+)", caddyfile)[1].split()
same([service["environment"]["UNIONHALL_LISTEN"] for service in nodes.values()], upstreams, "what Caddy asks")
for name, service in nodes.items():
    same(service["env_file"], ["deploy/unionhall.env", {"path": "existing.env", "required": False}], name)
    for variable in ("UNIONHALL_LISTEN", "UNIONHALL_METRICS_LISTEN"):
        same(service["environment"][variable].split(":")[0], address[name], f"{variable} of {name}")
        same(service["environment"][variable].split(":")[1], settings[variable].split(":")[1], f"port in {variable} of {name}")
if address["caddy"] not in settings["UNIONHALL_TRUSTED_PROXIES"].split(","):
    sys.exit("the nodes do not trust Caddy")
if address["redis"] not in re.search("^bind (.*)$", (root / "deploy/redis.conf").read_text(), re.MULTILINE)[1].split():
    sys.exit("Redis does not listen on its address")

# Every file that a setting names is given to every node, and its state is what is kept.
named = {value for name, value in settings.items() if name.endswith("_FILE") or name == "UNIONHALL_CATALOG"}
states = set()
for name, service in nodes.items():
    mounts = dict(volume.split(":")[1::-1] for volume in service["volumes"])
    given = {secret["target"] for secret in service["secrets"]} | {path for path in mounts if path.startswith("/etc")}
    same(given, named, f"the files of {name}")
    states.add(mounts[settings["UNIONHALL_DATA"]])
same(len(states), len(nodes), "how many folders the nodes have")
same(states <= set(compose["volumes"]), True, "the folders are volumes")
same(re.search(r"UNIONHALL_DATA=(\S+)", dockerfile)[1], settings["UNIONHALL_DATA"], "the folder in the image")
same(re.search(r"^VOLUME (\S+)", dockerfile, re.MULTILINE)[1], settings["UNIONHALL_DATA"], "the volume of the image")
promised = re.search(r'^rust-version = "(.*)"', (root / "Cargo.toml").read_text(), re.MULTILINE)[1]
same(re.search(r"^FROM rust:([0-9.]+)-", dockerfile, re.MULTILINE)[1], promised, "the compiler")
# One service builds the image; the others wait for it, and ask no registry.
same([name for name in nodes if "build" in nodes[name]], ["node1"], "what builds the image")
same({(service["image"], service["pull_policy"]) for service in nodes.values()}, {("unionhall", "build"), ("unionhall", "never")}, "the image")
for name, service in services.items():
    same((service["read_only"], service["cap_drop"]), (True, ["ALL"]), name)
    same(name in nodes or "healthcheck" in service, True, f"{name} has a health check")
    same({"max-size", "max-file"} <= service["logging"]["options"].keys(), True, f"the log of {name} is rotated")

# The commands of the page make what compose.yaml wants, and settings that the service takes.
page = (root / "docs/container.md").read_text()
(commands,) = re.findall(r"^```sh\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
with tempfile.TemporaryDirectory() as folder:
    folder = pathlib.Path(folder)
    (folder / "deploy").mkdir()
    for file in ("catalog.sample.toml", "deploy/redis.conf", "deploy/unionhall.env"):
        shutil.copy(root / file, folder / file)
    # The last two need other users.
    script = "sudo() { [ \"$1\" = chown ] && ls \"${@:3}\" >\"owned-$2\"; }\n" + commands
    subprocess.run(["bash", "-euo", "pipefail", "-c", script], cwd=folder, check=True)
    for name, secret in compose["secrets"].items():
        file = folder / secret["file"]
        same((file.stat().st_mode & 0o777, len(file.read_text().splitlines())), (0o600, 1), f"secret {name}")
    given = {"secrets/" + secret["source"] for secret in nodes["node1"]["secrets"]}
    same(set((folder / "owned-10001").read_text().split()), given, "what the service may read")
    redis = folder / services["redis"]["volumes"][0].split(":")[0]
    owner = services["redis"]["user"].split(":")[0]
    same([folder / file for file in (folder / f"owned-{owner}").read_text().split()], [redis], "what Redis may read")
    same(redis.stat().st_mode & 0o777, 0o600, "the file of Redis")
    same((folder / "deploy/redis.conf").read_text(), (root / "deploy/redis.conf").read_text(), "the sample, which has no password")
    password = re.search("^requirepass (.*)$", redis.read_text(), re.MULTILINE)[1]
    same((folder / "secrets/limits").read_text().strip(), f"redis://:{password}@{address['redis']}:6379/", "the password of Redis")
    same(f"@{address['postgres']}/" in (folder / "secrets/store").read_text(), True, "where the store is")
    sources = {secret["target"]: folder / "secrets" / secret["source"] for secret in nodes["node1"]["secrets"]}
    sources[settings["UNIONHALL_CATALOG"]] = folder / "catalog.toml"
    environment = {name: str(sources.get(value, value)) for name, value in settings.items()} | nodes["node1"]["environment"]
    shown = subprocess.run([server, "settings", "--json"], env=environment, cwd=folder, stdout=subprocess.PIPE, check=True)
    known = {setting["variable"] for setting in json.loads(shown.stdout)["settings"]}
    # What the page writes after the first start refuses a volume that is missing.
    after_start = re.search(r"^\$ echo (\w+)=(\w+) >existing\.env$", page, re.MULTILINE)
    empty = {"UNIONHALL_DATA": str(folder / "missing"), "UNIONHALL_LISTEN": "127.0.0.1:0", after_start[1]: after_start[2]}
    refused = subprocess.run([server, "serve"], env=empty, cwd=folder, capture_output=True, text=True, timeout=60)
    same((refused.returncode, "there are no records at" in refused.stderr, (folder / "missing").exists()), (1, True, False), "a missing volume")
    unknown = {name for name in re.findall(r"UNIONHALL_[A-Z_]+", dockerfile + page + (root / "compose.yaml").read_text())} - known
    same(unknown, set(), "settings that nobody knows")

# The health check, against a server that is up, in each documented form of its address, and against nothing.
program, *words = json.loads(re.search(r"^HEALTHCHECK.*?CMD (\[.*?\])$", dockerfile, re.MULTILINE | re.DOTALL)[1])
same(f"/usr/local/bin/{program}" in dockerfile, True, "the program of the health check is in the image")
port = os.environ["UNION_URL"].rsplit(":", 1)[1]
forms = [form + port for form in ("127.0.0.1:", "0.0.0.0:", "localhost:", ":", "")]
for listen, healthy in [(form, True) for form in forms] + [("127.0.0.1:1", False)]:
    status = subprocess.run([server, *words], env={"UNIONHALL_LISTEN": listen}, timeout=60).returncode
    same(status == 0, healthy, f"the health check of {listen}")
