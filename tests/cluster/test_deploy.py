"""What deploy/ holds, taken by a real API server: accepted as it is, and granting what is needed and no more."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import yaml
from kubernetes import client, config

from aftershock.chaos.engine import parse_engine
from aftershock.chaos.litmus.access import Right, check_own_access, check_service_account_access
from aftershock.chaos.litmus.cluster import Cluster as ApiServer
from aftershock.chaos.litmus.cluster import DeniedError
from aftershock.chaos.litmus.kinds import ACCESS_REVIEWS, JOBS, LITMUS_GROUP, NAMESPACES, PODS
from aftershock.chaos.template import list_faults, load_fault
from aftershock.errors import InfrastructureError
from tests.cluster.recorded_litmus.install import custom_resource_definitions
from tests.cluster.rig.cluster import Cluster
from tests.cluster.rig.layout import REPOSITORY
from tests.cluster.rig.manifests import apply, namespace

DEPLOY = REPOSITORY / "deploy"
GOLDEN = REPOSITORY / "tests" / "unit" / "chaos" / "golden"
CHAOS, TARGET, RUNS, MONITORING = "aftershock-chaos", "inference", "kubeflow", "monitoring"
ORCHESTRATOR = f"system:serviceaccount:{CHAOS}:aftershock"
POD_CHAOS = f"system:serviceaccount:{CHAOS}:aftershock-pod-chaos"
NODE_CHAOS = f"system:serviceaccount:{CHAOS}:aftershock-node-chaos"
PIPELINE_RUNNER = f"system:serviceaccount:{RUNS}:pipeline-runner"
OPTIONAL = ("faults-node", "kubeflow")

Can = Callable[[str, Right], bool]


def kustomized(cluster: Cluster, action: str, folder: Path, *options: str) -> str:
    return cluster.kubectl(action, "--kustomize", str(folder), *options)


def taken(cluster: Cluster, folder: Path, *options: str) -> str:
    return kustomized(cluster, "apply", folder, "--server-side", "--force-conflicts", *options)


@pytest.fixture(scope="module")
def spaces(cluster: Cluster) -> Cluster:
    """The cluster with Litmus' kinds and the four namespaces, which a dry run cannot make up."""
    definitions = custom_resource_definitions()
    apply(cluster, [*definitions, *(namespace(name) for name in (TARGET, RUNS, MONITORING))])
    names = [f"crd/{definition['metadata']['name']}" for definition in definitions]
    cluster.kubectl("wait", "--for=condition=Established", "--timeout=30s", *names)
    taken(cluster, DEPLOY / "namespace")
    return cluster


@pytest.fixture(scope="module")
def deployed(spaces: Cluster) -> Iterator[Cluster]:
    """With deploy/ and its optional parts but `cleanup`; these are gone afterwards: other tests are about the rest."""
    for folder in ("", *OPTIONAL):
        taken(spaces, DEPLOY / folder)
    yield spaces
    for folder in OPTIONAL:
        kustomized(spaces, "delete", DEPLOY / folder, "--ignore-not-found", "--wait=false")


@pytest.fixture(scope="module")
def can(deployed: Cluster, administrator: ApiServer) -> Can:
    """Ask the API server whether somebody has a right."""

    def ask(user: str, right: Right) -> bool:
        groups = ["system:authenticated", "system:serviceaccounts", f"system:serviceaccounts:{user.split(':')[2]}"]
        review = {
            "apiVersion": "authorization.k8s.io/v1",
            "kind": "SubjectAccessReview",
            "spec": {"user": user, "groups": groups, "resourceAttributes": right.attributes()},
        }
        return bool(administrator.create(ACCESS_REVIEWS.path(None), review)["status"]["allowed"])

    return ask


@pytest.fixture(scope="module")
def administrator(cluster: Cluster) -> ApiServer:
    """The API server, by the certificate of the one who may do everything."""
    settings = client.Configuration()
    config.load_kube_config(str(cluster.layout.kubeconfig), client_configuration=settings)
    return ApiServer(client.ApiClient(configuration=settings))


@pytest.fixture(scope="module")
def orchestrator(deployed: Cluster, tmp_path_factory: pytest.TempPathFactory) -> ApiServer:
    """The API server, by a token of the orchestrator's service account and nothing else."""
    token = deployed.kubectl("create", "token", "aftershock", f"--namespace={CHAOS}").strip()
    document = json.loads(deployed.kubectl("config", "view", "--raw", "--output=json"))
    for user in document["users"]:
        user["user"] = {"token": token}
    path = tmp_path_factory.mktemp("orchestrator") / "kubeconfig"
    path.write_text(json.dumps(document))
    settings = client.Configuration()
    config.load_kube_config(str(path), client_configuration=settings)
    return ApiServer(client.ApiClient(configuration=settings))


@pytest.mark.parametrize("folder", ["", "cleanup", "faults-node", "kubeflow"])
def test_a_dry_run_takes_every_object(folder: str, spaces: Cluster) -> None:
    said = taken(spaces, DEPLOY / folder, "--dry-run=server", "--validate=strict").splitlines()
    built = list(yaml.safe_load_all(spaces.kubectl("kustomize", str(DEPLOY / folder))))
    assert len(said) == len(built)
    assert all(line.endswith("serverside-applied (server dry run)") for line in said)


def test_a_dry_run_refuses_what_is_wrong(spaces: Cluster, tmp_path: Path) -> None:
    """Else the one above could not fail."""
    (tmp_path / "role.yaml").write_text((DEPLOY / "cleanup" / "role.yaml").read_text().replace("verbs:", "verb:"))
    (tmp_path / "kustomization.yaml").write_text("resources: [role.yaml]\n")
    with pytest.raises(InfrastructureError, match=r"\.verb"):
        taken(spaces, tmp_path, "--dry-run=server", "--validate=strict")


def test_chaos_experiments_go_to_the_chaos_namespace(spaces: Cluster, tmp_path: Path) -> None:
    """With stand-ins for the files of the public charts, which only the network has."""
    document = yaml.safe_load((DEPLOY / "chaos-experiments" / "kustomization.yaml").read_text())
    names = [url.split("/")[-2] for url in document["resources"]]
    for name in names:
        experiment = {
            "apiVersion": "litmuschaos.io/v1alpha1",
            "kind": "ChaosExperiment",
            "metadata": {"name": name, "labels": {"app.kubernetes.io/part-of": "litmus"}},
            "spec": {"definition": {"scope": load_fault(name).scope}},
        }
        (tmp_path / f"{name}.yaml").write_text(yaml.safe_dump(experiment))
    local = {**document, "resources": [f"{name}.yaml" for name in names]}
    (tmp_path / "kustomization.yaml").write_text(yaml.safe_dump(local))
    said = taken(spaces, tmp_path, "--dry-run=server", "--validate=strict").splitlines()
    assert len(said) == len(names) == 26
    built = yaml.safe_load_all(spaces.kubectl("kustomize", str(tmp_path)))
    assert {item["metadata"]["namespace"] for item in built} == {CHAOS}


@pytest.mark.parametrize("fault", [fault.name for fault in list_faults()])
def test_preflight_finds_no_right_missing(fault: str, orchestrator: ApiServer) -> None:
    """The checks of a run, made as a run makes them; DeniedError would mean that one could not be made.

    The engine is the one that the tests of the templates hold, but chaos and target are in two namespaces.
    """
    document = yaml.safe_load((GOLDEN / f"{fault}.yaml").read_text())
    document["metadata"]["namespace"] = CHAOS
    if document["spec"]["appinfo"]["applabel"]:
        document["spec"]["appinfo"]["appns"] = TARGET
    engine = parse_engine(yaml.safe_dump(document), "test")
    check_own_access(orchestrator, engine)
    check_service_account_access(orchestrator, engine)


def test_the_orchestrator_reads_its_own_namespace_and_the_target_s_pods(orchestrator: ApiServer) -> None:
    assert orchestrator.get(NAMESPACES.path(None, CHAOS))["metadata"]["name"] == CHAOS
    assert orchestrator.list(PODS, TARGET)["kind"] == "PodList"
    with pytest.raises(DeniedError):
        orchestrator.list(PODS, "kube-system")
    with pytest.raises(DeniedError):
        orchestrator.list(JOBS, TARGET)


@pytest.mark.parametrize(
    ("who", "right"),
    [
        (ORCHESTRATOR, Right("get", "", "secrets", CHAOS)),
        (ORCHESTRATOR, Right("create", "", "pods", CHAOS)),
        (ORCHESTRATOR, Right("delete", "", "pods", CHAOS)),
        (ORCHESTRATOR, Right("create", "", "pods/exec", CHAOS)),
        (ORCHESTRATOR, Right("create", "", "serviceaccounts/token", CHAOS)),
        (ORCHESTRATOR, Right("update", LITMUS_GROUP, "chaosengines", CHAOS)),
        (ORCHESTRATOR, Right("patch", LITMUS_GROUP, "chaosresults", CHAOS)),
        (ORCHESTRATOR, Right("create", LITMUS_GROUP, "chaosengines", TARGET)),
        (ORCHESTRATOR, Right("delete", "", "pods", TARGET)),
        (ORCHESTRATOR, Right("get", "", "pods/log", TARGET)),
        (ORCHESTRATOR, Right("patch", "", "nodes", "")),
        (ORCHESTRATOR, Right("get", "", "secrets", "")),
        (POD_CHAOS, Right("get", "", "secrets", CHAOS)),
        (POD_CHAOS, Right("get", "", "secrets", TARGET)),
        (POD_CHAOS, Right("list", "", "nodes", "")),
        (POD_CHAOS, Right("delete", "", "pods", "kube-system")),
        (POD_CHAOS, Right("create", "batch", "jobs", TARGET)),
        (POD_CHAOS, Right("delete", "apps", "deployments", TARGET)),
        (NODE_CHAOS, Right("delete", "", "nodes", "")),
        (NODE_CHAOS, Right("delete", "", "pods", TARGET)),
        (NODE_CHAOS, Right("create", "", "pods", "kube-system")),
        (NODE_CHAOS, Right("get", "", "secrets", CHAOS)),
        (PIPELINE_RUNNER, Right("create", "", "pods", CHAOS)),
        (PIPELINE_RUNNER, Right("get", "", "secrets", CHAOS)),
        (PIPELINE_RUNNER, Right("create", LITMUS_GROUP, "chaosengines", TARGET)),
    ],
    ids=str,
)
def test_nobody_may_do_more(who: str, right: Right, can: Can) -> None:
    assert not can(who, right)


@pytest.mark.parametrize(
    "right",
    [
        Right("create", LITMUS_GROUP, "chaosengines", CHAOS),
        Right("get", "", "pods/log", CHAOS),
        Right("watch", "", "pods", TARGET),
        Right("create", "authorization.k8s.io", "subjectaccessreviews", ""),
    ],
    ids=str,
)
def test_kubeflow_runs_may_do_what_the_orchestrator_may(right: Right, can: Can) -> None:
    assert can(PIPELINE_RUNNER, right)
    assert can(ORCHESTRATOR, right)


def test_a_drain_may_evict_in_every_namespace(can: Can) -> None:
    for where in (TARGET, "kube-system"):
        assert can(NODE_CHAOS, Right("create", "", "pods/eviction", where))
        assert can(NODE_CHAOS, Right("list", "", "pods", where))
        assert can(NODE_CHAOS, Right("get", "apps", "daemonsets", where))


def test_only_cleanup_lets_the_orchestrator_delete_pods_and_jobs(deployed: Cluster, can: Can) -> None:
    rights = [Right("delete", "", "pods", CHAOS), Right("delete", "batch", "jobs", CHAOS)]
    assert not any(can(ORCHESTRATOR, right) for right in rights)
    taken(deployed, DEPLOY / "cleanup")
    try:
        assert all(can(ORCHESTRATOR, right) for right in rights)
    finally:
        kustomized(deployed, "delete", DEPLOY / "cleanup")


def test_the_chaos_namespace_takes_a_privileged_pod(deployed: Cluster) -> None:
    """As Litmus' helpers are; admission is what a dry run passes too."""
    security = {"privileged": True, "capabilities": {"add": ["NET_ADMIN", "SYS_ADMIN"]}}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "helper", "namespace": CHAOS},
        "spec": {
            "serviceAccountName": "aftershock-pod-chaos",
            "hostPID": True,
            "containers": [{"name": "helper", "image": "none", "securityContext": security}],
        },
    }
    said = deployed.kubectl("create", "--dry-run=server", "--filename=-", given=json.dumps(pod))
    assert said.strip() == "pod/helper created (server dry run)"
