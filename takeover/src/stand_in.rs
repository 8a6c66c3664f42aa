//! What templates get to see of Secrets of which the digests alone are known, in a rehearsal: a
//! certificate authority made for it, and texts that mean nothing. Each rendering gets others, so
//! that what comes of them counts as generated, is kept as it is, and stays out of the digest.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bstr::ByteSlice;
use goyaml::{Map, Value};
use helm_rs::render::host::{Clock, Randomness, Reading};
use helm_rs::render::time::Zone;
use helm_rs::render::{Host, certificate_authority};

use crate::plan::{is_stand_in_entry, sha256};

/// Days that the authority is good for.
const DAYS: i64 = 3650;

/// What stands for credentials in one rendering.
pub(crate) struct StandIns {
    entropy: [u8; 32],
    now: i64,
    /// Certificate and key, in PEM.
    authority: Option<(String, String)>,
}

impl StandIns {
    pub(crate) const fn new(entropy: [u8; 32], now: i64) -> Self {
        Self { entropy, now, authority: None }
    }

    /// Fills in what an answer to `lookup` has digests of; the names of those Secrets.
    pub(crate) fn fill(&mut self, answer: &mut Map) -> Result<Vec<String>, String> {
        if let Some(items) = answer.get_mut("items").and_then(Value::as_seq_mut) {
            let mut names = Vec::new();
            for item in items.iter_mut().filter_map(Value::as_map_mut) {
                names.extend(self.fill(item)?);
            }
            return Ok(names);
        }
        let Some(data) = answer.get_mut("data").and_then(Value::as_map_mut) else {
            return Ok(Vec::new());
        };
        let mut filled = false;
        for (key, entry) in data.iter_mut() {
            let is_one = |text: &bstr::BStr| is_stand_in_entry(&text.to_str_lossy());
            if !entry.as_str().is_some_and(is_one) {
                continue;
            }
            let text = if key.ends_with(b".crt") {
                self.authority()?.0.clone()
            } else if key.ends_with(b".key") {
                self.authority()?.1.clone()
            } else {
                sha256(&[&self.entropy, key.as_slice()].concat())
            };
            *entry = Value::from(STANDARD.encode(text));
            filled = true;
        }
        let text = |field| {
            let metadata = answer.get("metadata").and_then(Value::as_map);
            let text = metadata.and_then(|metadata| metadata.get(field)?.as_str());
            text.map(ToString::to_string).unwrap_or_default()
        };
        let name = format!("{}/{}", text("namespace"), text("name"));
        Ok(filled.then_some(name).into_iter().collect())
    }

    fn authority(&mut self) -> Result<&(String, String), String> {
        if self.authority.is_none() {
            let clock = Clock::Fixed(Reading::at(self.now, 0));
            let mut host = Host::new(Randomness::Entropy(self.entropy), clock, Zone::utc());
            self.authority = Some(certificate_authority(&mut host, "ichor rehearsal", DAYS)?);
        }
        self.authority.as_ref().ok_or_else(String::new)
    }
}
