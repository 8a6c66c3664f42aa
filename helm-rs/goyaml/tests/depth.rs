//! Depth costs heap and not stack: nothing overflows on a small stack.

#![expect(clippy::expect_used, reason = "helpers of tests may panic as tests do")]

use std::fmt::Write as _;
use std::thread;

use goyaml::{Limits, Value, json};

/// Runs on a stack of the size that threads have by default.
fn on_small_stack(run: impl FnOnce() + Send + 'static) {
    let thread = thread::Builder::new().stack_size(2 << 20).spawn(run).expect("thread");
    thread.join().expect("no panic");
}

fn nested(open: &str, close: &str, depth: usize) -> String {
    format!("{}1{}", open.repeat(depth), close.repeat(depth))
}

#[test]
fn as_deep_as_go_goes() {
    for (open, close) in [("[", "]"), ("{a: ", "}"), ("[{a: ", "}]")] {
        let depth = 10_000 / open.matches(['[', '{']).count();
        on_small_stack(move || {
            let text = nested(open, close, depth);
            let value = goyaml::from_yaml(text.as_bytes(), &Limits::go()).expect("YAML");
            let json = json::to_json(&value).expect("JSON");
            let again = json::from_json(json.as_bytes(), &Limits::go()).expect("JSON again");
            let yaml = goyaml::to_yaml(&value).expect("to_yaml");
            let pretty = goyaml::to_yaml_pretty(&value).expect("to_yaml_pretty");
            assert!(yaml.len() > depth && pretty.len() > depth);
            drop(again);
            drop(value);
        });
    }
}

#[test]
fn deeper_than_go() {
    on_small_stack(|| {
        let error = |text: &str| {
            goyaml::from_yaml(text.as_bytes(), &Limits::go()).expect_err("too deep").to_string()
        };
        let prefix = "error converting YAML to JSON: yaml: ";
        for text in [nested("[", "]", 10_001), "{".repeat(500_000), "- ".repeat(500_000)] {
            assert_eq!(error(&text), format!("{prefix}exceeded max depth of 10000"));
        }
        let json_prefix = "error unmarshaling JSON: while decoding JSON: ";
        let both = format!("{}{}", "- ".repeat(9_000), nested("[", "]", 9_000));
        assert_eq!(error(&both), format!("{json_prefix}invalid character '[' exceeded max depth"));
        // An alias within an alias: a depth that is written nowhere.
        let mut chain = String::from("a0: &a0 [1]\n");
        for step in 1..200 {
            let value = nested("[", "]", 150).replace('1', &format!("*a{}", step - 1));
            writeln!(chain, "a{step}: &a{step} {value}").expect("write");
        }
        assert!(error(&chain).ends_with("excessive aliasing"), "{}", error(&chain));
    });
}

#[test]
fn default_limit() {
    let text = nested("[", "]", 1_001);
    let error = goyaml::from_yaml(text.as_bytes(), &Limits::default()).expect_err("too deep");
    assert_eq!(error.to_string(), "nesting exceeds the limit of 1000 levels");
    assert!(error.is_limit());
    assert!(json::from_json(text.as_bytes(), &Limits::default()).is_err());
    let text = nested("[", "]", 1_000);
    assert!(goyaml::from_yaml(text.as_bytes(), &Limits::default()).is_ok());
    assert!(json::from_json(text.as_bytes(), &Limits::default()).is_ok());
}

#[test]
fn a_value_without_end() {
    #[derive(Clone, Copy)]
    struct Endless;

    impl goyaml::Source for Endless {
        type Text = &'static str;

        fn node(&self) -> goyaml::Node<Self> {
            goyaml::Node::Map(vec![("a", Self), ("b", Self)])
        }
    }

    on_small_stack(|| {
        assert!(goyaml::to_yaml(Endless).is_err());
        assert!(goyaml::to_yaml_pretty(Endless).is_err());
        assert!(json::to_json(Endless).is_err());
    });
}

#[test]
fn values_are_plain_data() {
    fn is_send<T: Send + Sync + 'static>() {}
    is_send::<Value>();
    is_send::<goyaml::Error>();
}
