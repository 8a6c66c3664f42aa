//! The peers themselves: the right Helm, and a driver that tells the same as the binary.

use serde_json::json;
use test_support::driver::{Driver, encode};
use test_support::sealed::Sealed;
use test_support::{peer, skip};

/// What charts see as `.Capabilities.HelmVersion`; a wrong build flag would show up here first.
#[test]
fn helm_reports_its_release_version() {
    let helm = match peer::helm() {
        Ok(helm) => helm,
        Err(missing) => skip!(missing),
    };
    let said = Sealed::new(&helm).run(["version"]);
    let text = String::from_utf8_lossy(&said.stdout).into_owned();
    assert!(
        text.starts_with(
            "version.BuildInfo{Version:\"v3.21.4\", \
             GitCommit:\"813176c51bb5c181dbbd7901298ddcc104cd3417\", \
             GitTreeState:\"clean\", GoVersion:\"go1."
        ),
        "{text}"
    );
}

/// The driver's engine and the binary's render one chart to the same text, versions included.
#[test]
fn the_driver_tells_the_same_as_the_binary() {
    let (helm, driver) = match (peer::helm(), Driver::shared()) {
        (Ok(helm), Ok(driver)) => (helm, driver),
        (Err(missing), _) | (_, Err(missing)) => skip!(missing),
    };
    let template = "a: {{ .Values.x | toYaml | quote }}\nhelm: {{ .Capabilities.HelmVersion }}\n\
                    kube: {{ .Capabilities.KubeVersion }}\napis: {{ .Capabilities.APIVersions }}\n";
    let chart = tempfile::tempdir().unwrap();
    std::fs::create_dir(chart.path().join("templates")).unwrap();
    std::fs::write(chart.path().join("Chart.yaml"), "apiVersion: v2\nname: c\nversion: 1.2.3\n")
        .unwrap();
    std::fs::write(chart.path().join("values.yaml"), "x: {b: [1, 2.5, null]}\n").unwrap();
    std::fs::write(chart.path().join("templates/t.yaml"), template).unwrap();
    let binary = Sealed::new(&helm).run(["template".as_ref(), chart.path().as_os_str()]);
    let answer = driver
        .call(
            "expr",
            json!({"template": encode(template), "values": encode("x: {b: [1, 2.5, null]}\n")}),
        )
        .unwrap();
    let expected = format!(
        "---\n# Source: c/templates/t.yaml\n{}",
        String::from_utf8(answer.output()).unwrap()
    );
    assert_eq!(String::from_utf8_lossy(&binary.stdout), expected);
    assert!(expected.contains("kube: v1.36.0"), "{expected}");
}

#[test]
fn errors_panics_and_faults_are_told_apart() {
    let driver = match Driver::shared() {
        Ok(driver) => driver,
        Err(missing) => skip!(missing),
    };
    let error = driver.call("expr", json!({"template": encode("{{ fail \"no\" }}")})).unwrap();
    assert_eq!(error.error().as_deref(), Some("execution error at (c/templates/t.yaml:1:3): no"));
    let panic = driver
        .call("call", json!({"function": "until", "arguments": [{"t": "string", "v": "x"}]}))
        .unwrap();
    assert!(panic.error().unwrap().starts_with("panic: "), "{panic:?}");
    assert!(driver.call("nothing", json!({})).unwrap_err().to_string().contains("fault"));
}
