//! Many renders of one chart, as comparable objects.

use std::collections::{BTreeMap, HashMap};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use bstr::BString;
use goyaml::{Limits, Map};
use helm_rs::action::template::{Options, Rendering, template};
use helm_rs::chart::Chart;
use helm_rs::render::host::{Clock, Randomness, Reading};
use helm_rs::render::time::Zone;
use helm_rs::render::{Engine, Host};
use serde_json::Value;

use super::tree::{self, Path};
use crate::object::ObjectRef;

/// A rendered object.
#[derive(Debug)]
pub(super) struct Object {
    /// Its comparable part.
    pub(super) tree: Value,
    /// How much of it differs from the live one, and where; kept once it is known.
    pub(super) judged: OnceLock<(usize, Vec<Path>)>,
}

/// All rendered objects, hooks included.
pub(super) type Objects = BTreeMap<ObjectRef, Arc<Object>>;

type Kept = HashMap<BString, (ObjectRef, Arc<Object>)>;

/// Renders one chart again and again. Documents that come out as before are not read again.
pub(super) struct Renderer<'a> {
    engine: &'a Engine,
    chart: &'a Chart,
    options: Options,
    is_upgrade: bool,
    kept: Mutex<Arc<Kept>>,
    count: AtomicUsize,
}

impl<'a> Renderer<'a> {
    pub(super) fn new(
        engine: &'a Engine,
        chart: &'a Chart,
        options: &Options,
        is_upgrade: bool,
    ) -> Self {
        let (kept, count) = (Mutex::default(), AtomicUsize::new(0));
        Self { engine, chart, options: options.clone(), is_upgrade, kept, count }
    }

    /// How many renders there were.
    pub(super) fn count(&self) -> usize {
        self.count.load(Ordering::Relaxed)
    }

    /// The objects for some values; none when the chart does not render with them.
    pub(super) fn objects(&self, values: &Map) -> Option<Objects> {
        let rendering = self.render(values, false)?;
        let kept = Arc::clone(&self.kept.lock().unwrap_or_else(PoisonError::into_inner));
        let mut objects = Objects::new();
        for text in texts(&rendering) {
            match kept.get(text) {
                Some((about, object)) => {
                    objects.insert(about.clone(), Arc::clone(object));
                }
                None => objects.extend(self.read(text)),
            }
        }
        Some(objects)
    }

    /// As [`Self::objects`], but values that do not meet the schema give none, and the documents
    /// are kept as those to come back to.
    pub(super) fn settle(&self, values: &Map) -> Option<Objects> {
        let rendering = self.render(values, true)?;
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let mut next = Kept::new();
        for text in texts(&rendering) {
            let object = kept.get(text).cloned().or_else(|| self.read(text));
            next.extend(object.map(|object| (text.clone(), object)));
        }
        *kept = Arc::new(next);
        Some(kept.values().cloned().collect())
    }

    fn read(&self, text: &BString) -> Option<(ObjectRef, Arc<Object>)> {
        // Rendering trims; the newline may belong to a block scalar at the end.
        let text = [text.as_slice(), b"\n"].concat();
        let value = goyaml::from_yaml(&text, &Limits::default()).ok()?;
        let json = goyaml::json::to_json(&value).ok()?;
        let value: Value = serde_json::from_str(&json).ok()?;
        let about = tree::identity(&value)?;
        let tree = tree::comparable(value, self.is_upgrade);
        Some((about, Arc::new(Object { tree, judged: OnceLock::new() })))
    }

    fn render(&self, values: &Map, validate: bool) -> Option<Rendering> {
        self.count.fetch_add(1, Ordering::Relaxed);
        let clock = Clock::Fixed(Reading::at(0, 0));
        let mut host = Host::new(Randomness::Seed(0), clock, Zone::utc());
        host.stand_in_keys = true;
        let options = Options { skip_schema_validation: !validate, ..self.options.clone() };
        let mut chart = self.chart.clone();
        template(self.engine, &mut chart, values, &options, &mut host, &mut Vec::new()).ok()
    }
}

fn texts(rendering: &Rendering) -> impl Iterator<Item = &BString> {
    let manifests = rendering.manifests.iter().map(|manifest| &manifest.content);
    manifests.chain(rendering.hooks.iter().map(|hook| &hook.manifest))
}
