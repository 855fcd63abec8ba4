"""helm/steerboard as Helm itself renders it, against the schemas of Kubernetes. No cluster is at hand."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import helm_python
import pytest
import yaml
from kubernetes_validate import validate
from sqlalchemy import Engine, text

from steerboard.platform.security import production
from steerboard.platform.settings import Settings
from steerboard_workers.supervisor.device_group import DeviceGroup
from steerboard_workers.worker_process import parse_devices

ROOT = Path(__file__).parents[2]
CHART = ROOT / "helm" / "steerboard"
CASES = sorted(path.stem for path in (CHART / "ci").glob("*.yaml"))
# The oldest that Chart.yaml names and that the validator still knows, and the newest.
KUBERNETES = ("1.33", "1.37")
# Kinds of operators, whose schemas Kubernetes does not have.
FOREIGN = {"ScaledObject", "TriggerAuthentication", "ServiceMonitor"}

Manifest = dict[str, Any]


def values_of(case: str) -> dict[str, Any]:
    values: dict[str, Any] = yaml.safe_load((CHART / "ci" / f"{case}.yaml").read_text())
    return values


def render(values: dict[str, Any], release: str = "board") -> list[Manifest]:
    """Renders as an install does: first the schema of the values, then the templates."""
    with helm_python.Chart.load(CHART) as chart:
        chart.validate_schema(values)
        files = chart.render(values, name=release, namespace="ml")
    documents = [
        document
        for name, content in files.items()
        if not name.endswith("NOTES.txt")
        for document in yaml.safe_load_all(content)
        if document
    ]
    names = [(document["kind"], document["metadata"]["name"]) for document in documents]
    assert len(names) == len(set(names)), "two objects of one name"
    return documents


@pytest.fixture(scope="module")
def rendered() -> dict[str, list[Manifest]]:
    return {case: render(values_of(case)) for case in CASES}


def of_kind(documents: list[Manifest], *kinds: str) -> list[Manifest]:
    return [document for document in documents if document["kind"] in kinds]


def pods(documents: list[Manifest]) -> list[Manifest]:
    """The pod templates of all that runs something."""
    return [document["spec"]["template"] for document in of_kind(documents, "Deployment", "StatefulSet", "Job")]


def containers(documents: list[Manifest]) -> Iterator[Manifest]:
    for pod in pods(documents):
        yield from pod["spec"]["containers"]


def worker(documents: list[Manifest], name: str) -> Manifest:
    (manifest,) = [
        document
        for document in of_kind(documents, "Deployment", "StatefulSet")
        if document["metadata"]["labels"].get("steerboard/worker") == name
    ]
    return manifest


@pytest.mark.parametrize("version", KUBERNETES)
@pytest.mark.parametrize("case", CASES)
def test_kubernetes_would_take_every_manifest(case: str, version: str, rendered: dict[str, list[Manifest]]) -> None:
    for document in rendered[case]:
        if document["kind"] not in FOREIGN:
            validate(document, version, strict=True)


@pytest.mark.parametrize("case", CASES)
def test_helm_has_nothing_to_say_against_it(case: str) -> None:
    report = helm_python.lint(CHART, values_of(case), strict=True)
    assert report["errors"] == []
    assert [message for message in report["messages"] if message["severity"] > 1] == []


@pytest.mark.parametrize("case", CASES)
def test_no_pod_runs_as_root_or_writes_to_its_image(case: str, rendered: dict[str, list[Manifest]]) -> None:
    for pod in pods(rendered[case]):
        assert pod["spec"]["securityContext"]["runAsNonRoot"] is True
        assert pod["spec"]["automountServiceAccountToken"] is False
    for container in containers(rendered[case]):
        security = container["securityContext"]
        assert security["readOnlyRootFilesystem"] is True
        assert security["allowPrivilegeEscalation"] is False
        assert security["capabilities"] == {"drop": ["ALL"]}
        assert {"/tmp", "/var/lib/steerboard"} <= {mount["mountPath"] for mount in container["volumeMounts"]}
        assert container["resources"]["limits"]["memory"]
        assert not container["image"].endswith(":latest")


@pytest.mark.parametrize("case", CASES)
def test_secrets_are_in_the_secret_alone(case: str, rendered: dict[str, list[Manifest]]) -> None:
    secret_names = {"STEERBOARD_SECRET_KEY", "STEERBOARD_DATABASE_URL", "STEERBOARD_REDIS_URL"}
    for container in containers(rendered[case]):
        env = {entry["name"]: entry for entry in container["env"]}
        assert len(env) == len(container["env"])
        assert secret_names <= set(env)
        for name in secret_names | {"STEERBOARD_METRICS_TOKEN", "AWS_SECRET_ACCESS_KEY"} & set(env):
            assert env[name]["valueFrom"]["secretKeyRef"]["key"] == name
    others = json.dumps([document for document in rendered[case] if document["kind"] != "Secret"])
    for value in values_of(case)["secret"].get("create", {}).values():
        assert value not in others


def test_a_changed_secret_starts_the_pods_again() -> None:
    before, values = render(values_of("everything")), values_of("everything")
    values["secret"]["create"]["STEERBOARD_DATABASE_URL"] = "postgresql://board:other-word-9@db.internal/board"
    after = render(values)
    for old, new in zip(of_kind(before, "Deployment"), of_kind(after, "Deployment"), strict=True):
        assert old["spec"]["template"]["metadata"] != new["spec"]["template"]["metadata"]
    assert of_kind(before, "Job")[0]["metadata"]["name"] != of_kind(after, "Job")[0]["metadata"]["name"]


def test_the_migration_gets_a_new_name_only_when_it_would_be_another() -> None:
    values = values_of("minimal")
    (first,) = of_kind(render(values), "Job")
    values["api"] = {"replicas": 5}
    (same,) = of_kind(render(values), "Job")
    values["image"] = {"tag": "0.2.0"}
    (other,) = of_kind(render(values), "Job")
    assert first == same
    assert first["metadata"]["name"] != other["metadata"]["name"]
    assert first["spec"]["template"]["spec"]["containers"][0]["args"] == ["steerboard", "migrate"]


@pytest.mark.parametrize("case", CASES)
def test_the_processes_accept_what_the_chart_gives_them(
    case: str, rendered: dict[str, list[Manifest]], monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = values_of("everything")["secret"]["create"]
    known = {f"STEERBOARD_{field}".upper() for field in Settings.model_fields}
    for container in containers(rendered[case]):
        with monkeypatch.context() as patch:
            for entry in container["env"]:
                assert not entry["name"].startswith("STEERBOARD_") or entry["name"] in known
                if (value := entry.get("value", secret.get(entry["name"]))) is not None:
                    patch.setenv(entry["name"], value)
            production.check(Settings())


@pytest.mark.parametrize("case", CASES)
def test_every_selector_finds_exactly_the_pods_it_is_for(case: str, rendered: dict[str, list[Manifest]]) -> None:
    documents = rendered[case]
    labels = [pod["metadata"]["labels"] for pod in pods(documents)]

    def pods_matching(selector: dict[str, str]) -> int:
        return sum(selector.items() <= pod.items() for pod in labels)

    for document in documents:
        spec = document.get("spec", {})
        match document["kind"]:
            case "Deployment" | "StatefulSet" | "PodDisruptionBudget":
                assert pods_matching(spec["selector"]["matchLabels"]) == 1, document["metadata"]["name"]
            case "Service":
                assert pods_matching(spec["selector"]) == 1
            case "NetworkPolicy":
                everyone = document["metadata"]["name"] == "board-steerboard"
                assert pods_matching(spec["podSelector"]["matchLabels"]) == (len(labels) if everyone else 1)


def test_liveness_asks_the_process_alone_and_readiness_the_database_too(
    rendered: dict[str, list[Manifest]],
) -> None:
    (api,) = [container for container in containers(rendered["minimal"]) if container["name"] == "api"]
    assert api["livenessProbe"]["httpGet"]["path"] == "/api/v1/system/live"
    assert api["readinessProbe"]["httpGet"]["path"] == "/api/v1/system/health"


def test_workers_serve_their_pools_with_the_devices_that_the_pod_has(rendered: dict[str, list[Manifest]]) -> None:
    documents = rendered["gpu-pools"]
    seen = {}
    for entry in [*values_of("gpu-pools")["workers"], {"name": "interactive", "pool": "interactive", "gpus": 1}]:
        (container,) = worker(documents, entry["name"])["spec"]["template"]["spec"]["containers"]
        arguments = container["args"]
        assert arguments[:4] == ["steerboard", "worker", "--pool", entry["pool"]]
        limits = container["resources"]["limits"]
        assert limits.get("nvidia.com/gpu") == (str(entry["gpus"]) if entry.get("gpus") else None)
        seen[entry["name"]] = (arguments[6:], "worker-gpu" in container["image"])
    assert seen == {
        "default": ([], False),
        "one-gpu": (["--devices", "0"], True),
        "large": (["--devices", "0-7"], True),
        "interactive": (["--devices", "0"], True),
    }


def test_the_devices_are_as_the_worker_reads_them(rendered: dict[str, list[Manifest]]) -> None:
    (container,) = worker(rendered["gpu-pools"], "large")["spec"]["template"]["spec"]["containers"]
    assert parse_devices(container["args"][-1]) == [str(number) for number in range(8)]


def test_the_nodes_of_a_group_meet_at_the_first_and_reach_each_other(rendered: dict[str, list[Manifest]]) -> None:
    documents = rendered["node-group"]
    group = worker(documents, "nodes")
    assert (group["kind"], group["spec"]["replicas"], group["spec"]["podManagementPolicy"]) == (
        "StatefulSet",
        4,
        "Parallel",
    )
    (container,) = group["spec"]["template"]["spec"]["containers"]
    options = dict(zip(container["args"][2::2], container["args"][3::2], strict=True))
    env = {entry["name"]: entry for entry in container["env"]}
    assert options["--node"] == "$(NODE)"
    assert env["NODE"]["valueFrom"]["fieldRef"]["fieldPath"] == "metadata.labels['apps.kubernetes.io/pod-index']"
    devices = parse_devices(options["--devices"])
    for node in range(4):
        assert DeviceGroup(devices, int(options["--nodes"]), node, options["--rendezvous"]).count == 32
    # Kubernetes names the pods of the set, and gives them addresses below the service's name.
    addresses = next(
        service for service in of_kind(documents, "Service") if service["metadata"]["name"] != "board-steerboard-api"
    )
    assert options["--rendezvous"] == f"{group['metadata']['name']}-0.{addresses['metadata']['name']}:29500"
    assert addresses["metadata"]["name"] == group["spec"]["serviceName"]
    assert (addresses["spec"]["clusterIP"], addresses["spec"]["publishNotReadyAddresses"]) == ("None", True)
    labels = group["spec"]["template"]["metadata"]["labels"]
    (policy,) = [
        policy for policy in of_kind(documents, "NetworkPolicy") if policy["metadata"]["name"].endswith("-nodes")
    ]
    (peer,), (target,) = policy["spec"]["ingress"][0]["from"], policy["spec"]["egress"][0]["to"]
    selected = [peer["podSelector"]["matchLabels"], policy["spec"]["podSelector"]["matchLabels"]]
    for selector in (addresses["spec"]["selector"], *selected):
        assert selector.items() <= labels.items()
        assert selector["steerboard/worker"] == "nodes"
    assert peer == target
    assert "livenessProbe" in container


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"autoscaling": {"enabled": True}}, "not scaled by the queue"),
        ({"replicas": 2}, "a worker of its own"),
        ({"name": "a" * 30}, "too long"),
    ],
    ids=["scaled", "two-groups", "long-name"],
)
def test_a_group_of_nodes_that_could_not_work_is_refused(change: dict[str, Any], message: str) -> None:
    values = values_of("node-group")
    values["workers"][1] |= change
    with pytest.raises(helm_python.HelmRenderError, match=message):
        render(values, "a-release-with-a-long-name")


def test_a_worker_has_the_defaults_but_for_what_it_says(rendered: dict[str, list[Manifest]]) -> None:
    default, large = (worker(rendered["gpu-pools"], name)["spec"] for name in ("default", "large"))
    assert (default["replicas"], large["replicas"]) == (2, 2)
    assert default["template"]["spec"]["terminationGracePeriodSeconds"] == 120
    assert large["template"]["spec"]["terminationGracePeriodSeconds"] == 300
    homes = [
        next(volume for volume in manifest["template"]["spec"]["volumes"] if volume["name"] == "home")
        for manifest in (default, large)
    ]
    assert homes[0]["emptyDir"] == {"sizeLimit": "50Gi"}
    assert homes[1]["ephemeral"]["volumeClaimTemplate"]["spec"]["storageClassName"] == "fast-local"


def test_a_pool_is_scaled_by_the_runs_that_postgres_has(
    rendered: dict[str, list[Manifest]], engine: Engine, project: object
) -> None:
    documents = rendered["gpu-pools"]
    (scaled,) = of_kind(documents, "ScaledObject")
    assert scaled["spec"]["scaleTargetRef"]["name"] == worker(documents, "one-gpu")["metadata"]["name"]
    assert "replicas" not in worker(documents, "one-gpu")["spec"]
    (trigger,) = scaled["spec"]["triggers"]
    (login,) = of_kind(documents, "TriggerAuthentication")
    assert trigger["authenticationRef"]["name"] == login["metadata"]["name"]
    assert login["spec"]["secretTargetRef"][0]["name"] == "board-secrets"
    insert = text("""
        INSERT INTO runs (id, project_id, name, kind, config, state, reason, pool, priority, attempt, max_attempts,
            reuse, device_seconds, failed_device_seconds, created_by)
        SELECT gen_random_uuid(), (SELECT id FROM projects LIMIT 1), 'r' || n, 'train', '{}', state, '', pool, 0, 0, 3,
            true, 0, 0, 'test'
        FROM generate_series(1, 3) n, unnest(ARRAY['queued', 'running', 'pending', 'failed']) state,
            unnest(ARRAY['gpu', 'default']) pool
    """)
    with engine.begin() as connection:
        connection.execute(insert)
        assert connection.execute(text(trigger["metadata"]["query"])).scalar_one() == 6


def test_the_network_lets_only_named_peers_reach_the_api_and_nobody_a_worker(
    rendered: dict[str, list[Manifest]],
) -> None:
    everyone, api = of_kind(rendered["everything"], "NetworkPolicy")
    assert "ingress" not in everyone["spec"]
    assert set(everyone["spec"]["policyTypes"]) == {"Ingress", "Egress"}
    assert {port["port"] for port in everyone["spec"]["egress"][0]["ports"]} == {53}
    assert api["spec"]["ingress"][0]["from"] == values_of("everything")["networkPolicy"]["from"]


def test_the_address_of_the_ingress_is_that_of_the_dashboard(rendered: dict[str, list[Manifest]]) -> None:
    (ingress,) = of_kind(rendered["gpu-pools"], "Ingress")
    (service,) = of_kind(rendered["gpu-pools"], "Service")
    (rule,) = ingress["spec"]["rules"]
    assert rule["host"] == "board.internal" == ingress["spec"]["tls"][0]["hosts"][0]
    assert rule["http"]["paths"][0]["backend"]["service"]["name"] == service["metadata"]["name"]


def test_prometheus_asks_with_the_token_of_the_secret(rendered: dict[str, list[Manifest]]) -> None:
    (monitor,) = of_kind(rendered["everything"], "ServiceMonitor")
    (endpoint,) = monitor["spec"]["endpoints"]
    assert endpoint["path"] == "/metrics"
    assert endpoint["authorization"]["credentials"] == {"name": "board-steerboard", "key": "STEERBOARD_METRICS_TOKEN"}


REFUSED: dict[str, tuple[str, Any]] = {
    "no-address": ("publicUrl", ""),
    "address-in-clear": ("publicUrl", "http://board.internal"),
    "no-store": ("artifacts", {"url": ""}),
    "store-of-one-machine": ("artifacts", {"url": "file:///data"}),
    "no-secret": ("secret", {}),
    "empty-secret-key": ("secret", {"create": {"STEERBOARD_SECRET_KEY": ""}}),
    "short-secret-key": (
        "secret",
        {
            "create": {
                "STEERBOARD_SECRET_KEY": "short",
                "STEERBOARD_DATABASE_URL": "postgresql://a:b@c/d",
                "STEERBOARD_REDIS_URL": "redis://c",
            }
        },
    ),
    "two-secrets": ("secret", {"existing": "a", "create": {"STEERBOARD_SECRET_KEY": "x" * 40}}),
    "secret-among-settings": ("settings", {"STEERBOARD_SECRET_KEY": "x" * 40}),
    "unknown-value": ("replicas", 3),
    "unknown-field-of-a-worker": ("workers", [{"name": "a", "pool": "a", "gpu": 1}]),
    "pool-that-is-no-word": ("workers", [{"name": "a", "pool": "a'; DROP TABLE runs"}]),
    "pool-of-the-playground": ("workers", [{"name": "a", "pool": "interactive"}]),
    "floating-tag": ("image", {"tag": "latest"}),
    "no-nodes": ("workers", [{"name": "a", "pool": "a", "nodes": 0}]),
    "nodes-of-every-worker": ("workerDefaults", {"nodes": 2}),
    "negative-gpus": ("workers", [{"name": "a", "pool": "a", "gpus": -1}]),
    "no-time-to-stop": ("workerDefaults", {"terminationGracePeriodSeconds": 5}),
}


@pytest.mark.parametrize(("key", "value"), REFUSED.values(), ids=list(REFUSED))
def test_values_that_cannot_be_meant_are_refused(key: str, value: Any) -> None:
    values = {**values_of("minimal"), key: copy.deepcopy(value)}
    with pytest.raises(helm_python.HelmValuesError):
        render(values)


def places_of(values: dict[str, Any], *above: str) -> Iterator[tuple[str, ...]]:
    """Every place of the values whose names are the chart's own, not the user's."""
    for name, value in values.items():
        if isinstance(value, dict) and name not in ("requests", "limits"):
            if value or name == "create":
                yield (*above, name)
            yield from places_of(value, *above, name)


def test_a_word_that_the_chart_does_not_know_is_refused_wherever_it_stands() -> None:
    places = list(places_of(yaml.safe_load((CHART / "values.yaml").read_text())))
    assert ("workerDefaults", "autoscaling") in places
    with helm_python.Chart.load(CHART) as chart:
        for place in places:
            values = values_of("minimal")
            chart.validate_schema(values)
            inner = values
            for name in place:
                inner = inner.setdefault(name, {})
            inner["typo"] = "1"
            with pytest.raises(helm_python.HelmValuesError, match="typo"):
                chart.validate_schema(values)


def test_two_workers_of_one_name_are_refused() -> None:
    values = {**values_of("minimal"), "workers": [{"name": "a", "pool": "a"}, {"name": "a", "pool": "b"}]}
    with pytest.raises(helm_python.HelmRenderError, match="two workers are named a"):
        render(values)


def test_the_chart_is_of_the_version_of_the_code() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    project = (ROOT / "pyproject.toml").read_text()
    match = re.search(r'^version = "(.*)"', project, re.MULTILINE)
    assert match is not None
    assert chart["version"] == chart["appVersion"] == match.group(1)
