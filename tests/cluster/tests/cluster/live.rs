//! What only a real server can show.

use std::sync::{Arc, Mutex};

use helm_rs::cluster::live::{Connection, Live};
use helm_rs::cluster::memory::{MemoryCluster, MemoryOptions};
use helm_rs::cluster::{
    AccessQuestion, Cluster, ErrorKind, Kind, ListQuery, ManualClock, Subject, Target,
    WriteOptions, list_all,
};
use serde_json::json;

use crate::{config_map, live, namespace, options, resource};

#[tokio::test(flavor = "multi_thread")]
async fn the_table_of_kinds_is_the_servers() {
    let Some((cluster, _)) = namespace("live-discovery").await else { return };
    let live = live(&cluster.kubeconfig()).await;
    let real = live.discovery(false).await.unwrap();
    let clock = Arc::new(ManualClock::new("2026-01-02T03:04:05Z".parse().unwrap()));
    let memory = MemoryCluster::new(clock, MemoryOptions::default());
    let table = memory.discovery(false).await.unwrap();
    // Other tests bring CRDs.
    let builtin = |name: &String| !name.contains(".example.org/");
    let versions: Vec<_> = real.api_versions().into_iter().filter(builtin).collect();
    assert_eq!(table.api_versions(), versions);
    for resource in table.resources() {
        assert_eq!(real.resource(&resource.kind), Some(resource), "{}", resource.kind);
    }
    let version = live.server_version().await.unwrap();
    assert_eq!(version.major, "1");
    assert!(version.git_version.starts_with("v1."), "{version:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn documents_reviews_and_identity() {
    let Some((cluster, namespace)) = namespace("live-reviews").await else { return };
    let live = live(&cluster.kubeconfig()).await;
    let apps = live.openapi("apps/v1").await.unwrap().unwrap();
    assert!(apps.pointer("/components/schemas/io.k8s.api.apps.v1.Deployment").is_some());
    assert!(live.openapi("nobody.example.org/v1").await.unwrap().is_none());

    let question = AccessQuestion {
        verb: "create".to_owned(),
        resource: "configmaps".to_owned(),
        namespace: namespace.name.clone(),
        ..AccessQuestion::default()
    };
    assert!(live.may(&question).await.unwrap().allowed);
    let nobody = Subject::service_account(&namespace.name, "nobody");
    assert!(!live.subject_may(&nobody, &question).await.unwrap().allowed);
    assert!(!live.rules(&namespace.name).await.unwrap().resources.is_empty());
    assert!(live.identity().await.unwrap().groups.contains(&"system:masters".to_owned()));

    // The same question as somebody else, by impersonation.
    let mut connection = Connection::kubeconfig(cluster.kubeconfig());
    connection.as_user = Some(nobody.user.clone());
    connection.as_groups = nobody.groups.clone();
    let impersonated = Live::connect(&connection, options()).await.unwrap();
    assert!(!impersonated.may(&question).await.unwrap().allowed);
    let identity = impersonated.identity().await.unwrap();
    assert_eq!(identity.user, nobody.user);
    assert_eq!(identity.groups, nobody.groups);
    let (target, object) = config_map(&impersonated, &namespace.name, "x").await;
    let error = impersonated.create(&target, &object, &WriteOptions::default()).await.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Forbidden);
    let user = &nobody.user;
    let name = &namespace.name;
    assert_eq!(
        error.to_string(),
        format!(
            "configmaps is forbidden: User \"{user}\" cannot create resource \"configmaps\" in API \
             group \"\" in the namespace \"{name}\""
        )
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn long_lists_come_in_pages_and_warnings_arrive() {
    let Some((cluster, namespace)) = namespace("live-lists").await else { return };
    let warnings = Arc::new(Mutex::new(Vec::new()));
    let mut options = options();
    let sink = Arc::clone(&warnings);
    options.warnings = Some(Arc::new(move |text: &str| sink.lock().unwrap().push(text.to_owned())));
    let connection = Connection::kubeconfig(cluster.kubeconfig());
    let live = Live::connect(&connection, options).await.unwrap();

    let creates = (0..23).map(|index| {
        let live = &live;
        let namespace = &namespace.name;
        async move {
            let name = format!("list-{index:02}");
            let (target, mut object) = config_map(live, namespace, &name).await;
            object["metadata"]["labels"] = json!({ "listed": "yes" });
            live.create(&target, &object, &WriteOptions::default()).await.unwrap();
        }
    });
    futures::future::join_all(creates).await;
    let maps = resource(&live, "v1", "ConfigMap").await;
    let query = ListQuery {
        namespace: namespace.name.clone(),
        labels: "listed=yes".to_owned(),
        limit: 5,
        metadata_only: true,
        ..ListQuery::default()
    };
    let page = list_all(&live, &maps, &query).await.unwrap();
    assert_eq!(page.items.len(), 23);
    assert_eq!(Kind::of(&page.items[0]), Kind::new("v1", "ConfigMap"));
    assert!(page.items.iter().all(|item| item.get("data").is_none()));

    let deployments = resource(&live, "apps/v1", "Deployment").await;
    let object = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": { "name": "warned" },
        "spec": {
            "replicas": 0, "unknown": 1,
            "selector": { "matchLabels": { "a": "b" } },
            "template": {
                "metadata": { "labels": { "a": "b" } },
                "spec": { "containers": [{ "name": "c", "image": "i" }] },
            },
        },
    });
    let target = Target::new(&deployments, &namespace.name, "warned");
    live.create(&target, &object, &WriteOptions::default()).await.unwrap();
    assert_eq!(*warnings.lock().unwrap(), ["unknown field \"spec.unknown\""]);
}

#[tokio::test(flavor = "multi_thread")]
async fn transport_failures_read_as_gos() {
    let Some((cluster, _)) = namespace("live-transport").await else { return };
    // A port where nobody listens.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    drop(listener);
    let mut connection = Connection::kubeconfig(cluster.kubeconfig());
    connection.server = Some(format!("https://127.0.0.1:{port}"));
    let live = Live::connect(&connection, options()).await.unwrap();
    let error = live.server_version().await.unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "Get \"https://127.0.0.1:{port}/version\": dial tcp 127.0.0.1:{port}: connect: \
             connection refused"
        )
    );
    connection.server = Some("https://no-such-host.invalid".to_owned());
    let live = Live::connect(&connection, options()).await.unwrap();
    let error = live.server_version().await.unwrap_err().to_string();
    assert!(
        error.starts_with(
            "Get \"https://no-such-host.invalid/version\": dial tcp: lookup no-such-host.invalid"
        ),
        "{error}"
    );

    // The right server without its CA.
    let folder = std::env::temp_dir().join(format!("ichor-ca-{}", std::process::id()));
    if let Ok(plane) = cluster.plane() {
        let mut connection = Connection {
            server: Some(plane.url()),
            token: Some(plane.identities().admin.token.clone()),
            ..Connection::default()
        };
        let live = Live::connect(&connection, options()).await.unwrap();
        let error = live.server_version().await.unwrap_err();
        let url = plane.url();
        assert_eq!(
            error.to_string(),
            format!(
                "Get \"{url}/version\": tls: failed to verify certificate: x509: certificate signed \
                 by unknown authority"
            )
        );
        let mut named = Connection::kubeconfig(cluster.kubeconfig());
        named.tls_server_name = Some("other.example".to_owned());
        let live = Live::connect(&named, options()).await.unwrap();
        let error = live.server_version().await.unwrap_err().to_string();
        assert!(error.contains("x509: certificate is valid for localhost, "), "{error}");
        assert!(error.ends_with(", not other.example"), "{error}");
        connection.insecure_skip_tls_verify = true;
        let live = Live::connect(&connection, options()).await.unwrap();
        live.server_version().await.unwrap();
    }
    let missing = Connection::kubeconfig(folder.join("missing"));
    let error = Live::connect(&missing, options()).await.map(drop).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!("stat {}: no such file or directory", folder.join("missing").display())
    );
    let mut connection = Connection::kubeconfig(cluster.kubeconfig());
    connection.context = Some("nope".to_owned());
    let error = Live::connect(&connection, options()).await.map(drop).unwrap_err();
    assert_eq!(error.to_string(), "context \"nope\" does not exist");
}

/// A kubeconfig whose user is what is given.
fn kubeconfig(server: &str, user: &serde_json::Value, path: &std::path::Path) {
    let config = json!({
        "apiVersion": "v1", "kind": "Config", "current-context": "x",
        "clusters": [{ "name": "c", "cluster": { "server": server, "insecure-skip-tls-verify": true } }],
        "users": [{ "name": "u", "user": user }],
        "contexts": [{ "name": "x", "context": { "cluster": "c", "user": "u", "namespace": "here" } }],
    });
    std::fs::write(path, config.to_string()).unwrap();
}

#[tokio::test(flavor = "multi_thread")]
async fn expired_credentials_are_made_anew() {
    let Some((cluster, _)) = namespace("live-credentials").await else { return };
    let Some(plane) = plane::support::or_skip(cluster.plane()) else { return };
    let token = &plane.identities().admin.token;
    let folder = std::env::temp_dir().join(format!("ichor-credentials-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join("kubeconfig");
    let used = folder.join("used");

    // A plugin whose first token has expired meanwhile.
    let script = format!(
        r#"if [ -e "{used}" ]; then t={token}; else t=expired; : > "{used}"; fi
        echo '{{"apiVersion":"client.authentication.k8s.io/v1","kind":"ExecCredential","status":{{"token":"'$t'"}}}}'"#,
        used = used.display()
    );
    let exec = |command: &str, arguments: &[&str]| {
        json!({ "exec": {
            "apiVersion": "client.authentication.k8s.io/v1", "interactiveMode": "Never",
            "command": command, "args": arguments,
        } })
    };
    kubeconfig(&plane.url(), &exec("sh", &["-c", &script]), &file);
    let plugin = live(&file).await;
    assert_eq!(plugin.default_namespace(), "here");
    assert!(!used.exists(), "it does not run before it is needed");
    assert!(plugin.identity().await.unwrap().groups.contains(&"system:masters".to_owned()));

    // A token in a file that is replaced.
    let token_file = folder.join("token");
    std::fs::write(&token_file, "expired").unwrap();
    kubeconfig(&plane.url(), &json!({ "tokenFile": token_file }), &file);
    let from_file = live(&file).await;
    let error = from_file.identity().await.unwrap_err();
    assert_eq!(
        (error.kind(), error.to_string().as_str()),
        (ErrorKind::Unauthorized, "Unauthorized")
    );
    let error = from_file.server_version().await.unwrap_err();
    assert_eq!(error.to_string(), "the server has asked for the client to provide credentials");
    std::fs::write(&token_file, token).unwrap();
    from_file.identity().await.unwrap();

    // Plugins that are not there or fail, in client-go's words.
    let version = format!("Get \"{}/version\": getting credentials: exec: ", plane.url());
    for (command, arguments, text) in [
        (
            "/nonexistent/plugin",
            &[][..],
            "fork/exec /nonexistent/plugin: no such file or directory",
        ),
        ("sh", &["-c", "exit 3"][..], "executable sh failed with exit code 3"),
    ] {
        kubeconfig(&plane.url(), &exec(command, arguments), &file);
        let error = live(&file).await.server_version().await.unwrap_err();
        assert_eq!(error.to_string(), format!("{version}{text}"));
    }
    std::fs::write(&file, "a: [").unwrap();
    let error =
        Live::connect(&Connection::kubeconfig(&file), options()).await.map(drop).unwrap_err();
    assert_eq!(
        error.to_string(),
        format!(
            "error loading config file \"{}\": yaml: line 1: did not find expected node content",
            file.display()
        )
    );
    std::fs::remove_dir_all(&folder).unwrap();
}
