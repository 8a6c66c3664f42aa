//! Times parsing and running of all templates below a directory.
//!
//! `cargo run --release -p gotemplate --example measure_templates -- DIRECTORY [VALUES]`: VALUES is a
//! file in the notation of `tests/support`. Functions beyond the few here are stand-ins
//! that return their last argument, so that the times are those of the engine.

#![expect(clippy::print_stdout, reason = "a command line tool")]
#![expect(clippy::needless_pass_by_value, reason = "functions have the types of Go's")]

#[path = "../tests/support/mod.rs"]
mod support;

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use gotemplate::function::Rest;
use gotemplate::{
    CallError, ErrorKind, Function, FunctionMap, MissingKey, Runtime, Set, Str, Value, fmt,
};

type AnyError = Box<dyn std::error::Error>;

fn main() -> Result<(), AnyError> {
    let mut args = std::env::args().skip(1);
    let directory = args.next().ok_or("usage: bench DIRECTORY [VALUES]")?;
    let values = match args.next() {
        Some(path) => support::parse_value(std::fs::read_to_string(path)?.trim()),
        None => Value::map::<Str>([]),
    };
    let mut files = Vec::new();
    collect(Path::new(&directory), &mut files)?;
    files.sort();
    let texts: Vec<(String, Vec<u8>)> = files
        .iter()
        .map(|path| Ok((path.to_string_lossy().into_owned(), std::fs::read(path)?)))
        .collect::<Result<_, std::io::Error>>()?;
    let bytes: usize = texts.iter().map(|(_, text)| text.len()).sum();

    let mut functions = functions();
    let set = loop {
        match parse(&functions, &texts) {
            Ok(set) => break set,
            Err(error) => match missing_function(&error.to_string()) {
                Some(name) => {
                    functions.entry(name.leak()).or_insert_with(|| Function::new(last));
                }
                None => return Err(error.into()),
            },
        }
    };
    let rounds: u32 = 20;
    let mut parse_time = Duration::MAX;
    for _ in 0..rounds {
        let start = Instant::now();
        let _set = parse(&functions, &texts)?;
        parse_time = parse_time.min(start.elapsed());
    }
    println!("parse: {} files, {bytes} bytes: {parse_time:?}", texts.len());

    let dot = Value::map([
        ("Values", values),
        ("Release", Value::map([("Name", Value::from("r")), ("Namespace", "ns".into())])),
        ("Chart", Value::map([("Name", Value::from("c")), ("Version", "1.2.3".into())])),
        ("Template", Value::map([("Name", Value::from("t")), ("BasePath", "b".into())])),
    ]);
    let mut best = Duration::MAX;
    let (mut written, mut failed) = (0, 0);
    for _ in 0..rounds {
        (written, failed) = (0, 0);
        let start = Instant::now();
        let mut out = Vec::new();
        for (name, _) in &texts {
            if name.rsplit('/').next().is_some_and(|name| name.starts_with('_')) {
                continue;
            }
            out.clear();
            if let Err(error) = set.execute(name, &dot, &mut (), &mut out) {
                assert_eq!(error.kind(), ErrorKind::Exec);
                failed += 1;
                if best == Duration::MAX && std::env::var("BENCH_ERRORS").is_ok() {
                    println!("{error}");
                }
            }
            written += out.len();
        }
        best = best.min(start.elapsed());
    }
    println!("run: {written} bytes written, {failed} templates failed: {best:?}");
    Ok(())
}

fn collect(directory: &Path, files: &mut Vec<PathBuf>) -> std::io::Result<()> {
    for entry in std::fs::read_dir(directory)? {
        let path = entry?.path();
        if path.is_dir() {
            collect(&path, files)?;
        } else if path.extension().is_some_and(|ext| ext == "yaml" || ext == "tpl") {
            files.push(path);
        }
    }
    Ok(())
}

fn parse(functions: &FunctionMap, texts: &[(String, Vec<u8>)]) -> Result<Set, gotemplate::Error> {
    let mut set = Set::new("gotpl", functions.clone());
    set.options_mut().missing_key = MissingKey::Zero;
    for (name, text) in texts {
        set.parse(name.as_str(), text)?;
    }
    Ok(set)
}

fn missing_function(error: &str) -> Option<String> {
    let (_, rest) = error.split_once("function \"")?;
    rest.split_once("\" not defined").map(|(name, _)| name.to_owned())
}

fn last(args: Rest<Value>) -> Value {
    args.0.last().cloned().unwrap_or_default()
}

fn include(runtime: &mut dyn Runtime, name: Str, data: Value) -> Result<Str, CallError> {
    runtime.execute(&name, data)
}

fn tpl(runtime: &mut dyn Runtime, text: Str, data: Value) -> Result<Str, CallError> {
    let name = runtime.root_name();
    runtime.execute_text(&name, &text, data).map_err(|error| CallError::new(error.to_string()))
}

fn functions() -> FunctionMap {
    FunctionMap::from([
        ("include", Function::new(include)),
        ("tpl", Function::new(tpl)),
        (
            "quote",
            Function::new(|value: Value| fmt::sprintf(b"%q", &[fmt::to_string(&value).into()])),
        ),
        ("toString", Function::new(|value: Value| fmt::to_string(&value))),
        ("toYaml", Function::new(|value: Value| fmt::to_string(&value))),
        ("trim", Function::new(|text: Str| text.to_text().trim().to_owned())),
        (
            "nindent",
            Function::new(|width: i64, text: Str| {
                let space = " ".repeat(usize::try_from(width).unwrap_or(0));
                format!("\n{space}{}", text.to_text().replace('\n', &format!("\n{space}")))
            }),
        ),
        (
            "hasKey",
            Function::new(|map: gotemplate::Map, key: Str| map.get(key.as_bytes()).is_some()),
        ),
        (
            "default",
            Function::new(|other: Value, value: Value| if value.is_true() { value } else { other }),
        ),
        ("fail", Function::new(|_: Str| "")),
    ])
}
