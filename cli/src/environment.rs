//! What the program reads from its surroundings, in one place.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::io::{self, IsTerminal, Read};
use std::path::PathBuf;
use std::sync::{Arc, OnceLock};
use std::time::SystemTime;

use helm_rs::gotext;
use helm_rs::render::time::Zone;

/// Environment variables, directories, clock and standard input, as the program sees them.
///
/// | Variable | Meaning |
/// |---|---|
/// | `ICHOR_CHART_DIR` | Folder with chart archives, looked in before the cache and the network. |
/// | `XDG_CACHE_HOME`, `HOME` | Where the user's cache is: `$XDG_CACHE_HOME/ichor`, else `$HOME/.cache/ichor`. |
/// | `HELM_CONFIG_HOME`, `HELM_CACHE_HOME`, `XDG_CONFIG_HOME` | Where Helm's own files are, as in Helm. |
/// | `HELM_REPOSITORY_CONFIG`, `HELM_REPOSITORY_CACHE`, `HELM_REGISTRY_CONFIG` | Single files of them. |
/// | `DOCKER_CONFIG` | Where Docker keeps credentials of registries. |
/// | `GNUPGHOME` | Where the keys are that charts are checked with. |
/// | `SOURCE_DATE_EPOCH` | When the files of a packed chart are said to be of. |
/// | `HELM_NAMESPACE` | Namespace when `--namespace` is not given. |
/// | `HELM_DEBUG` | `true` is `--debug`. |
/// | `KUBECONFIG`, `HELM_KUBECONTEXT` | Where the namespace comes from otherwise, as in Helm. |
/// | `OTEL_EXPORTER_OTLP_*`, `OTEL_SERVICE_NAME` | Where the controller's traces go. |
/// | `PATH` | Where post-renderers are looked for. |
/// | `NO_COLOR` | Set and not empty: no colour. |
/// | `COLUMNS` | How wide a plan may be; else 100 columns. |
/// | any | What `env` and `expandenv` in `--name-template` ask for. |
#[derive(Clone, Debug, Default)]
pub struct Environment {
    variables: BTreeMap<String, OsString>,
    now: Option<SystemTime>,
    input: Option<Vec<u8>>,
    terminal: bool,
    input_terminal: bool,
    output_terminal: bool,
    no_cluster: Arc<OnceLock<String>>,
}

impl Environment {
    /// Notes why no cluster is known, and nobody answers where it would be by default: what an
    /// error of the command comes of.
    #[cfg(feature = "network")]
    pub(crate) fn know_no_cluster(&self, why: String) {
        // The first one is as good as any other.
        drop(self.no_cluster.set(why));
    }

    /// Why no cluster is known, where one was looked for and did not answer.
    pub(crate) fn no_cluster(&self) -> Option<&str> {
        self.no_cluster.get().map(String::as_str)
    }

    /// The process's own.
    pub fn of_process() -> Self {
        let variables = std::env::vars_os()
            .filter_map(|(name, value)| Some((name.into_string().ok()?, value)))
            .collect();
        Self {
            variables,
            now: None,
            input: None,
            terminal: io::stderr().is_terminal(),
            input_terminal: io::stdin().is_terminal(),
            output_terminal: io::stdout().is_terminal(),
            no_cluster: Arc::default(),
        }
    }

    /// An environment of the given variables, with an empty standard input: for tests.
    pub fn sealed<'a>(variables: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let variables =
            variables.into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect();
        Self { variables, input: Some(Vec::new()), ..Self::default() }
    }

    /// Gives the environment a standard input.
    #[must_use]
    pub fn with_input(mut self, input: impl Into<Vec<u8>>) -> Self {
        self.input = Some(input.into());
        self
    }

    /// Says that all three streams are a terminal.
    #[must_use]
    pub const fn with_terminal(mut self) -> Self {
        (self.terminal, self.input_terminal, self.output_terminal) = (true, true, true);
        self
    }

    /// Stops the clock.
    #[must_use]
    pub fn with_now(mut self, now: SystemTime) -> Self {
        self.now = Some(now);
        self
    }

    /// A variable, when it is set and not empty.
    pub(crate) fn variable(&self, name: &str) -> Option<&OsString> {
        self.variables.get(name).filter(|value| !value.is_empty())
    }

    /// A variable by the bytes of its name.
    pub(crate) fn bytes(&self, name: &[u8]) -> Option<Vec<u8>> {
        let value = self.variable(std::str::from_utf8(name).ok()?)?;
        Some(value.as_encoded_bytes().to_vec())
    }

    /// A variable as text.
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.variable(name)?.to_str()
    }

    /// A variable as Go's `strconv.ParseBool` reads it.
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.text(name).and_then(gotext::parse_bool).unwrap_or(false)
    }

    /// The folder that the user put charts into.
    pub(crate) fn chart_directory(&self) -> Option<PathBuf> {
        self.variable("ICHOR_CHART_DIR").map(PathBuf::from)
    }

    /// The user's cache folder for this program; it need not exist.
    pub(crate) fn cache_directory(&self) -> Option<PathBuf> {
        let base = self
            .variable("XDG_CACHE_HOME")
            .map(PathBuf::from)
            .or_else(|| Some(PathBuf::from(self.variable("HOME")?).join(".cache")));
        base.map(|base| base.join("ichor"))
    }

    /// One of Helm's folders (`pkg/helmpath/lazypath.go`): Helm's variable, the desktop's, or a
    /// folder below the home.
    pub(crate) fn helm_folder(&self, own: &str, desktop: &str, below_home: &str) -> PathBuf {
        if let Some(own) = self.variable(own) {
            return PathBuf::from(own);
        }
        let home = || PathBuf::from(self.variable("HOME").cloned().unwrap_or_default());
        let base = self.variable(desktop).map(PathBuf::from);
        base.unwrap_or_else(|| home().join(below_home)).join("helm")
    }

    /// Docker's folder.
    pub(crate) fn docker_folder(&self) -> PathBuf {
        let home = || PathBuf::from(self.variable("HOME").cloned().unwrap_or_default());
        self.variable("DOCKER_CONFIG").map_or_else(|| home().join(".docker"), PathBuf::from)
    }

    /// The time of day.
    pub(crate) fn now(&self) -> SystemTime {
        self.now.unwrap_or_else(SystemTime::now)
    }

    /// The local time zone: `TZ` as a name, else the machine's, as in Go.
    pub(crate) fn zone(&self) -> Zone {
        let zone = match self.text("TZ") {
            Some(name) => Zone::named(name.trim_start_matches(':')).ok(),
            None => std::fs::read("/etc/localtime")
                .ok()
                .and_then(|bytes| Zone::from_tzif("Local", &bytes).ok()),
        };
        zone.unwrap_or_else(Zone::utc).as_local()
    }

    /// All of standard input, up to `limit` bytes.
    pub(crate) fn read_input(&self, limit: u64) -> io::Result<Vec<u8>> {
        if let Some(input) = &self.input {
            return Ok(input.clone());
        }
        let mut input = Vec::new();
        io::stdin().lock().take(limit).read_to_end(&mut input)?;
        Ok(input)
    }

    /// Standard input as a stream.
    pub(crate) fn input(&self) -> Box<dyn Read> {
        match &self.input {
            Some(input) => Box::new(io::Cursor::new(input.clone())),
            None => Box::new(io::stdin()),
        }
    }

    /// Whether standard output is a terminal.
    pub(crate) const fn output_is_terminal(&self) -> bool {
        self.output_terminal
    }

    /// Whether somebody sees a question and can answer it.
    pub(crate) const fn can_be_asked(&self) -> bool {
        self.terminal && self.input_terminal
    }

    /// Whether standard error is a terminal.
    pub(crate) const fn is_terminal(&self) -> bool {
        self.terminal
    }
}
