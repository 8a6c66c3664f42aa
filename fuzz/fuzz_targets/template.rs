//! One template in a chart with a partial, rendered with every function of Helm. What follows
//! the first record separator (0x1e) is the values; without it a few fixed ones are used.
#![no_main]

use std::sync::Arc;

use bstr::ByteSlice;
use helm_rs::action::template::{Options, template};
use helm_rs::chart::{Chart, File, Metadata};
use helm_rs::render::host::{Clock, Randomness, Reading};
use helm_rs::render::{Engine, EngineOptions, Host, RenderLimits, time::Zone};
use libfuzzer_sys::{Corpus, fuzz_target};

const VALUES: &[u8] =
    b"{a: {b: [1, x, null, 2.5], c: {d: true}}, text: '{{ .Release.Name }}', n: 3}";
const PARTIAL: &[u8] = br#"{{define "h"}}{{.}}{{end}}{{define "json"}}{{. | toJson}}{{end}}"#;

/// Calls that take long however small the input is, as in Helm: key generation and password
/// hashes.
const SLOW: [&str; 7] =
    ["genPrivateKey", "genCA", "genSelf", "genSigned", "derivePassword", "htpasswd", "bcrypt"];

fuzz_target!(|data: &[u8]| -> Corpus {
    if SLOW.iter().any(|name| data.contains_str(name)) {
        return Corpus::Reject;
    }
    let (text, values) = data.split_once_str("\u{1e}").unwrap_or((data, VALUES));
    let Ok(values) = goyaml::from_yaml_map(values, "chartutil.Values", &goyaml::Limits::default())
    else {
        return Corpus::Reject;
    };
    let metadata = Metadata { name: "fuzz".into(), version: "1.0.0".into(), ..Metadata::default() };
    let mut chart = Chart::new(metadata);
    for (name, text) in [("templates/_partial.tpl", PARTIAL), ("templates/text.yaml", text)] {
        chart.templates.push(File { name: name.into(), data: Arc::from(text) });
    }
    let limits = RenderLimits { output: 1 << 20, steps: 20_000 };
    let engine = Engine::new(EngineOptions { strict: false, limits });
    let clock = Clock::Fixed(Reading::at(1_700_000_000, 0));
    let mut host = Host::new(Randomness::Seed(1), clock, Zone::utc());
    let options = Options { release_name: "fuzz".into(), ..Options::default() };
    let _ = template(&engine, &mut chart, &values, &options, &mut host, &mut Vec::new());
    Corpus::Keep
});
