//! Executed pods: the real program with the pod's arguments, environment, volumes and token.

use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use plane::support::{TestCluster, eventually, or_skip};
use plane::{API_SERVER, EXECUTE, Error, Match, can_execute};
use serde_json::{Value, json};

use crate::{apply, kubectl, namespace, try_kubectl};

/// A Job whose pod runs a shell script for real.
fn job(name: &str, script: &str) -> Value {
    json!({
        "apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": name},
        "spec": {"backoffLimit": 0, "template": {
            "metadata": {"annotations": {EXECUTE: "true"}, "labels": {"app": name}},
            "spec": {"restartPolicy": "Never", "containers": [{
                "name": "main", "image": "example.org/main",
                "command": ["/bin/sh", "-c"], "args": [script],
            }]},
        }},
    })
}

/// Execution needs nodes of ours and a mount namespace.
fn possible(cluster: &TestCluster) -> Option<()> {
    or_skip(cluster.plane())?;
    or_skip(can_execute().map_err(|reason| Error::NotPossible { reason }))
}

#[tokio::test(flavor = "multi_thread")]
async fn environment_volumes_and_arguments_are_the_pods() {
    let Some((cluster, namespace)) = namespace("execute-env").await else { return };
    let Some(()) = possible(&cluster) else { return };
    kubectl(
        &cluster,
        &namespace,
        &["create", "secret", "generic", "s", "--from-literal=key=hidden"],
    );
    kubectl(&cluster, &namespace, &["create", "configmap", "c", "--from-literal=a.txt=content"]);
    let script = "echo \"$FROM_SECRET $POD $NODE $COMBINED $1\"; cat /etc/conf/a.txt; echo; \
                  cat /var/run/ichor-conf/deep/a.txt; echo; pwd; \
                  touch /etc/ichor-was-here; echo done > /dev/termination-log";
    let mut job = job("env", script);
    let pod = &mut job["spec"]["template"]["spec"];
    pod["volumes"] = json!([{"name": "c", "configMap": {"name": "c"}}]);
    let main = &mut pod["containers"][0];
    main["args"] = json!([script, "name", "$(COMBINED)!"]);
    main["workingDir"] = json!("/usr");
    main["volumeMounts"] = json!([
        {"name": "c", "mountPath": "/etc/conf", "readOnly": true},
        // A link on most machines: it must lead into the pod's own root.
        {"name": "c", "mountPath": "/var/run/ichor-conf/deep"},
    ]);
    main["env"] = json!([
        {"name": "FROM_SECRET", "valueFrom": {"secretKeyRef": {"name": "s", "key": "key"}}},
        {"name": "POD", "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['app']"}}},
        {"name": "NODE", "valueFrom": {"fieldRef": {"fieldPath": "spec.nodeName"}}},
        {"name": "COMBINED", "value": "$(POD)-x"},
    ]);
    apply(&cluster, &namespace, &job);
    kubectl(
        &cluster,
        &namespace,
        &["wait", "--for=condition=Complete", "job/env", "--timeout=60s"],
    );
    let log = kubectl(&cluster, &namespace, &["logs", "job/env"]);
    let lines: Vec<&str> = log.lines().collect();
    assert!(lines[0].starts_with("hidden env node-"), "{log}");
    assert!(lines[0].ends_with(" env-x env-x!"), "{log}");
    assert_eq!(&lines[1..], ["content", "content", "/usr"], "{log}");
    let path = "jsonpath={.items[0].status.containerStatuses[0].state.terminated.message}";
    assert_eq!(kubectl(&cluster, &namespace, &["get", "pods", "-o", path]).trim(), "done");
    for path in ["/etc/ichor-was-here", "/etc/conf", "/var/run/ichor-conf", "/dev/termination-log"]
    {
        assert!(!std::path::Path::new(path).exists(), "{path}: writes stay in the pod");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_token_is_at_its_place_and_names_the_pod() {
    let Some((cluster, namespace)) = namespace("execute-token").await else { return };
    let Some(()) = possible(&cluster) else { return };
    let kubectl_path = plane::find_peer("kubectl").unwrap().path;
    // A program in the pod finds the API server as everywhere: by environment and token.
    let script = "dir=/var/run/secrets/kubernetes.io/serviceaccount; cat $dir/namespace; echo; \
                  unset KUBECONFIG; $KUBECTL auth whoami -o json";
    let mut job = job("token", script);
    job["spec"]["template"]["spec"]["containers"][0]["env"] =
        json!([{"name": "KUBECTL", "value": kubectl_path}]);
    apply(&cluster, &namespace, &job);
    kubectl(
        &cluster,
        &namespace,
        &["wait", "--for=condition=Complete", "job/token", "--timeout=60s"],
    );
    let log = kubectl(&cluster, &namespace, &["logs", "job/token"]);
    let (first, whoami) = log.split_once('\n').unwrap();
    assert_eq!(first, namespace.name);
    let whoami: Value = serde_json::from_str(whoami).unwrap();
    let user = &whoami["status"]["userInfo"];
    assert_eq!(user["username"], format!("system:serviceaccount:{}:default", namespace.name));
    let path = "jsonpath={.items[0].metadata.uid}";
    let uid = kubectl(&cluster, &namespace, &["get", "pods", "-o", path]);
    assert_eq!(user["extra"]["authentication.kubernetes.io/pod-uid"][0], uid.trim());
}

#[tokio::test(flavor = "multi_thread")]
async fn exit_code_and_message_become_the_pods_status() {
    let Some((cluster, namespace)) = namespace("execute-exit").await else { return };
    let Some(()) = possible(&cluster) else { return };
    let mut job = job("exit", "echo some output; echo refused: not yours; exit 2");
    job["spec"]["template"]["spec"]["containers"][0]["terminationMessagePolicy"] =
        json!("FallbackToLogsOnError");
    apply(&cluster, &namespace, &job);
    kubectl(&cluster, &namespace, &["wait", "--for=condition=Failed", "job/exit", "--timeout=60s"]);
    let path = "jsonpath={.items[0].status.containerStatuses[0].state.terminated}";
    let text = kubectl(&cluster, &namespace, &["get", "pods", "-o", path]);
    let terminated: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(terminated["exitCode"], 2);
    assert_eq!(terminated["message"], "some output\nrefused: not yours\n");
}

#[tokio::test(flavor = "multi_thread")]
async fn deleting_a_pod_terminates_its_program_and_kills_a_stubborn_one() {
    let Some((cluster, namespace)) = namespace("execute-signals").await else { return };
    let Some(()) = possible(&cluster) else { return };
    let pod = |name: &str, script: &str| {
        json!({
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": name, "annotations": {EXECUTE: "true"}},
            "spec": {"terminationGracePeriodSeconds": 1, "containers": [{
                "name": "main", "image": "example.org/main", "command": ["/bin/sh", "-c", script],
            }]},
        })
    };
    let loops = "echo started; while :; do sleep 0.1; done";
    apply(&cluster, &namespace, &pod("polite", &format!("trap 'echo bye; exit 0' TERM; {loops}")));
    apply(&cluster, &namespace, &pod("stubborn", &format!("trap '' TERM; {loops}")));
    for name in ["polite", "stubborn"] {
        eventually("the program's first line", 30, || async {
            let log = try_kubectl(&cluster, &namespace, &["logs", name]).unwrap_or_default();
            Ok(log.contains("started").then_some(()))
        })
        .await
        .unwrap();
    }
    let mut follow = cluster.kubectl().unwrap();
    follow.args(["-n", &namespace.name, "logs", "-f", "polite"]);
    let follow = follow.stdout(std::process::Stdio::piped()).spawn().unwrap();
    std::thread::sleep(std::time::Duration::from_millis(500));
    kubectl(&cluster, &namespace, &["delete", "pod", "polite", "stubborn", "--timeout=30s"]);
    let followed = follow.wait_with_output().unwrap();
    let followed = String::from_utf8_lossy(&followed.stdout).into_owned();
    assert!(followed.contains("bye"), "SIGTERM came first: {followed}");
    let processes = std::process::Command::new("ps").args(["-eo", "args"]).output().unwrap();
    let processes = String::from_utf8_lossy(&processes.stdout).into_owned();
    assert!(!processes.contains("trap '' TERM; echo started"), "the stubborn one was killed");
}

/// What a kill matrix does: hold a write of the program, kill the program, look at the cluster.
#[tokio::test(flavor = "multi_thread")]
async fn a_program_is_killed_before_and_after_a_write() {
    let Some((cluster, namespace)) = namespace("execute-kill").await else { return };
    let Some(()) = possible(&cluster) else { return };
    let plane = cluster.plane().unwrap();
    let nodes = plane.nodes().unwrap();
    let proxy = plane.fault_proxy().await.unwrap();
    let account = format!("--serviceaccount={}:default", namespace.name);
    kubectl(
        &cluster,
        &namespace,
        &["create", "rolebinding", "edit", "--clusterrole=edit", &account],
    );
    let maps = Api::<ConfigMap>::namespaced(namespace.client.clone(), &namespace.name);
    let kubectl_path = plane::find_peer("kubectl").unwrap().path;
    for (name, after) in [("before", false), ("after", true)] {
        let writes = Match::writes().namespace(&namespace.name);
        let mut pauses = if after { proxy.pause_after(writes) } else { proxy.pause_before(writes) };
        let script = "$KUBECTL create configmap $NAME && $KUBECTL create configmap second";
        let mut job = job(name, script);
        let pod = &mut job["spec"]["template"];
        let address = format!("127.0.0.1:{}", proxy.port());
        pod["metadata"]["annotations"][API_SERVER] = json!(address);
        pod["spec"]["containers"][0]["env"] =
            json!([{"name": "KUBECTL", "value": kubectl_path}, {"name": "NAME", "value": name}]);
        apply(&cluster, &namespace, &job);
        let paused = pauses.recv().await.unwrap();
        assert_eq!(paused.request.resource, "configmaps");
        let path = "jsonpath={.items[0].metadata.name}";
        let selector = format!("app={name}");
        let pod = kubectl(&cluster, &namespace, &["get", "pods", "-l", &selector, "-o", path]);
        assert_eq!(nodes.kill_pod(&namespace.name, pod.trim()), 1);
        let job = format!("job/{name}");
        kubectl(&cluster, &namespace, &["wait", "--for=condition=Failed", &job, "--timeout=30s"]);
        paused.cut();
        proxy.clear();
        assert_eq!(maps.get_opt(name).await.unwrap().is_some(), after);
        assert!(maps.get_opt("second").await.unwrap().is_none());
        let path = "jsonpath={.items[0].status.containerStatuses[0].state.terminated.exitCode}";
        let code = kubectl(&cluster, &namespace, &["get", "pods", "-l", &selector, "-o", path]);
        assert_eq!(code, "137");
    }
}
