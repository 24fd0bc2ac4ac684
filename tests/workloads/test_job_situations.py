"""Jobs and CronJobs as a person sees them: kubectl's commands against simulated nodes, on a clock that stands."""

from __future__ import annotations

from typing import Any

from noxu.testing.handle import Noxu
from noxu.values import Object
from tests.workloads.conftest import Kubectl


def job(name: str, simulate: str = "", pod: Object | None = None, **spec: Any) -> Object:
    """`simulate`: what its pods do, besides that they succeed."""
    metadata = {"annotations": {"noxu.dev/simulate": simulate}} if simulate else {}
    template = {"restartPolicy": "Never", "containers": [{"name": "c", "image": "busybox"}], **(pod or {})}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"template": {"metadata": metadata, "spec": template}, **spec},
    }


def pass_time(server: Noxu, seconds: float) -> None:
    """First the controllers do what is to be done now."""
    server.idle()
    server.clock.advance(seconds)
    server.idle()


def row(printed: str) -> list[str]:
    """The last line of a table, without its age."""
    return printed.splitlines()[-1].split()[:-1]


def reported(server: Noxu, name: str) -> list[str]:
    """The Events of an object: reasons and messages, in the order of their names."""
    events = [event for event in server.list("events") if event["involvedObject"]["name"] == name]
    by_time = sorted(events, key=lambda event: str(event["metadata"]["name"]))
    return [f"{event['reason']}: {event['message']}" for event in by_time]


def pods_of(server: Noxu, name: str) -> list[Object]:
    return list(server.list("pods", labels={"batch.kubernetes.io/job-name": name}))


def test_a_job_completes(server: Noxu, kubectl: Kubectl) -> None:
    kubectl("create job once --image=busybox -- true")
    pass_time(server, 5)
    assert kubectl("wait --for=condition=complete job/once") == "job.batch/once condition met\n"
    assert row(kubectl("get job once"))[:3] == ["once", "Complete", "1/1"]
    [pod] = pods_of(server, "once")
    assert pod["status"]["phase"] == "Succeeded"
    assert "finalizers" not in pod["metadata"]
    assert reported(server, "once") == [
        f"SuccessfulCreate: Created pod: {pod['metadata']['name']}",
        "Completed: Job completed",
    ]


def test_a_job_fails_after_its_attempts(server: Noxu, kubectl: Kubectl) -> None:
    server.apply(job("broken", "exit=3", backoffLimit=2))
    server.idle()
    for delay, attempts in ((5, 1), (5, 2), (15, 2), (5, 3)):
        pass_time(server, delay)
        assert len(pods_of(server, "broken")) == attempts
    pass_time(server, 10)
    assert kubectl("wait --for=condition=failed job/broken") == "job.batch/broken condition met\n"
    assert row(kubectl("get job broken"))[:3] == ["broken", "Failed", "0/1"]
    assert server.get("jobs", "broken")["status"]["failed"] == 3
    assert reported(server, "broken")[-1] == "BackoffLimitExceeded: Job has reached the specified backoff limit"


def test_an_indexed_job_completes_index_by_index(server: Noxu, kubectl: Kubectl) -> None:
    server.apply(job("parts", completions=3, parallelism=2, completionMode="Indexed"))
    pass_time(server, 10)
    assert kubectl("get job parts -o jsonpath={.status.completedIndexes}") == "0-2"
    assert sorted(pod["spec"]["hostname"] for pod in pods_of(server, "parts")) == ["parts-0", "parts-1", "parts-2"]
    described = kubectl("describe job parts")
    assert "Completed Indexes:  0-2\n" in described


def test_a_job_is_suspended_and_resumed(server: Noxu, kubectl: Kubectl) -> None:
    server.apply(job("long", "exit=0@1h", parallelism=2, completions=2))
    pass_time(server, 5)
    assert len(pods_of(server, "long")) == 2
    kubectl('patch job long -p {"spec":{"suspend":true}}')
    server.idle()
    pass_time(server, 60)
    assert pods_of(server, "long") == []
    assert row(kubectl("get job long"))[:3] == ["long", "Suspended", "0/2"]
    kubectl('patch job long -p {"spec":{"suspend":false}}')
    server.idle()
    assert [text.split(":")[0] for text in reported(server, "long")][-2:] == ["SuccessfulCreate", "Resumed"]
    pass_time(server, 3610)
    assert server.get("jobs", "long")["status"]["succeeded"] == 2


def test_a_job_has_a_deadline(server: Noxu) -> None:
    server.apply(job("late", "exit=0@1h", activeDeadlineSeconds=100))
    pass_time(server, 99)
    assert "conditions" not in server.get("jobs", "late")["status"]
    pass_time(server, 60)
    assert [found["type"] for found in server.get("jobs", "late")["status"]["conditions"]] == [
        "FailureTarget",
        "Failed",
    ]
    assert pods_of(server, "late") == []
    assert reported(server, "late")[-1] == "DeadlineExceeded: Job was active longer than specified deadline"


def test_a_policy_fails_a_job_on_an_exit_code(server: Noxu) -> None:
    rules = [{"action": "FailJob", "onExitCodes": {"operator": "In", "values": [42]}}]
    server.apply(job("fatal", "exit=42", podFailurePolicy={"rules": rules}))
    pass_time(server, 5)
    [pod] = pods_of(server, "fatal")
    name = pod["metadata"]["name"]
    text = f"Container c for pod default/{name} failed with exit code 42 matching FailJob rule at index 0"
    assert reported(server, "fatal")[-1] == f"PodFailurePolicy: {text}"


def test_a_job_is_deleted_with_its_pods_after_its_time(server: Noxu) -> None:
    server.apply(job("short", ttlSecondsAfterFinished=100))
    pass_time(server, 50)
    assert server.get("jobs", "short")["status"]["succeeded"] == 1
    pass_time(server, 60)
    assert [found["metadata"]["name"] for found in server.list("jobs") if found["metadata"]["name"] == "short"] == []
    assert pods_of(server, "short") == []


def test_a_job_that_runs_is_deleted_with_its_pods(server: Noxu, kubectl: Kubectl) -> None:
    server.apply(job("gone", "exit=0@1h", parallelism=3, completions=3))
    pass_time(server, 5)
    assert len(pods_of(server, "gone")) == 3
    kubectl("delete job gone")
    pass_time(server, 60)
    assert pods_of(server, "gone") == []


def test_a_pod_of_a_job_gets_its_volume(server: Noxu, kubectl: Kubectl) -> None:
    server.apply(
        {
            "apiVersion": "v1",
            "kind": "PersistentVolumeClaim",
            "metadata": {"name": "data", "namespace": "default"},
            "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
        }
    )
    server.idle()
    assert row(kubectl("get pvc data"))[:2] == ["data", "Pending"]
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    server.apply(job("writer", pod={"volumes": volumes}))
    pass_time(server, 10)
    assert server.get("jobs", "writer")["status"]["succeeded"] == 1
    assert row(kubectl("get pvc data"))[1] == "Bound"


def test_a_cron_job_runs_daily_and_on_demand(server: Noxu, kubectl: Kubectl) -> None:
    kubectl("create cronjob nightly --image=busybox --schedule=@daily -- true")
    for _ in range(2):
        pass_time(server, 86_400)
    jobs = [found for found in server.list("jobs") if found["metadata"]["name"].startswith("nightly")]
    assert [found["status"]["succeeded"] for found in jobs] == [1, 1]
    kubectl("create job now --from=cronjob/nightly")
    pass_time(server, 5)
    kubectl("wait --for=condition=complete job/now")
    assert row(kubectl("get cronjob nightly"))[:5] == ["nightly", "@daily", "<none>", "False", "0"]


def test_a_year_of_a_monthly_cron_job() -> None:
    with Noxu(nodes=1) as server:
        server.clock.freeze("2098-01-01T00:00:00Z")
        server.idle()
        spec = {"schedule": "0 3 1 * *", "timeZone": "Europe/Berlin", "successfulJobsHistoryLimit": 12}
        cron_job = {
            "apiVersion": "batch/v1",
            "kind": "CronJob",
            "metadata": {"name": "monthly", "namespace": "default"},
        }
        server.apply({**cron_job, "spec": {**spec, "jobTemplate": {"spec": job("x")["spec"]}}})
        server.idle()
        server.clock.advance(days=365)
        server.idle()
        jobs = server.list("jobs")
        at = "batch.kubernetes.io/cronjob-scheduled-timestamp"
        times = sorted(found["metadata"]["annotations"][at] for found in jobs)
        summer = range(4, 11)
        assert times == [f"2098-{n:02}-01T03:00:00+0{2 if n in summer else 1}:00" for n in range(1, 13)]
        assert {found["status"]["succeeded"] for found in jobs} == {1}
        status = server.get("cronjobs", "monthly")["status"]
        assert status["lastScheduleTime"] == "2098-12-01T02:00:00Z"
        assert "2098-12-01T02:00:00Z" < status["lastSuccessfulTime"] < "2098-12-01T02:01:00Z"
        assert "active" not in status
