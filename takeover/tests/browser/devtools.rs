//! A headless Chromium, driven by its DevTools protocol over a pair of pipes: JSON messages that end
//! in a zero byte. (`--remote-debugging-pipe`, `content/browser/devtools/devtools_pipe_handler.cc`)

use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use serde_json::{Value, json};

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_mins(1);

/// The browser with one page.
pub(crate) struct Browser {
    child: Child,
    input: ChildStdin,
    messages: Receiver<Value>,
    /// Events that came while something else was waited for.
    events: Vec<Value>,
    session: Option<String>,
    last: u64,
    // Dropped after the browser.
    _profile: tempfile::TempDir,
}

impl Browser {
    /// Starts it.
    pub(crate) fn start(program: &Path) -> Self {
        let profile = tempfile::tempdir().unwrap();
        let mut child = Command::new("sh")
            // The browser reads from descriptor 3 and writes to 4.
            .args(["-c", "exec \"$0\" \"$@\" 3<&0 4>&1 </dev/null >/dev/null 2>&1"])
            .arg(program)
            .args(["--headless", "--remote-debugging-pipe", "--no-first-run", "--disable-gpu"])
            // Containers have neither user namespaces for root nor a large /dev/shm.
            .args(["--no-sandbox", "--disable-dev-shm-usage", "--disable-extensions"])
            .arg(format!("--user-data-dir={}", profile.path().display()))
            .arg("about:blank")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let (send, messages) = channel();
        std::thread::spawn(move || {
            for message in output.split(0) {
                let Ok(message) = message else { return };
                if send.send(serde_json::from_slice(&message).unwrap()).is_err() {
                    return;
                }
            }
        });
        let input = child.stdin.take().unwrap();
        let mut browser = Self {
            child,
            input,
            messages,
            events: Vec::new(),
            session: None,
            last: 0,
            _profile: profile,
        };
        let target = browser.call("Target.createTarget", &json!({"url": "about:blank"}));
        let attach = json!({"targetId": target["targetId"], "flatten": true});
        let attached = browser.call("Target.attachToTarget", &attach);
        browser.session = attached["sessionId"].as_str().map(str::to_owned);
        for domain in ["Page", "Runtime", "Log"] {
            browser.call(&format!("{domain}.enable"), &json!({}));
        }
        browser
    }

    fn receive(&mut self) -> Value {
        self.messages.recv_timeout(PATIENCE).expect("an answer of the browser")
    }

    /// Asks, and waits for the answer.
    pub(crate) fn call(&mut self, method: &str, parameters: &Value) -> Value {
        self.last += 1;
        let mut message = json!({"id": self.last, "method": method, "params": parameters});
        if let Some(session) = &self.session {
            message["sessionId"] = session.as_str().into();
        }
        let mut line = message.to_string().into_bytes();
        line.push(0);
        self.input.write_all(&line).unwrap();
        loop {
            let message = self.receive();
            if message["id"] == self.last {
                assert!(message.get("error").is_none(), "{method}: {}", message["error"]);
                return message["result"].clone();
            }
            self.events.push(message);
        }
    }

    /// Opens a page and waits until it is there.
    pub(crate) fn open(&mut self, page: &Path) {
        self.events.clear();
        self.call("Page.navigate", &json!({"url": format!("file://{}", page.display())}));
        while !self.events.iter().any(|event| event["method"] == "Page.loadEventFired") {
            let event = self.receive();
            self.events.push(event);
        }
    }

    /// What a program in the page comes to.
    pub(crate) fn evaluate(&mut self, program: &str) -> Value {
        let asked = json!({"expression": program, "returnByValue": true, "awaitPromise": true});
        let answer = self.call("Runtime.evaluate", &asked);
        assert!(answer.get("exceptionDetails").is_none(), "{}", answer["exceptionDetails"]);
        answer["result"]["value"].clone()
    }

    /// What the page's console, its scripts and its loading complained of since it was opened.
    pub(crate) fn complaints(&mut self) -> Vec<String> {
        // Whatever was under way is told before this is answered.
        self.evaluate("0");
        let kinds = ["Log.entryAdded", "Runtime.exceptionThrown", "Runtime.consoleAPICalled"];
        let of = |event: &&Value| event["method"].as_str().is_some_and(|m| kinds.contains(&m));
        self.events.iter().filter(of).map(|event| event["params"].to_string()).collect()
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        self.session = None;
        // It may be gone already.
        drop(self.input.write_all(b"{\"id\":0,\"method\":\"Browser.close\"}\0"));
        for _ in 0..50 {
            if matches!(self.child.try_wait(), Ok(Some(_)) | Err(_)) {
                return;
            }
            std::thread::sleep(Duration::from_millis(100));
        }
        drop(self.child.kill());
        drop(self.child.wait());
    }
}
