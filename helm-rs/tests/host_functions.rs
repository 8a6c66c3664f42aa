//! The functions that need a rendering host, and their families: semantic versions, regular
//! expressions, dates, URLs, TOML, certificates and passwords.
//!
//! The files in `host_functions/` hold templates, each followed by a line `= output` or
//! `! error`, as Go's text/template printed it with Helm's function map (sprig v3.3.0) in
//! the time zone UTC. Bytes beyond printable ASCII, and `~` itself, are written `~xx`. What
//! is random or depends on the clock is shown only by its form.

use std::fmt::Write as _;
use std::path::Path;

use gotemplate::{FunctionMap, MissingKey, Options, Set, Value};
use helm_rs::render::functions::builtin_functions;
use helm_rs::render::host::{Clock, Host, Randomness, Reading};
use helm_rs::render::time::Zone;

/// 2023-11-14T22:13:20.123456789Z.
const NOW: Reading = Reading::at(1_700_000_000, 123_456_789);

fn host(seed: u64) -> Host {
    Host::new(Randomness::Seed(seed), Clock::Fixed(NOW), Zone::utc().as_local())
}

fn unescape(text: &str) -> Vec<u8> {
    let mut out = Vec::new();
    let mut rest = text.as_bytes();
    while let Some((&byte, tail)) = rest.split_first() {
        let code = tail.get(..2).and_then(|code| std::str::from_utf8(code).ok());
        match code.and_then(|code| u8::from_str_radix(code, 16).ok()) {
            Some(escaped) if byte == b'~' => {
                out.push(escaped);
                rest = &tail[2..];
            }
            _ => {
                out.push(byte);
                rest = tail;
            }
        }
    }
    out
}

fn escape(bytes: &[u8]) -> String {
    let mut out = String::new();
    for &byte in bytes {
        if (b' '..0x7f).contains(&byte) && byte != b'~' {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "~{byte:02x}");
        }
    }
    out
}

fn render(functions: &FunctionMap, host: &mut Host, template: &[u8]) -> String {
    let mut set = Set::new("gotpl", functions.clone())
        .with_options(Options { missing_key: MissingKey::Zero, ..Options::default() });
    let mut out = Vec::new();
    let result =
        set.parse("c/t", template).and_then(|()| set.execute("c/t", &Value::Nil, host, &mut out));
    match result {
        Ok(()) => format!("= {}", escape(&out)),
        Err(error) => format!("! {}", escape(error.text().as_bytes())),
    }
}

#[test]
fn cases() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/host_functions");
    let functions = builtin_functions();
    let mut differences = String::new();
    let mut count = 0;
    let mut files: Vec<_> =
        std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    for file in files {
        let text = std::fs::read_to_string(&file).unwrap();
        let lines: Vec<&str> = text.lines().collect();
        for (index, pair) in lines.chunks(2).enumerate() {
            let &[template, expected] = pair else { panic!("{}: odd lines", file.display()) };
            let got = render(&functions, &mut host(1), &unescape(template));
            if got != expected {
                writeln!(
                    differences,
                    "{}:{}\n  {template}\n  expected {expected}\n  got      {got}",
                    file.display(),
                    2 * index + 1
                )
                .unwrap();
            }
            count += 1;
        }
    }
    assert!(differences.is_empty(), "{differences}");
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
