"""Reads a Kubernetes file as the API would: every field known and of its type, and every name that one part says of another there.

    fields.py FILE
"""

import copy
import json
import sys

import yaml
from kubernetes import client

# The shape that each kind has in the client's models.
MODELS = {"Namespace": client.V1Namespace, "ConfigMap": client.V1ConfigMap, "PersistentVolumeClaim": client.V1PersistentVolumeClaim,
          "Deployment": client.V1Deployment, "Service": client.V1Service, "NetworkPolicy": client.V1NetworkPolicy}


def main() -> None:
    objects = list(yaml.safe_load_all(open(sys.argv[1])))
    judge(objects)
    # What would be let through, if this check were none.
    for name, spoil in SPOILT.items():
        spoilt = copy.deepcopy(objects)
        spoil({it["kind"]: it for it in spoilt})
        try:
            judge(spoilt)
        except (AssertionError, ValueError):
            continue
        sys.exit(f"kubernetes: this check would let through: {name}")
    print(f"kubernetes: {len(objects)} objects in order, {len(SPOILT)} spoilt ones seen")


def judge(objects: list[dict]) -> None:
    by_kind = {it["kind"]: it for it in objects}
    assert len(by_kind) == len(objects), "a kind twice"
    for it in objects:
        known(it)
    pod(by_kind)
    outside(by_kind)


def known(it: dict) -> None:
    """Through the model and back, nothing is lost and nothing changed."""
    model = MODELS[it["kind"]].from_dict(it)
    back = json.loads(model.to_json()) if hasattr(model, "to_json") else model.to_dict()
    assert it["apiVersion"] == {"Deployment": "apps/v1", "NetworkPolicy": "networking.k8s.io/v1"}.get(it["kind"], "v1")
    same(it, back, it["kind"])


def same(said, back, at: str) -> None:
    if isinstance(said, dict):
        assert isinstance(back, dict), f"{at} is no object to the API"
        for name, value in said.items():
            assert name in back, f"{at}.{name} is nothing that the API knows"
            same(value, back[name], f"{at}.{name}")
    elif isinstance(said, list):
        assert isinstance(back, list) and len(back) == len(said), f"{at} is no list to the API"
        for index, value in enumerate(said):
            same(value, back[index], f"{at}[{index}]")
    else:
        assert said == back and isinstance(said, bool) == isinstance(back, bool), f"{at}: {said!r} becomes {back!r}"


def pod(by_kind: dict) -> None:
    """The parts of the pod fit, and it is as narrow as the standard `restricted` wants."""
    deployment = by_kind["Deployment"]["spec"]
    labels, spec = deployment["template"]["metadata"]["labels"], deployment["template"]["spec"]
    assert deployment["selector"]["matchLabels"].items() <= labels.items(), "the selector finds no pod"
    assert deployment["replicas"] == 1 and deployment["strategy"]["type"] == "Recreate", "a state is held by one service"
    volumes = {volume["name"]: volume for volume in spec["volumes"]}
    used = set()
    for container in spec["containers"]:
        for mount in container["volumeMounts"]:
            assert mount["name"] in volumes, f"{container['name']} mounts {mount['name']}, which is no volume"
            used.add(mount["name"])
            keeps = "secret" in volumes[mount["name"]] or "configMap" in volumes[mount["name"]]
            assert mount.get("readOnly", False) == keeps, f"{mount['name']} is mounted the wrong way"
        confined = container["securityContext"]
        assert confined["allowPrivilegeEscalation"] is False and confined["readOnlyRootFilesystem"] is True
        assert confined["capabilities"] == {"drop": ["ALL"]}
        assert "memory" in container["resources"]["limits"]
    assert used == volumes.keys(), f"nobody mounts {volumes.keys() - used}"
    for volume in volumes.values():
        assert volume.get("secret", {}).get("defaultMode", 0o440) == 0o440, "secrets are for the pod's group to read, and nobody else"
    assert volumes["config"]["configMap"]["name"] == by_kind["ConfigMap"]["metadata"]["name"]
    assert volumes["state"]["persistentVolumeClaim"]["claimName"] == by_kind["PersistentVolumeClaim"]["metadata"]["name"]
    whole = spec["securityContext"]
    assert whole["runAsNonRoot"] is True and whole["runAsUser"] == whole["fsGroup"] == 65532
    assert whole["seccompProfile"] == {"type": "RuntimeDefault"}
    assert spec["automountServiceAccountToken"] is False and spec["enableServiceLinks"] is False
    assert not any(spec.get(name) for name in ("hostNetwork", "hostPID", "hostIPC"))


def outside(by_kind: dict) -> None:
    """What reaches the pod from outside, by the names of its ports."""
    template = by_kind["Deployment"]["spec"]["template"]
    edge = template["spec"]["containers"][0]
    ports = {port["name"] for port in edge["ports"]}
    assert by_kind["Service"]["spec"]["selector"].items() <= template["metadata"]["labels"].items()
    assert {port["targetPort"] for port in by_kind["Service"]["spec"]["ports"]} <= ports
    policy = by_kind["NetworkPolicy"]["spec"]
    assert policy["podSelector"]["matchLabels"].items() <= template["metadata"]["labels"].items()
    assert {port["port"] for rule in policy["ingress"] for port in rule["ports"]} == ports
    assert policy["egress"] == [] and set(policy["policyTypes"]) == {"Ingress", "Egress"}
    for probe in ("startupProbe", "livenessProbe", "readinessProbe"):
        assert edge[probe]["httpGet"] == {"path": "/healthz", "port": "https", "scheme": "HTTPS"}
    for name, it in by_kind.items():
        place = it["metadata"].get("namespace")
        assert name == "Namespace" or place == by_kind["Namespace"]["metadata"]["name"], f"{name} is in {place}"


def template(by_kind: dict) -> dict:
    return by_kind["Deployment"]["spec"]["template"]["spec"]


def put(where: dict, **values) -> None:
    where.update(values)


SPOILT = {
    "a misspelt field": lambda it: put(template(it)["containers"][0], readynessProbe={}),
    "a misspelt field, deeper": lambda it: put(template(it)["containers"][0]["readinessProbe"]["httpGet"], schema="HTTPS"),
    "a word for a number": lambda it: put(it["Deployment"]["spec"], replicas="one"),
    "a list for an object": lambda it: put(template(it)["securityContext"], seccompProfile=["RuntimeDefault"]),
    "a mount of no volume": lambda it: put(template(it)["containers"][0]["volumeMounts"][0], name="stat"),
    "a volume that nobody mounts": lambda it: template(it)["volumes"].append({"name": "more", "emptyDir": {}}),
    "a selector that finds nothing": lambda it: put(it["Deployment"]["spec"]["selector"]["matchLabels"], app="play"),
    "a service of another pod": lambda it: put(it["Service"]["spec"]["selector"], app="play"),
    "a service to no port": lambda it: put(it["Service"]["spec"]["ports"][0], targetPort="http"),
    "a policy for another pod": lambda it: put(it["NetworkPolicy"]["spec"]["podSelector"]["matchLabels"], app="play"),
    "a policy that lets all out": lambda it: put(it["NetworkPolicy"]["spec"], egress=[{}]),
    "a root file system to write": lambda it: put(template(it)["containers"][1]["securityContext"], readOnlyRootFilesystem=False),
    "a secret for all to read": lambda it: put(template(it)["volumes"][3]["secret"], defaultMode=0o444),
    "root": lambda it: put(template(it)["securityContext"], runAsUser=0),
    "two at once on one state": lambda it: put(it["Deployment"]["spec"], replicas=2),
    "another namespace": lambda it: put(it["ConfigMap"]["metadata"], namespace="default"),
}

if __name__ == "__main__":
    main()
