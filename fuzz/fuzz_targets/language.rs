//! The template language alone: lexer, parser, executor and builtin functions, with functions
//! that run templates.
#![no_main]

use gotemplate::{
    CallError, Function, FunctionMap, Limits, List, MissingKey, Options, Runtime, Set, Str,
    TextError, Value,
};
use libfuzzer_sys::fuzz_target;

fn include(runtime: &mut dyn Runtime, name: Str, data: Value) -> Result<Str, CallError> {
    runtime.execute(&name, data)
}

fn tpl(runtime: &mut dyn Runtime, text: Str, data: Value) -> Result<Str, CallError> {
    let name = runtime.root_name();
    runtime.execute_text(&name, &text, data).map_err(|error| match error {
        TextError::Parse(text) | TextError::Execute(text) => CallError::new(text),
    })
}

fuzz_target!(|data: &[u8]| {
    let mut functions = FunctionMap::new();
    functions.insert("include", Function::new(include));
    functions.insert("tpl", Function::new(tpl));
    let limits = Limits { output_bytes: 1 << 20, steps: 20_000, nesting: 200, ..Limits::default() };
    let options = Options { missing_key: MissingKey::Zero, limits };
    let mut set = Set::new("gotpl", functions).with_options(options);
    let helper = br#"{{define "h"}}{{.}}{{end}}"#;
    if set.parse("helper", helper).is_err() || set.parse("t", data).is_err() {
        return;
    }
    let list = Value::List(List::any(vec![Value::int64(1), "x".into(), Value::Nil, 2.5.into()]));
    let values = Value::map([("b", list), ("n", Value::int(3)), ("d", Value::Bool(true))]);
    let text = "{{ .Values.n }}".into();
    let dot = Value::map([("Values", values), ("text", text)]);
    let _ = set.execute("t", &dot, &mut (), &mut Vec::new());
});
