//! Random questions: objects of all kinds in the table, changed at random on every side.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use crate::peer::Request;

/// SplitMix64: one number in, a sequence out.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15))
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        (self.next() % limit.max(1) as u64) as usize
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.next() % 100 < percent
    }

    fn pick<'a, T>(&mut self, list: &'a [T]) -> &'a T {
        &list[self.below(list.len())]
    }
}

struct Field {
    name: String,
    holds: String,
    merge_key: String,
    merged: bool,
}

/// The types of the embedded table, read from its file.
pub struct Types {
    names: Vec<String>,
    structs: Vec<Vec<Field>>,
    kinds: Vec<(String, String, usize)>,
    by_name: BTreeMap<String, usize>,
}

/// Kinds that come up more often: where charts live.
const COMMON: [&str; 12] = [
    "apps/v1 Deployment",
    "apps/v1 DaemonSet",
    "apps/v1 StatefulSet",
    "batch/v1 CronJob",
    "v1 Service",
    "v1 Pod",
    "v1 ServiceAccount",
    "v1 ConfigMap",
    "apiextensions.k8s.io/v1 CustomResourceDefinition",
    "rbac.authorization.k8s.io/v1 ClusterRole",
    "admissionregistration.k8s.io/v1 ValidatingWebhookConfiguration",
    "autoscaling/v2 HorizontalPodAutoscaler",
];

impl Types {
    pub fn read(table: &str) -> Self {
        let mut types = Self {
            names: Vec::new(),
            structs: Vec::new(),
            kinds: Vec::new(),
            by_name: BTreeMap::new(),
        };
        for line in table.lines() {
            let words: Vec<&str> = line.split(' ').collect();
            match words[0] {
                "T" => {
                    types.names.push(words[1].to_owned());
                    types.structs.push(words[2..].iter().map(|word| field(word)).collect());
                }
                "K" => {
                    types.by_name.insert(format!("{} {}", words[1], words[2]), types.kinds.len());
                    types.kinds.push((
                        words[1].to_owned(),
                        words[2].to_owned(),
                        words[3].parse().unwrap(),
                    ));
                }
                _ => {}
            }
        }
        types
    }
}

fn field(word: &str) -> Field {
    let (name, rest) = word.split_once('=').unwrap();
    let (rest, merge_key) = rest.split_once('/').unwrap_or((rest, ""));
    let (holds, strategies) = rest.split_once(',').unwrap_or((rest, ""));
    Field {
        name: name.to_owned(),
        holds: holds.to_owned(),
        merge_key: merge_key.to_owned(),
        merged: strategies.contains("merge"),
    }
}

const WORDS: [&str; 12] =
    ["a", "b", "c", "d", "e", "http", "tmp", "x<y>&z", "grüße", "名前", "\u{2028}\t\"", "B"];

fn number(random: &mut Random) -> Value {
    match random.below(9) {
        0 => json!(9_007_199_254_740_993_i64),
        1 => json!(i64::MIN),
        2 => json!(1.5),
        3 => json!(1e21),
        4 => json!(0.000_000_123),
        5 => json!(18_446_744_073_709_551_615_u64),
        6 => json!(2.0),
        _ => json!(random.below(5)),
    }
}

fn word(random: &mut Random) -> Value {
    json!(random.pick(&WORDS))
}

/// Makes and changes values of one case.
struct Maker<'a> {
    types: &'a Types,
    random: &'a mut Random,
    /// How many values in a hundred are of any type, whatever the field's type is.
    wildness: u64,
}

impl Maker<'_> {
    fn value(&mut self, holds: &str, depth: usize) -> Value {
        if self.random.chance(self.wildness) {
            return self.wild();
        }
        match holds.as_bytes()[0] {
            b'*' => self.value(&holds[1..], depth),
            b'[' => self.list(&holds[1..], "", false, depth),
            b'{' => {
                let count = self.random.below(4);
                let inner = &holds[1..];
                let entry = |maker: &mut Self| {
                    let key = maker.random.pick(&WORDS).to_owned().to_owned();
                    (key, maker.value(inner, depth + 1))
                };
                Value::Object((0..count).map(|_| entry(self)).collect())
            }
            b'#' => {
                let number: usize = holds[1..].parse().unwrap();
                match self.special(&self.types.names[number]) {
                    Some(value) => value,
                    None => Value::Object(self.structure(number, depth + 1)),
                }
            }
            b'b' => json!(self.random.chance(50)),
            b's' => word(self.random),
            b'a' => self.wild(),
            b'd' => number(self.random),
            b'l' if self.random.chance(10) => json!(9_007_199_254_740_993_i64),
            _ if self.random.chance(100 - 10 * self.wildness) => json!(self.random.below(5)),
            _ => number(self.random),
        }
    }

    /// A value of a type that reads JSON in its own way.
    fn special(&mut self, name: &str) -> Option<Value> {
        if self.random.chance(self.wildness * 5) {
            return None;
        }
        let texts: &[&str] = match name {
            "Time!" => {
                &["2026-01-02T03:04:05Z", "2025-12-31T23:59:59+01:00", "2024-02-29T0:00:00.5Z"]
            }
            "MicroTime!" => &["2026-01-02T03:04:05.000001Z", "2026-01-02T03:04:05.999999-07:00"],
            "Quantity!" => &["100m", "1Gi", "0.5", "1e3", "Ki", "+1.5k", ".5", "007", "12E"],
            "IntOrString!" if self.random.chance(50) => return Some(json!(self.random.below(90))),
            "IntOrString!" => &["25%", "http", "80"],
            "JSON!" | "RawExtension!" | "FieldsV1!" => return Some(self.wild()),
            "JSONSchemaPropsOrBool!" if self.random.chance(70) => {
                return Some(json!(self.random.chance(50)));
            }
            "JSONSchemaPropsOrStringArray!" => return Some(json!(["a", "b"])),
            _ => return None,
        };
        let odd = ["", "x", "2026-13-01T00:00:00Z", "1Zi", "2026-01-02 03:04:05Z", "1e", "-"];
        if self.random.chance(self.wildness) {
            return Some(json!(self.random.pick(&odd)));
        }
        Some(json!(self.random.pick(texts)))
    }

    /// Anything at all, whatever the type says.
    fn wild(&mut self) -> Value {
        match self.random.below(8) {
            0 => Value::Null,
            1 => json!({}),
            2 => json!([]),
            3 => json!({"a": word(self.random), "b": null}),
            4 => json!([word(self.random), number(self.random)]),
            5 => json!(true),
            6 => number(self.random),
            _ => word(self.random),
        }
    }

    fn structure(&mut self, number: usize, depth: usize) -> Map<String, Value> {
        let fields = &self.types.structs[number];
        let mut made = Map::new();
        if fields.is_empty() || depth > 9 {
            return made;
        }
        // Wide objects keep about four fields, and fields with a strategy more often.
        let share = (400 / fields.len() as u64).clamp(8, 60);
        for field in fields {
            let below = field.holds.contains('#') || field.holds.starts_with(['[', '{']);
            let likely = if field.merged || (below && depth < 4) { share * 2 } else { share };
            if self.random.chance(likely) {
                made.insert(field.name.clone(), self.field(field, depth));
            }
        }
        made
    }

    fn field(&mut self, field: &Field, depth: usize) -> Value {
        match field.holds.strip_prefix('[') {
            Some(items) => self.list(items, &field.merge_key, field.merged, depth),
            None => self.value(&field.holds, depth),
        }
    }

    fn list(&mut self, items: &str, merge_key: &str, merged: bool, depth: usize) -> Value {
        let most = if self.random.chance(3) { 40 } else { 5 };
        let count = self.random.below(most);
        let mut list: Vec<Value> = Vec::new();
        for position in 0..count {
            let mut item = self.value(items, depth + 1);
            if merged && let Value::Object(object) = &mut item {
                if !self.random.chance(self.wildness) {
                    let key = self.key(merge_key, position, count);
                    object.insert(merge_key.to_owned(), key);
                }
            } else if merged && !self.random.chance(5) && item.is_string() {
                item = json!(format!("{}-{position}", WORDS[position % 5]));
            }
            list.push(item);
        }
        Value::Array(list)
    }

    /// A merge key: mostly different ones within a list.
    fn key(&mut self, merge_key: &str, position: usize, count: usize) -> Value {
        let distinct = !self.random.chance(10);
        let choice = if distinct { position } else { self.random.below(count.min(6)) };
        if merge_key.to_ascii_lowercase().ends_with("port") {
            return match self.random.below(40) + usize::from(self.wildness == 0) * 3 {
                0 => json!("80"),
                1 => json!(80.5),
                2 => Value::Null,
                _ => json!(choice * 17 % 101),
            };
        }
        match self.random.below(60) + usize::from(self.wildness == 0) * 2 {
            0 => json!(choice),
            1 => Value::Null,
            _ => json!(format!("{}{}", WORDS[(choice * 7) % 5], choice / 5)),
        }
    }

    /// A changed copy of a value of a type.
    fn change(&mut self, value: &Value, holds: &str, depth: usize) -> Value {
        if self.random.chance(self.wildness) {
            return self.wild();
        }
        let inner = holds.trim_start_matches('*');
        match (value, inner.as_bytes()[0]) {
            (Value::Object(object), b'#') => {
                let number: usize = inner[1..].parse().unwrap();
                Value::Object(self.change_object(object, number, depth))
            }
            (Value::Object(object), b'{') => {
                let mut changed = object.clone();
                if self.random.chance(20) {
                    let key = self.random.pick(&WORDS).to_owned().to_owned();
                    changed.insert(key, self.value(&inner[1..], depth + 1));
                }
                changed.retain(|_, _| !self.random.chance(10));
                for value in changed.values_mut() {
                    if self.random.chance(10) {
                        *value = self.value(&inner[1..], depth + 1);
                    }
                }
                Value::Object(changed)
            }
            (Value::Array(list), b'[') => self.change_list(list, &inner[1..], "", false, depth),
            _ if self.random.chance(15) => self.value(holds, depth),
            (value, _) => value.clone(),
        }
    }

    fn change_object(
        &mut self,
        object: &Map<String, Value>,
        number: usize,
        depth: usize,
    ) -> Map<String, Value> {
        let fields = &self.types.structs[number];
        let mut changed = Map::new();
        for (key, value) in object {
            if self.random.chance(5) {
                continue;
            }
            if self.random.chance(2) {
                changed.insert(key.clone(), Value::Null);
                continue;
            }
            let value = match fields.iter().find(|field| field.name == *key) {
                Some(field) => match (value, field.holds.strip_prefix('[')) {
                    (Value::Array(list), Some(items)) => {
                        self.change_list(list, items, &field.merge_key, field.merged, depth + 1)
                    }
                    _ => self.change(value, &field.holds, depth + 1),
                },
                None => value.clone(),
            };
            changed.insert(key.clone(), value);
        }
        if !fields.is_empty() && self.random.chance(20) {
            let field = self.random.below(fields.len());
            let field = &fields[field];
            let value = self.field(field, depth);
            changed.entry(field.name.clone()).or_insert(value);
        }
        if self.random.chance(self.wildness) {
            let value = self.wild();
            changed.insert("unknownField".to_owned(), value);
        }
        changed
    }

    fn change_list(
        &mut self,
        list: &[Value],
        items: &str,
        merge_key: &str,
        merged: bool,
        depth: usize,
    ) -> Value {
        let mut changed: Vec<Value> = Vec::new();
        for item in list {
            if self.random.chance(8) {
                continue;
            }
            let mut item = self.change(item, items, depth + 1);
            // The key usually survives a change of the rest.
            if let (Value::Object(old), Value::Object(new)) =
                (&list[changed.len().min(list.len() - 1)], &mut item)
                && merged
                && !new.contains_key(merge_key)
                && !self.random.chance(3)
                && let Some(key) = old.get(merge_key)
            {
                new.insert(merge_key.to_owned(), key.clone());
            }
            changed.push(item);
        }
        if self.random.chance(20) {
            let Value::Array(new) = self.list(items, merge_key, merged, depth) else {
                return Value::Array(changed);
            };
            let new = if self.random.chance(70) { new.into_iter().take(1).collect() } else { new };
            let at = self.random.below(changed.len() + 1);
            changed.splice(at..at, new);
        }
        if changed.len() > 1 && self.random.chance(15) {
            let (from, to) = (self.random.below(changed.len()), self.random.below(changed.len()));
            changed.swap(from, to);
        }
        if !changed.is_empty() && self.random.chance(4) {
            let again = self.random.pick(&changed).clone();
            changed.push(again);
        }
        if merged && self.random.chance(self.wildness) {
            changed.push(json!({merge_key: "a0", "$patch": "delete"}));
        }
        Value::Array(changed)
    }

    /// A patch with something odd done to it.
    fn disturb(&mut self, patch: &mut Value) {
        match patch {
            Value::Object(object) => {
                if self.random.chance(2) {
                    let directive = *self.random.pick(&["delete", "replace", "merge", "other"]);
                    object.insert("$patch".to_owned(), json!(directive));
                }
                let keys: Vec<String> = object.keys().cloned().collect();
                for key in keys {
                    if self.random.chance(2) {
                        object.remove(&key);
                    } else if self.random.chance(1) {
                        let value = self.wild();
                        object.insert(key, value);
                    } else if let Some(value) = object.get_mut(&key) {
                        self.disturb(value);
                    }
                }
            }
            Value::Array(list) => {
                if list.len() > 1 && self.random.chance(3) {
                    let last = list.len() - 1;
                    list.swap(0, last);
                }
                if !list.is_empty() && self.random.chance(2) {
                    list.pop();
                }
                for item in list {
                    self.disturb(item);
                }
            }
            _ => {}
        }
    }
}

/// The case of a number.
pub fn case(types: &Types, seed: u64, number: u64) -> Request {
    let mut random = Random::new(seed.wrapping_mul(1_000_003).wrapping_add(number));
    let kind = if random.chance(60) {
        types.by_name[*random.pick(&COMMON)]
    } else {
        random.below(types.kinds.len())
    };
    let (api_version, kind, number) = &types.kinds[kind];
    let wildness = u64::from(!random.chance(60));
    let mut maker = Maker { types, random: &mut random, wildness };
    let holds = format!("#{number}");
    let mut base = Value::Object(maker.structure(*number, 0));
    base["apiVersion"] = json!(api_version);
    base["kind"] = json!(kind);
    let original =
        if maker.random.chance(30) { maker.change(&base, &holds, 0) } else { base.clone() };
    let mut modified = maker.change(&base, &holds, 0);
    if maker.random.chance(30) {
        modified = maker.change(&modified, &holds, 0);
    }
    let mut current = maker.change(&original, &holds, 0);
    if maker.random.chance(50) {
        current = maker.change(&current, &holds, 0);
    }
    for document in [&mut modified, &mut current] {
        if !document.is_object() {
            *document = base.clone();
        }
        document["apiVersion"] = json!(api_version);
        document["kind"] = json!(kind);
    }
    let operations = [
        "three-way",
        "three-way",
        "three-way",
        "three-way",
        "helm",
        "two-way",
        "apply",
        "apply",
        "merge-three-way",
        "merge-two-way",
    ];
    let op = *maker.random.pick(&operations);
    let mut request = Request {
        op: op.to_owned(),
        api_version: api_version.clone(),
        kind: kind.clone(),
        original: original.to_string(),
        modified: modified.to_string(),
        current: current.to_string(),
        three_way: maker.random.chance(50),
        ..Request::default()
    };
    if op == "apply" {
        "three-way".clone_into(&mut request.op);
        let made = crate::peer::answer(&request).patch;
        let mut patch: Value = serde_json::from_str(&made).unwrap_or_else(|_| modified.clone());
        if maker.random.chance(80) {
            maker.disturb(&mut patch);
        }
        "apply".clone_into(&mut request.op);
        request.patch = patch.to_string();
    }
    request
}
