//! The functions that need a rendering host, and their families: semantic versions, regular
//! expressions, dates, URLs, TOML, certificates and passwords.
//!
//! The files in `host_functions/` are [`common`] case files, of Go's text/template with Helm's
//! function map (sprig v3.3.0) in the time zone UTC. What is random or depends on the clock is
//! shown only by its form.

#![expect(clippy::unwrap_used, clippy::panic, reason = "a test's helpers fail the test")]

mod common;

use gotemplate::{FunctionMap, MissingKey, Options, Set, Value};
use helm_rs::render::functions::builtin_functions;
use helm_rs::render::host::{Clock, Host, Randomness, Reading};
use helm_rs::render::time::Zone;

/// 2023-11-14T22:13:20.123456789Z.
const NOW: Reading = Reading::at(1_700_000_000, 123_456_789);

fn host(seed: u64) -> Host {
    Host::new(Randomness::Seed(seed), Clock::Fixed(NOW), Zone::utc().as_local())
}

fn render(functions: &FunctionMap, host: &mut Host, template: &[u8]) -> String {
    let mut set = Set::new("gotpl", functions.clone())
        .with_options(Options { missing_key: MissingKey::Zero, ..Options::default() });
    let mut out = Vec::new();
    let result =
        set.parse("c/t", template).and_then(|()| set.execute("c/t", &Value::Nil, host, &mut out));
    match result {
        Ok(()) => common::outcome(Ok(&out)),
        Err(error) => common::outcome(Err(error.text().as_bytes())),
    }
}

#[test]
fn cases() {
    let functions = builtin_functions();
    let files = common::files("host_functions");
    let count = common::check(&files, |template| render(&functions, &mut host(1), template));
    assert!(count >= 700, "only {count} cases");
}

/// Everything that is random comes from the seed, and nothing else does.
#[test]
fn seeds_decide() {
    let functions = builtin_functions();
    let random = [
        "{{ randAlphaNum 20 }}",
        "{{ randBytes 20 }}",
        "{{ randInt 0 1000000000 }}",
        "{{ uuidv4 }}",
        "{{ shuffle \"abcdefghijklmnopqrstuvwxyz\" }}",
        "{{ htpasswd \"user\" \"password\" }}",
        "{{ encryptAES \"password\" \"text\" }}",
        "{{ genPrivateKey \"ecdsa\" }}",
        "{{ genPrivateKey \"ed25519\" }}",
        "{{ (genCA \"ca\" 365).Cert }}",
        "{{ $ca := genCA \"ca\" 365 }}{{ genSignedCert \"x\" (list \"::1\") (list \"y\") 1 $ca }}",
    ];
    for template in random {
        let first = render(&functions, &mut host(1), template.as_bytes());
        assert!(first.starts_with("= "), "{template}: {first}");
        assert_eq!(first, render(&functions, &mut host(1), template.as_bytes()), "{template}");
        assert_ne!(first, render(&functions, &mut host(2), template.as_bytes()), "{template}");
    }
    let fixed = [
        ("{{ now }}", "= 2023-11-14 22:13:20.123456789 +0000 UTC"),
        ("{{ now | date \"2006-01-02\" }}", "= 2023-11-14"),
        ("{{ ago (int64 1699999940) }}", "= 1m0s"),
        ("{{ now.Unix }}", "= 1700000000"),
        ("{{ derivePassword 1 \"pin\" \"p\" \"u\" \"s\" | len }}", "= 4"),
    ];
    for (template, expected) in fixed {
        for seed in [1, 2] {
            assert_eq!(render(&functions, &mut host(seed), template.as_bytes()), expected);
        }
    }
}

/// The stream that a seed stands for stays what it is: rendering twice, years apart, must
/// give the same leaves.
#[test]
fn seed_is_stable() {
    let mut host = host(1);
    let mut bytes = [0; 8];
    host.fill_random(&mut bytes);
    let again = render(&builtin_functions(), &mut self::host(1), b"{{ randBytes 8 }}");
    assert_eq!(bytes, SEED_1_START);
    assert_eq!(again, "= xdMKfOHsEZM=");
}

const SEED_1_START: [u8; 8] = [197, 211, 10, 124, 225, 236, 17, 147];
