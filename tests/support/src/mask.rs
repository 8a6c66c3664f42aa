//! Generated leaves made equal on both sides, keeping their shape.
//!
//! Certificates and keys differ from run to run. What must still be equal is where they stand, how
//! they are wrapped and what they are, so a mask keeps the PEM labels of what it replaces.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

const PEM_BEGIN: &str = "-----BEGIN ";
/// `-----BEGIN` in base64, as in a Secret's data.
const ENCODED_PEM: &str = "LS0tLS1CRUdJTi";

/// Replaces every base64 of PEM text by `<pem LABEL…>` and every plain PEM block's body by
/// `<generated>`; other text is kept as it is.
pub fn certificates(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut in_block = false;
    for line in text.split_inclusive('\n') {
        if in_block {
            if line.contains("-----END ") {
                in_block = false;
                out.push_str(line);
            }
            continue;
        }
        if line.contains(PEM_BEGIN) && !line.contains("-----END ") {
            in_block = true;
            out.push_str(line);
            out.push_str("<generated>\n");
            continue;
        }
        encoded(line, &mut out);
    }
    out
}

fn encoded(line: &str, out: &mut String) {
    let mut rest = line;
    while let Some(at) = rest.find(ENCODED_PEM) {
        let (before, from) = rest.split_at(at);
        out.push_str(before);
        let end = from
            .find(|c: char| !(c.is_ascii_alphanumeric() || matches!(c, '+' | '/' | '=')))
            .unwrap_or(from.len());
        let (token, after) = from.split_at(end);
        match STANDARD.decode(token).map(|bytes| labels(&String::from_utf8_lossy(&bytes))) {
            Ok(labels) if !labels.is_empty() => {
                out.push_str("<pem ");
                out.push_str(&labels.join(", "));
                out.push('>');
            }
            _ => out.push_str(token),
        }
        rest = after;
    }
    out.push_str(rest);
}

/// The labels of the PEM blocks in a text, in order.
fn labels(text: &str) -> Vec<String> {
    text.lines()
        .filter_map(|line| line.strip_prefix(PEM_BEGIN)?.strip_suffix("-----"))
        .map(str::to_owned)
        .collect()
}

/// The lines of a text in sorted order, for errors whose order Helm itself does not keep (schema
/// violations come out of a map).
pub fn as_set(text: &str) -> Vec<&str> {
    let mut lines: Vec<&str> = text.lines().collect();
    lines.sort_unstable();
    lines
}

#[cfg(test)]
mod tests {
    use super::{STANDARD, certificates};
    use base64::Engine as _;

    #[test]
    fn encoded_certificates_keep_their_label_and_place() {
        let one = STANDARD.encode("-----BEGIN CERTIFICATE-----\nAAA\n-----END CERTIFICATE-----\n");
        let text = format!("  tls.crt: {one}\n  other: \"{one}\"\n");
        assert_eq!(
            certificates(&text),
            "  tls.crt: <pem CERTIFICATE>\n  other: \"<pem CERTIFICATE>\"\n"
        );
    }

    #[test]
    fn plain_blocks_lose_their_body_only() {
        let text = "a: |\n  -----BEGIN RSA PRIVATE KEY-----\n  x\n  y\n  -----END RSA PRIVATE KEY-----\nb: 1\n";
        assert_eq!(
            certificates(text),
            "a: |\n  -----BEGIN RSA PRIVATE KEY-----\n<generated>\n  -----END RSA PRIVATE KEY-----\nb: 1\n"
        );
    }

    #[test]
    fn a_wrong_encoding_stays_visible() {
        let text = "x: LS0tLS1CRUdJTi!\n";
        assert_eq!(certificates(text), text);
    }
}
