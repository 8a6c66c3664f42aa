//! Object names as Kubernetes wants them, by kind (`pkg/lint/rules/template.go`,
//! `validateMetadataNameFunc`; `k8s.io/apimachinery/pkg/api/validation`).

use crate::gotext::quote;

/// What is wrong with an object's name, in Kubernetes' words; nothing for a good name.
pub(super) fn check(kind: &str, name: &str) -> Option<String> {
    let faults = match kind.to_lowercase().as_str() {
        "service" => label_1035(name),
        "namespace" => label_1123(name),
        "certificatesigningrequest" => Vec::new(),
        "role" | "clusterrole" | "rolebinding" | "clusterrolebinding" => path_segment(name),
        _ => subdomain_1123(name),
    };
    // An aggregate leaves out what it has said before.
    let mut messages: Vec<String> = Vec::new();
    for fault in faults {
        let message = format!("metadata.name: Invalid value: {}: {fault}", quote(name));
        if !messages.contains(&message) {
            messages.push(message);
        }
    }
    let text = match messages.as_slice() {
        [] => return None,
        [only] => only.clone(),
        several => format!("[{}]", several.join(", ")),
    };
    let name = quote(name);
    Some(format!("object name does not conform to Kubernetes naming requirements: {name}: {text}"))
}

fn label_1123(name: &str) -> Vec<String> {
    let mut faults = too_long(name, 63);
    if is_label(name) {
        return faults;
    }
    if name.split('.').all(is_label) {
        faults.push("must not contain dots".to_owned());
    } else {
        faults.push(
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or \
             '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or \
             '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')"
                .to_owned(),
        );
    }
    faults
}

fn subdomain_1123(name: &str) -> Vec<String> {
    let mut faults = too_long(name, 253);
    if !name.split('.').all(is_label) {
        faults.push(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, \
             '-' or '.', and must start and end with an alphanumeric character (e.g. \
             'example.com', regex used for validation is \
             '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
                .to_owned(),
        );
    }
    faults
}

fn label_1035(name: &str) -> Vec<String> {
    let mut faults = too_long(name, 63);
    if !is_label(name) || !name.starts_with(|c: char| c.is_ascii_lowercase()) {
        faults.push(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start \
             with an alphabetic character, and end with an alphanumeric character (e.g. \
             'my-name',  or 'abc-123', regex used for validation is \
             '[a-z]([-a-z0-9]*[a-z0-9])?')"
                .to_owned(),
        );
    }
    faults
}

fn path_segment(name: &str) -> Vec<String> {
    if matches!(name, "." | "..") {
        return vec![format!("may not be '{name}'")];
    }
    ["/", "%"]
        .into_iter()
        .filter(|illegal| name.contains(illegal))
        .map(|illegal| format!("may not contain '{illegal}'"))
        .collect()
}

fn too_long(name: &str, limit: usize) -> Vec<String> {
    if name.len() > limit {
        vec![format!("must be no more than {limit} characters")]
    } else {
        Vec::new()
    }
}

fn is_label(text: &str) -> bool {
    let alphanumeric = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    text.starts_with(alphanumeric)
        && text.ends_with(alphanumeric)
        && text.chars().all(|c| alphanumeric(c) || c == '-')
}
