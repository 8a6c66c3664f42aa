//! `get all --template`: a template of the user's over a release's record (`tpl` in
//! `cmd/helm/printer.go`), with Go's own functions alone.
//!
//! ```text
//! dot ── Release   *release.Release
//!     ├─ Info      *release.Info ── times, status, notes
//!     ├─ Chart     *chart.Chart ── Metadata, Lock, Templates, Values, Schema, Files
//!     ├─ Hooks     []*release.Hook ── LastRun
//!     └─ Config, Labels   plain maps
//! ```

use std::any::Any;
use std::rc::Rc;

use bstr::BString;
use gotemplate::value::{Kind, ListType, MAP_ANY, MapType};
use gotemplate::{CallError, FunctionMap, List, Map, Method, Object, Set, Str, Type, Value};

use super::convert::from_map;
use super::functions::TimeObject;
use super::objects::{dependencies, fields_of_metadata, string_map, text};
use super::time::{Time, Zone};
use crate::chart::{Chart, File, ValidationError};
use crate::gopath;
use crate::release::redact::Words;
use crate::release::storage::Labels;
use crate::release::{ChartError, FieldError, Hook, Record, Status, redact};

/// The name that Helm gives the template, which errors show.
const NAME: &str = "_";

/// Why a record was not printed.
#[derive(Debug, thiserror::Error)]
pub enum RecordTemplateError {
    /// A part of the record is not what it should be.
    #[error(transparent)]
    Record(#[from] ChartError),
    /// The template does not parse or fails.
    #[error("{message}")]
    Template {
        /// Go's text, which need not be UTF-8.
        message: BString,
    },
}

/// Runs a template over a record and appends what it writes to `out`, up to where it failed.
/// `labels` are those of the object that holds the record. Credentials in manifests, values,
/// notes and the description are hidden unless `show_secrets`; the chart's files are as they are. Times whose
/// offset is that of `local` are in it.
///
/// # Errors
/// When a part of the record is not what it should be, or with Go's error of the template.
pub fn template_of_record(
    template: &str,
    record: &Record,
    labels: &Labels,
    show_secrets: bool,
    local: &Zone,
    out: &mut Vec<u8>,
) -> Result<(), RecordTemplateError> {
    let words = (!show_secrets).then(|| Words::of_record(record));
    let release = Reader { record, show_secrets, words, local }.release(labels)?;
    let fail = |error: gotemplate::Error| RecordTemplateError::Template {
        message: error.text().to_vec().into(),
    };
    let mut set = Set::new(NAME, FunctionMap::default());
    set.parse(NAME, template.as_bytes()).map_err(fail)?;
    set.execute(NAME, &Value::map([("Release", release)]), &mut (), out).map_err(fail)
}

static HOOKS: ListType = pointers("[]*release.Hook", "*release.Hook");
static CHARTS: ListType = pointers("[]*chart.Chart", "*chart.Chart");
static CRDS: ListType =
    ListType { name: "[]chart.CRD", element: Type::Named("chart.CRD", Kind::Struct), methods: &[] };
static FILES: ListType = pointers("[]*chart.File", "*chart.File");
static EVENTS: ListType = texts("[]release.HookEvent", "release.HookEvent");
static DELETE_POLICIES: ListType = texts("[]release.HookDeletePolicy", "release.HookDeletePolicy");
static LOG_POLICIES: ListType =
    texts("[]release.HookOutputLogPolicy", "release.HookOutputLogPolicy");
static OBJECTS: ListType = ListType {
    name: "[]runtime.Object",
    element: Type::Named("runtime.Object", Kind::Interface),
    methods: &[],
};
static RESOURCES: MapType =
    MapType { name: "map[string][]runtime.Object", element: Type::List(&OBJECTS), methods: &[] };

const fn pointers(name: &'static str, element: &'static str) -> ListType {
    ListType { name, element: Type::Named(element, Kind::Ptr), methods: &[] }
}

const fn texts(name: &'static str, element: &'static str) -> ListType {
    ListType { name, element: Type::Named(element, Kind::String), methods: &[] }
}

/// What makes values of a record.
struct Reader<'a> {
    record: &'a Record,
    show_secrets: bool,
    /// What is hidden; nothing when secrets are shown.
    words: Option<Words>,
    local: &'a Zone,
}

impl Reader<'_> {
    fn release(&self, labels: &Labels) -> Result<Value, ChartError> {
        let record = self.record;
        let hooks: Vec<Value> = record.hooks()?.iter().map(|hook| self.hook(hook)).collect();
        let release = Struct::new(
            "*release.Release",
            Kind::Ptr,
            [
                ("Name", Value::from(record.name()?)),
                ("Info", self.info()?),
                ("Chart", self.chart(record.chart()?)),
                ("Config", self.map(record.user_values()?)),
                ("Manifest", self.manifest(&record.manifest()?)),
                ("Hooks", Value::List(List::new(&HOOKS, hooks))),
                ("Version", Value::int(record.revision()?)),
                ("Namespace", Value::from(record.namespace()?)),
                ("Labels", string_map(labels)),
            ],
        );
        Ok(Value::Object(Rc::new(Struct { methods: &RELEASE_METHODS, ..release })))
    }

    fn info(&self) -> Result<Value, FieldError> {
        let info = self.record.info()?;
        let description = if self.show_secrets {
            info.description
        } else {
            redact::description_of(self.record, &info.description)
        };
        let notes = match &self.words {
            Some(words) => words.notes(&info.notes),
            None => info.notes,
        };
        Ok(Struct::pointer(
            "*release.Info",
            [
                ("FirstDeployed", self.time(&info.first_deployed)),
                ("LastDeployed", self.time(&info.last_deployed)),
                ("Deleted", self.time(&info.deleted)),
                ("Description", Value::from(description)),
                ("Status", NamedText::value("release.Status", &info.status_text)),
                ("Notes", Value::from(notes)),
                ("Resources", Value::Map(Map::nil(&RESOURCES))),
            ],
        ))
    }

    fn chart(&self, chart: Chart) -> Value {
        let valid = validity(chart.metadata.clone().validate());
        let crds: Vec<File> = crds(&chart).cloned().collect();
        let path = chart.metadata.name.clone();
        let is_locked = chart.lock.is_some();
        let lock = chart.lock.unwrap_or_default();
        let lock = Struct {
            is_nil: !is_locked,
            ..Struct::new(
                "*chart.Lock",
                Kind::Ptr,
                [
                    ("Generated", self.time(&lock.generated)),
                    ("Digest", Value::from(lock.digest)),
                    (
                        "Dependencies",
                        dependencies(lock.dependencies.as_deref().unwrap_or_default()),
                    ),
                ],
            )
        };
        // No record holds what the chart's archive was.
        let metadata = Struct {
            methods: &METADATA_METHODS,
            answers: vec![("Validate", valid.clone())],
            ..Struct::new("*chart.Metadata", Kind::Ptr, fields_of_metadata(chart.metadata))
        };
        Value::Object(Rc::new(Struct {
            methods: &CHART_METHODS,
            // A record holds neither the chart that it is part of nor those that are part of it.
            answers: vec![
                ("CRDObjects", crd_objects(&path, &crds)),
                ("CRDs", files(&crds)),
                ("Dependencies", Value::List(List::new(&CHARTS, Vec::new()))),
                ("IsRoot", Value::Bool(true)),
                ("Parent", nil("*chart.Chart")),
                ("Validate", valid),
            ],
            ..Struct::new(
                "*chart.Chart",
                Kind::Ptr,
                [
                    ("Raw", files(&[])),
                    ("Metadata", Value::Object(Rc::new(metadata))),
                    ("Lock", Value::Object(Rc::new(lock))),
                    ("Templates", files(&chart.templates)),
                    ("Values", self.map(chart.values)),
                    ("Schema", Value::Bytes(chart.schema.unwrap_or_default().into())),
                    ("Files", files(&chart.files)),
                ],
            )
        }))
    }

    fn hook(&self, hook: &Hook) -> Value {
        let run = Struct::new(
            "release.HookExecution",
            Kind::Struct,
            [
                ("StartedAt", self.time(&hook.last_run.started_at)),
                ("CompletedAt", self.time(&hook.last_run.completed_at)),
                ("Phase", NamedText::value("release.HookPhase", &hook.last_run.phase)),
            ],
        );
        Struct::pointer(
            "*release.Hook",
            [
                ("Name", text(&hook.name)),
                ("Kind", text(&hook.kind)),
                ("Path", text(&hook.path)),
                ("Manifest", self.manifest(&hook.manifest)),
                ("Events", named_texts(&EVENTS, &hook.events)),
                ("LastRun", Value::Object(Rc::new(run))),
                ("Weight", Value::int(hook.weight)),
                ("DeletePolicies", named_texts(&DELETE_POLICIES, &hook.delete_policies)),
                ("OutputLogPolicies", named_texts(&LOG_POLICIES, &hook.output_log_policies)),
            ],
        )
    }

    fn map(&self, values: Option<goyaml::Map>) -> Value {
        let Some(mut values) = values else { return Value::Map(Map::nil(&MAP_ANY)) };
        if !self.show_secrets {
            redact::values(&mut values);
        }
        Value::Map(from_map(values))
    }

    fn manifest(&self, manifest: &str) -> Value {
        match &self.words {
            Some(words) => Value::from(words.manifest(manifest)),
            None => text(manifest),
        }
    }

    /// A time of Helm's, which has the name and the methods of Go's.
    fn time(&self, written: &str) -> Value {
        let time = Time::parse("2006-01-02T15:04:05Z07:00", written, self.local);
        let time = time.unwrap_or_else(|_| Time::zero());
        Value::Object(Rc::new(TimeObject::new(time, self.local.clone())))
    }
}

fn files(files: &[File]) -> Value {
    Value::List(List::new(&FILES, files.iter().map(file).collect::<Vec<_>>()))
}

fn file(file: &File) -> Value {
    Struct::pointer(
        "*chart.File",
        [("Name", text(&file.name)), ("Data", Value::Bytes(Str::from(file.data.clone())))],
    )
}

/// The chart's own resource definitions (`Chart.CRDs`).
fn crds(chart: &Chart) -> impl Iterator<Item = &File> {
    let is_manifest = |name: &str| {
        let (_, extension) = name.rsplit_once('.').unwrap_or_default();
        ["yaml", "yml", "json"].iter().any(|known| extension.eq_ignore_ascii_case(known))
    };
    chart.files.iter().filter(move |file| file.name.starts_with("crds/") && is_manifest(&file.name))
}

fn crd_objects(path: &str, crds: &[File]) -> Value {
    let crd = |crd: &File| {
        let fields = [
            ("Name", text(&crd.name)),
            ("Filename", Value::from(gopath::join(path, &crd.name))),
            ("File", file(crd)),
        ];
        Value::Object(Rc::new(Struct::new("chart.CRD", Kind::Struct, fields)))
    };
    Value::List(List::new(&CRDS, crds.iter().map(crd).collect::<Vec<_>>()))
}

/// What a method answers that returns an error alone.
pub(super) fn validity(result: Result<(), ValidationError>) -> Value {
    match result {
        Ok(()) => nil("error"),
        Err(error) => NamedText::value("chart.ValidationError", &error.to_string()),
    }
}

/// The nil of a pointer or an interface.
fn nil(name: &'static str) -> Value {
    Value::Object(Rc::new(Struct { is_nil: true, ..Struct::new(name, Kind::Ptr, []) }))
}

fn named_texts(ty: &'static ListType, texts: &[String]) -> Value {
    let texts = texts.iter().map(|text| NamedText::value(ty.element.name(), text));
    Value::List(List::new(ty, texts.collect::<Vec<_>>()))
}

/// A struct, or a pointer to one.
struct Struct {
    name: &'static str,
    kind: Kind,
    fields: Vec<(&'static str, Value)>,
    methods: &'static [Method],
    /// What those of the methods answer that take nothing and depend on more than the fields.
    answers: Vec<(&'static str, Value)>,
    /// Whether it is the nil pointer; the fields are then those that one would have.
    is_nil: bool,
}

impl Struct {
    fn new(
        name: &'static str,
        kind: Kind,
        fields: impl IntoIterator<Item = (&'static str, Value)>,
    ) -> Self {
        let (fields, answers) = (fields.into_iter().collect(), Vec::new());
        Self { name, kind, fields, methods: &[], answers, is_nil: false }
    }

    fn pointer(
        name: &'static str,
        fields: impl IntoIterator<Item = (&'static str, Value)>,
    ) -> Value {
        Value::Object(Rc::new(Self::new(name, Kind::Ptr, fields)))
    }
}

impl Object for Struct {
    fn type_name(&self) -> &str {
        self.name
    }

    fn kind(&self) -> Kind {
        self.kind
    }

    fn field(&self, name: &str) -> Option<Value> {
        let mut fields = self.fields.iter().filter(|_| !self.is_nil);
        fields.find(|(known, _)| *known == name).map(|(_, value)| value.clone())
    }

    fn fields(&self) -> Vec<(&'static str, Value)> {
        self.fields.clone()
    }

    fn methods(&self) -> &'static [Method] {
        self.methods
    }

    fn is_nil(&self) -> bool {
        self.is_nil
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// What templates may ask a record's chart, which has no parent.
static CHART_METHODS: [Method; 13] = [
    Method {
        variadic: true,
        params: &[Type::Any],
        ..method("AddDependency", |_, _| Err(CallError::without_result("AddDependency")))
    },
    method("AppVersion", |chart, _| metadata(chart, "AppVersion")),
    method("CRDObjects", |chart, _| answer(chart, "CRDObjects")),
    method("CRDs", |chart, _| answer(chart, "CRDs")),
    method("ChartFullPath", |chart, _| metadata(chart, "Name")),
    method("ChartPath", |chart, _| metadata(chart, "Name")),
    method("Dependencies", |chart, _| answer(chart, "Dependencies")),
    method("IsRoot", |chart, _| answer(chart, "IsRoot")),
    method("Name", |chart, _| metadata(chart, "Name")),
    method("Parent", |chart, _| answer(chart, "Parent")),
    method("Root", |chart, _| Ok(chart.clone())),
    Method {
        variadic: true,
        params: &[Type::Any],
        ..method("SetDependencies", |_, _| Err(CallError::without_result("SetDependencies")))
    },
    method("Validate", |chart, _| answer(chart, "Validate")),
];

static METADATA_METHODS: [Method; 1] =
    [method("Validate", |metadata, _| answer(metadata, "Validate"))];

static RELEASE_METHODS: [Method; 1] = [Method {
    // That it answers nothing is told before the arguments are looked at.
    params: &[Type::Any, Type::Any],
    ..method("SetStatus", |_, _| Err(CallError::without_result("SetStatus")))
}];

/// What a method of a struct answers.
fn answer(this: &Value, method: &str) -> Result<Value, CallError> {
    let this = match this {
        Value::Object(object) => object.as_any().downcast_ref::<Struct>(),
        _ => None,
    };
    let mut answers = this.into_iter().flat_map(|this| &this.answers);
    answers
        .find(|(known, _)| *known == method)
        .map(|(_, answer)| answer.clone())
        .ok_or_else(|| CallError::new("the receiver is of another type"))
}

const fn method(
    name: &'static str,
    call: fn(&Value, &[Value]) -> Result<Value, CallError>,
) -> Method {
    Method { name, params: &[], variadic: false, call }
}

fn metadata(chart: &Value, field: &str) -> Result<Value, CallError> {
    let of = |value: &Value, name| match value {
        Value::Object(object) => object.field(name),
        _ => None,
    };
    of(chart, "Metadata")
        .and_then(|metadata| of(&metadata, field))
        .ok_or_else(|| CallError::new("the receiver is no chart"))
}

/// A text of a named type that says itself as it is.
struct NamedText {
    name: &'static str,
    text: Str,
}

impl NamedText {
    fn value(name: &'static str, text: &str) -> Value {
        Value::Object(Rc::new(Self { name, text: text.into() }))
    }
}

static TEXT_METHODS: [Method; 1] = [method("String", |this, _| text_of(this).map(Value::String))];

static STATUS_METHODS: [Method; 2] = [
    method("IsPending", |this, _| {
        let status = text_of(this)?;
        Ok(Value::Bool(Status::from(&*status.to_text()).is_pending()))
    }),
    method("String", |this, _| text_of(this).map(Value::String)),
];

fn text_of(value: &Value) -> Result<Str, CallError> {
    match value {
        Value::Object(object) => object.string(),
        _ => None,
    }
    .ok_or_else(|| CallError::new("the receiver is no text"))
}

impl Object for NamedText {
    fn type_name(&self) -> &str {
        self.name
    }

    fn kind(&self) -> Kind {
        Kind::String
    }

    fn methods(&self) -> &'static [Method] {
        if self.name == "release.Status" { &STATUS_METHODS } else { &TEXT_METHODS }
    }

    fn string(&self) -> Option<Str> {
        Some(self.text.clone())
    }

    fn underlying(&self) -> Option<Value> {
        Some(Value::String(self.text.clone()))
    }

    fn is_true(&self) -> bool {
        !self.text.is_empty()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
