//! Deep nesting, runaway recursion and the limits: errors, never a crash.

#![allow(
    clippy::panic,
    clippy::expect_used,
    clippy::unwrap_in_result,
    reason = "tests stop at what they do not expect"
)]

mod support;

use gotemplate::{ErrorKind, Function, Limits, Set, Value, fmt};
use support::functions::functions;

fn set(texts: &[(&str, &str)]) -> Set {
    let mut set = Set::new("root", functions());
    for (name, text) in texts {
        set.parse(*name, text.as_bytes()).expect("parses");
    }
    set
}

fn run(set: &Set, name: &str) -> Result<String, gotemplate::Error> {
    let mut out = Vec::new();
    set.execute(name, &Value::Nil, &mut (), &mut out)?;
    Ok(String::from_utf8(out).expect("UTF-8"))
}

#[test]
fn parentheses_as_deep_as_go_allows() {
    let deep = |depth: usize| format!("{{{{{}1{}}}}}", "(".repeat(depth), ")".repeat(depth));
    let mut templates = set(&[("deep", &deep(10_000))]);
    assert_eq!(run(&templates, "deep").expect("runs"), "1");
    let error = templates.parse("deeper", deep(10_001).as_bytes()).expect_err("too deep");
    assert_eq!(error.to_string(), "template: deeper:1: max expression depth exceeded");
}

#[test]
fn control_structures_inside_each_other() {
    let depth = 50_000;
    for (open, close) in [("{{if 1}}", "{{end}}"), ("{{with 1}}", "{{end}}")] {
        let text = format!("{}x{}", open.repeat(depth), close.repeat(depth));
        assert_eq!(run(&set(&[("t", &text)]), "t").expect("runs"), "x");
    }
    let chain = format!("{{{{if 0}}}}{}{{{{end}}}}", "{{else if 0}}".repeat(depth));
    assert_eq!(run(&set(&[("t", &chain)]), "t").expect("runs"), "");
    let unclosed = "{{if 1}}".repeat(1_000_000);
    let error = Set::new("root", functions()).parse("t", unclosed.as_bytes()).expect_err("deep");
    assert_eq!(error.kind(), ErrorKind::Parse);
}

#[test]
fn template_recursion_ends_as_in_go() {
    let templates = set(&[("t", r#"{{template "t" .}}"#)]);
    let error = run(&templates, "t").expect_err("recursion");
    assert_eq!(
        error.to_string(),
        r#"template: t:1:11: executing "t" at <{{template "t" .}}>: exceeded maximum template depth (100000)"#
    );
    assert!(error.is_exec_error());
}

#[test]
fn recursion_through_functions_ends() {
    for text in [r#"{{include "t" .}}"#, r#"{{tpl "{{include `t` .}}" .}}"#] {
        let error = run(&set(&[("t", text)]), "t").expect_err("recursion");
        assert_eq!(error.kind(), ErrorKind::Limit, "{text}");
        assert!(error.to_string().contains("executions inside each other"), "{error}");
    }
}

#[test]
fn recursion_fits_a_small_thread() {
    let run = || {
        let error = run(&set(&[("t", r#"{{with 1}}{{print (include "t" .)}}{{end}}"#)]), "t")
            .expect_err("recursion");
        assert_eq!(error.kind(), ErrorKind::Limit);
    };
    std::thread::Builder::new()
        .stack_size(512 << 10)
        .spawn(run)
        .expect("thread")
        .join()
        .expect("no overflow");
}

#[test]
fn output_steps_and_interruption() {
    let endless = "{{range 1000000000000}}0123456789{{end}}";
    let mut templates = set(&[("t", endless)]);
    templates.options_mut().limits = Limits { output_bytes: 1000, ..Limits::default() };
    let error = run(&templates, "t").expect_err("output");
    assert_eq!(error.kind(), ErrorKind::Limit);
    assert_eq!(error.line(), Some(1));
    assert!(error.to_string().starts_with("template: t:1:"), "{error}");
    assert!(error.to_string().ends_with("output exceeds 1000 bytes"), "{error}");

    templates.options_mut().limits = Limits { steps: 10_000, ..Limits::default() };
    let error = run(&templates, "t").expect_err("steps");
    assert!(error.to_string().ends_with("execution exceeds 10000 steps"), "{error}");

    templates.options_mut().limits = Limits::default();
    let mut questions = 0;
    let mut interrupted = || {
        questions += 1;
        questions > 3
    };
    let mut out = Vec::new();
    let error = templates
        .execute_until("t", &Value::Nil, &mut (), &mut out, &mut interrupted)
        .expect_err("interrupted");
    assert!(error.to_string().ends_with("execution was interrupted"), "{error}");
}

#[test]
fn values_that_double_at_every_turn() {
    let doubling = r#"{{$x := "aaaa"}}{{range 60}}{{$x = print $x $x}}{{end}}"#;
    let mut templates = set(&[("t", doubling)]);
    templates.options_mut().limits = Limits { output_bytes: 1 << 20, ..Limits::default() };
    let error = run(&templates, "t").expect_err("doubles");
    assert_eq!(error.kind(), ErrorKind::Limit);
    assert!(error.to_string().ends_with("a value exceeds 1048576 bytes"), "{error}");

    templates.options_mut().limits = Limits { made_bytes: 1000, ..Limits::default() };
    let error = run(&templates, "t").expect_err("adds up");
    assert!(error.to_string().ends_with("calls return more than 1000 bytes"), "{error}");
}

/// `fmt` has a bound of its own, which a higher limit does not raise: what it cut off must not
/// pass for the whole.
#[test]
fn a_text_that_is_cut_off_is_an_error() {
    let mut shared = Value::string("x".repeat(1 << 20));
    for _ in 0..9 {
        shared = Value::list([shared.clone(), shared]);
    }
    for template in ["{{.}}", "{{len (print .)}}"] {
        let mut templates = set(&[("t", template)]);
        templates.options_mut().limits = Limits { output_bytes: usize::MAX, ..Limits::default() };
        let error = templates.execute("t", &shared, &mut (), &mut Vec::new()).expect_err("cut off");
        assert_eq!(error.kind(), ErrorKind::Limit);
        assert!(error.to_string().ends_with("a value exceeds 268435456 bytes"), "{error}");
    }
}

#[test]
fn deep_recursion_through_texts_is_not_quadratic() {
    let text = r#"{{define "next"}}{{tpl "{{include `next` .}}" .}}{{end}}{{include "next" .}}"#;
    let start = std::time::Instant::now();
    let error = run(&set(&[("t", text)]), "t").expect_err("recursion");
    assert_eq!(error.kind(), ErrorKind::Limit);
    assert!(start.elapsed().as_secs() < 20, "{:?}", start.elapsed());
}

#[test]
fn a_panic_in_a_function_is_its_error() {
    let mut functions = functions();
    functions.insert("panics", Function::new(|| -> Value { panic!("out of luck") }));
    let mut templates = Set::new("root", functions);
    templates.parse("t", b"a{{panics}}").expect("parses");
    let error = run(&templates, "t").expect_err("panic");
    assert_eq!(
        error.to_string(),
        r#"template: t:1:3: executing "t" at <panics>: error calling panics: out of luck"#
    );
}

#[test]
fn a_map_inside_itself_prints_and_ends() {
    let value = Value::map([("a", Value::int(1))]);
    let Value::Map(map) = &value else { panic!("map") };
    map.set("self".into(), value.clone());
    let text = fmt::sprintf(b"%v", std::slice::from_ref(&value));
    assert!(text.len() < 100_000);
    let _removed = map.remove(b"self");
}

#[test]
fn the_place_is_marked() {
    let error = run(&set(&[("t", "a: 1\nb: {{ .x | up }}\n")]), "t").expect_err("nil");
    assert_eq!((error.line(), error.column()), (Some(2), Some(11)));
    assert_eq!(error.excerpt().expect("place"), "2 | b: {{ .x | up }}\n  |            ^^\n");
}

#[test]
fn one_set_runs_in_many_threads() {
    let templates = set(&[("t", r#"{{range 100}}{{include "u" .}}{{end}}"#), ("u", "{{.}},")]);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| assert!(run(&templates, "t").expect("runs").ends_with("99,")));
        }
    });
}
