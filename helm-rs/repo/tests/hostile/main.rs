//! Servers that lie, lead astray or ask for passwords: nothing is believed, nobody is told.
#![allow(
    clippy::expect_used,
    clippy::unwrap_used,
    clippy::unwrap_in_result,
    clippy::format_collect,
    clippy::panic,
    reason = "test code"
)]

mod archives;

use std::cell::{Cell, RefCell};
use std::path::Path;
use std::time::Duration;

use helm_repo::credentials::Login;
use helm_repo::download::{Access, download_index};
use helm_repo::fetch::{Credentials, FetchError, Get, Request, Response, Tls, Transport, get};
use helm_repo::index::Index;
use helm_repo::package;
use helm_repo::reference::Reference;
use helm_repo::registry::Client;
use helm_repo::{Settings, digest};
use helm_rs::chart::{Chart, Metadata};
use helm_rs::error_chain;

const CONFIG: &str = "application/vnd.cncf.helm.config.v1+json";
const CHART: &str = "application/vnd.cncf.helm.chart.content.v1.tar+gzip";

/// Answers by a function, and remembers who asked with which password.
struct Fake<F> {
    answer: F,
    asked: RefCell<Vec<(String, Option<String>)>>,
    /// How long each request takes.
    pace: Duration,
    elapsed: Cell<Duration>,
}

impl<F: Fn(&Request) -> Response> Fake<F> {
    fn new(answer: F) -> Self {
        let (pace, elapsed) = (Duration::ZERO, Cell::default());
        Self { answer, asked: RefCell::default(), pace, elapsed }
    }

    /// The hosts that saw a password.
    fn told(&self) -> Vec<String> {
        let asked = self.asked.borrow();
        let told = asked.iter().filter(|(_, header)| header.is_some());
        told.map(|(url, _)| url.split('/').take(3).collect::<Vec<_>>().join("/")).collect()
    }
}

impl<F: Fn(&Request) -> Response> Transport for Fake<F> {
    fn send(&self, _: &Tls, request: &Request) -> Result<Response, FetchError> {
        let header = request.headers.iter().find(|(name, _)| *name == "authorization");
        let header = header.map(|(_, value)| value.clone());
        self.asked.borrow_mut().push((request.url.clone(), header));
        let (pace, limit) = (self.pace.min(request.timeout), request.timeout);
        self.elapsed.set(self.elapsed.get() + pace);
        if pace < self.pace {
            let (operation, url) = ("Get".to_owned(), request.url.clone());
            return Err(FetchError::TooLong { operation, url, limit });
        }
        let response = (self.answer)(request);
        if response.body.len() as u64 > request.limit {
            return Err(FetchError::TooLarge { url: request.url.clone(), limit: request.limit });
        }
        Ok(response)
    }

    fn elapsed(&self) -> Duration {
        self.elapsed.get()
    }
}

fn ok(body: impl Into<Vec<u8>>) -> Response {
    Response { status: 200, body: body.into(), ..Response::default() }
}

fn with(status: u16, name: &str, value: &str) -> Response {
    let headers = vec![(name.to_owned(), value.to_owned())];
    Response { status, headers, ..Response::default() }
}

fn settings() -> Settings {
    let none = Path::new("/nonexistent");
    Settings {
        repository_config: none.join("repositories.yaml"),
        repository_cache: none.join("cache"),
        registry_config: none.join("config.json"),
        docker_config: none.join("docker.json"),
        user_agent: "test".to_owned(),
    }
}

fn fetch(transport: &dyn Transport, url: &str, everywhere: bool) -> Result<Vec<u8>, FetchError> {
    let credentials = Credentials {
        username: "user".to_owned(),
        password: "secret".to_owned(),
        everywhere,
        repository: "https://charts.example.org/stable".to_owned(),
    };
    get(
        transport,
        &Get {
            url,
            accept: "",
            credentials: &credentials,
            tls: &Tls::default(),
            limit: 1000,
            user_agent: "test",
            timeout: Duration::from_secs(1),
        },
    )
}

#[test]
fn a_password_stays_with_its_server() {
    for (place, told) in [
        ("https://charts.example.org/a.tgz", 2),
        ("https://charts.example.org:8443/a.tgz", 1),
        ("https://sub.charts.example.org/a.tgz", 1),
        ("https://evil.example/a.tgz", 1),
        ("https://user@evil.example@charts.example.org.evil/a.tgz", 1),
    ] {
        let fake = Fake::new(|request: &Request| {
            if request.url.ends_with("/index.yaml") {
                with(302, "location", place)
            } else {
                ok("x")
            }
        });
        drop(fetch(&fake, "https://charts.example.org/stable/index.yaml", false));
        let seen = fake.told().iter().filter(|host| *host == "https://charts.example.org").count();
        assert_eq!(seen, told, "{place}: {:?}", fake.asked.borrow());
        let others = fake.asked.borrow();
        let leaked = others.iter().any(|(url, header)| {
            header.as_ref().is_some_and(|header| header.contains("dXNlcjpzZWNyZXQ="))
                && !url.starts_with("https://charts.example.org/")
        });
        assert!(!leaked, "{place}: {others:?}");
    }
    // Nor does an index that names another server get it told, unless the user said so.
    let fake = Fake::new(|_: &Request| ok("x"));
    fetch(&fake, "https://elsewhere.example/a.tgz", false).unwrap();
    assert!(fake.told().is_empty());
    fetch(&fake, "https://elsewhere.example/a.tgz", true).unwrap();
    assert_eq!(fake.told(), ["https://elsewhere.example"]);
}

#[test]
fn nobody_is_led_to_plain_http() {
    for place in ["http://charts.example.org/a", "http://evil.example/a", "ftp://evil.example/a"] {
        let fake = Fake::new(|_: &Request| with(301, "location", place));
        let error = fetch(&fake, "https://charts.example.org/a", false).unwrap_err();
        assert!(matches!(error, FetchError::Downgrade { .. }), "{error}");
        assert_eq!(fake.asked.borrow().len(), 1);
    }
}

#[test]
fn redirects_and_answers_end() {
    let fake = Fake::new(|_: &Request| with(302, "location", "/a"));
    let error = fetch(&fake, "https://charts.example.org/a", false).unwrap_err();
    assert!(matches!(error, FetchError::Redirects { .. }), "{error}");
    let fake = Fake::new(|_: &Request| ok(vec![b'x'; 1001]));
    let error = fetch(&fake, "https://charts.example.org/a", false).unwrap_err();
    assert!(matches!(error, FetchError::TooLarge { .. }), "{error}");
}

#[test]
fn errors_hide_passwords() {
    let fake = Fake::new(|_: &Request| Response { status: 404, ..Response::default() });
    let error = fetch(&fake, "https://me:hunter2@charts.example.org/a", false).unwrap_err();
    let text = error_chain(&error);
    assert!(!text.contains("hunter2") && text.contains("me:xxxxx@"), "{text}");
}

#[test]
fn indexes_are_bounded() {
    let deep = format!("apiVersion: v1\nannotations: {}1{}", "[".repeat(5000), "]".repeat(5000));
    assert!(Index::parse(deep.as_bytes(), "test", &mut Vec::new()).is_err());
    let bomb = "a: &a [x,x,x,x,x,x,x,x,x]\n".to_owned()
        + &(0..9)
            .map(|n| {
                let (new, old) = (char::from(b'b' + n), char::from(b'a' + n));
                format!("{new}: &{new} [{}]\n", vec![format!("*{old}"); 9].join(","))
            })
            .collect::<String>();
    assert!(Index::parse(bomb.as_bytes(), "test", &mut Vec::new()).is_err());
    let mut warnings = Vec::new();
    let index = "apiVersion: v1\nentries:\n  a:\n  - {name: ../a, version: 1.0.0}\n  - {name: a, version: ../1}\n  - null\n";
    let index = Index::parse(index.as_bytes(), "test", &mut warnings).unwrap();
    assert!(index.get("a", "").is_err());
    assert_eq!(warnings.len(), 3);
    let fake = Fake::new(|_: &Request| ok("apiVersion: v1\nentries: {}\n"));
    let access = Access::default();
    for address in ["file:///etc", "/etc", "http://[::1", "gopher://x"] {
        let result = download_index(
            &fake,
            &settings(),
            address,
            &access,
            Duration::from_secs(1),
            &mut Vec::new(),
        );
        assert!(result.is_err(), "{address}");
    }
    assert!(fake.asked.borrow().is_empty());
}

fn chart(name: &str) -> Chart {
    Chart::new(Metadata {
        name: name.to_owned(),
        version: "1.0.0".to_owned(),
        api_version: "v2".to_owned(),
        ..Metadata::default()
    })
}

fn manifest(config: &[u8], layers: &[(&str, &[u8])]) -> String {
    let part = |kind: &str, bytes: &[u8]| {
        let (digest, size) = (digest(bytes), bytes.len());
        format!(r#"{{"mediaType":"{kind}","digest":"sha256:{digest}","size":{size}}}"#)
    };
    let layers: Vec<String> = layers.iter().map(|(kind, bytes)| part(kind, bytes)).collect();
    format!(
        r#"{{"schemaVersion":2,"config":{},"layers":[{}]}}"#,
        part(CONFIG, config),
        layers.join(",")
    )
}

fn pull(answer: impl Fn(&Request) -> Response) -> Result<Vec<u8>, String> {
    let fake = Fake::new(answer);
    let settings = settings();
    let client = Client::new(&fake, &settings, Tls::default(), false, None);
    let reference = Reference::parse("registry.example/charts/a:1.0.0").unwrap();
    let pulled = client.pull(&reference, true, false, 1_000_000);
    pulled.map(|pulled| pulled.chart).map_err(|error| error_chain(&error))
}

#[test]
fn manifests_that_lie_are_refused() {
    let archive = package::pack(&chart("a"), 0).unwrap();
    let good = manifest(b"{}", &[(CHART, &archive)]);
    let serve = |manifest: String, config: Vec<u8>, layer: Vec<u8>| {
        let config_digest = digest(b"{}");
        move |request: &Request| {
            if request.url.contains("/manifests/") {
                ok(manifest.clone())
            } else if request.url.contains(&config_digest) {
                ok(config.clone())
            } else {
                ok(layer.clone())
            }
        }
    };
    let fine = pull(serve(good.clone(), b"{}".to_vec(), archive.clone()));
    assert_eq!(fine.as_deref(), Ok(archive.as_slice()));
    let mut other = archive.clone();
    *other.last_mut().unwrap() ^= 1;
    for (what, result) in [
        ("another layer", pull(serve(good.clone(), b"{}".to_vec(), other))),
        ("a shorter layer", pull(serve(good.clone(), b"{}".to_vec(), archive[..9].to_vec()))),
        ("another config", pull(serve(good.clone(), b"[]".to_vec(), archive.clone()))),
        ("no manifest", pull(serve("[]".to_owned(), b"{}".to_vec(), archive.clone()))),
        ("no layer", pull(serve(manifest(b"{}", &[]), b"{}".to_vec(), archive.clone()))),
        (
            "a size that is none",
            pull(serve(
                good.replace("\"size\":2}", "\"size\":-2}"),
                b"{}".to_vec(),
                archive.clone(),
            )),
        ),
        (
            "a size beyond all limits",
            pull(serve(
                good.replace(&format!("\"size\":{}}}", archive.len()), "\"size\":99999999999}"),
                b"{}".to_vec(),
                archive.clone(),
            )),
        ),
        (
            "a digest with a path in it",
            pull(serve(
                good.replace(&digest(&archive), "../../../../v2/other/blobs/x"),
                b"{}".to_vec(),
                archive.clone(),
            )),
        ),
        ("a huge manifest", pull(serve(" ".repeat(5_000_000), b"{}".to_vec(), archive.clone()))),
        (
            "another digest in the answer's head",
            pull({
                let good = good.clone();
                move |_: &Request| Response {
                    body: good.clone().into_bytes(),
                    ..with(200, "docker-content-digest", &format!("sha256:{}", "0".repeat(64)))
                }
            }),
        ),
    ] {
        assert!(result.is_err(), "{what}");
    }
}

#[test]
fn registries_get_passwords_to_themselves_only() {
    let login = || Some(Login { username: "user".to_owned(), password: "secret".to_owned() });
    let settings = settings();
    let reference = Reference::parse("registry.example/charts/a:1.0.0").unwrap();
    let archive = package::pack(&chart("a"), 0).unwrap();
    let basic = || with(401, "www-authenticate", "Basic realm=\"x\"");

    // A token server that is not spoken to safely.
    let realm = "Bearer realm=\"http://token.example/token\",service=\"x\",scope=\"y\"";
    let fake = Fake::new(|_: &Request| with(401, "www-authenticate", realm));
    let client = Client::new(&fake, &settings, Tls::default(), false, login());
    assert!(client.pull(&reference, true, false, 1000).is_err());
    assert!(fake.told().is_empty());

    // A redirect to another server, which asks for a password.
    let fake = Fake::new(|request: &Request| {
        let at_home = request.url.starts_with("https://registry.example/");
        if at_home { with(307, "location", "https://evil.example/x") } else { basic() }
    });
    let client = Client::new(&fake, &settings, Tls::default(), false, login());
    assert!(client.pull(&reference, true, false, 1000).is_err());
    assert!(fake.told().is_empty());

    // A login that was given for a repository whose index leads to a registry.
    let fake = Fake::new(|_: &Request| basic());
    let mut client = Client::new(&fake, &settings, Tls::default(), false, login());
    client.forget_login();
    assert!(client.pull(&reference, true, false, 1000).is_err());
    assert!(fake.told().is_empty());

    // An upload that is to go elsewhere, or over plain HTTP.
    for place in ["https://evil.example/upload", "http://registry.example/upload"] {
        let fake = Fake::new(|request: &Request| {
            let known = request.headers.iter().any(|(name, _)| *name == "authorization");
            match request.method {
                _ if !known => basic(),
                "HEAD" => Response { status: 404, ..Response::default() },
                _ => with(202, "location", place),
            }
        });
        let client = Client::new(&fake, &settings, Tls::default(), false, login());
        let error = client.push(&archive, None, "oci://registry.example/charts", "x").unwrap_err();
        assert!(error_chain(&error).contains("blob upload Location"), "{error}");
        assert!(fake.told().iter().all(|host| host == "https://registry.example"));
    }
}

fn client<'a>(transport: &'a dyn Transport, settings: &'a Settings) -> Client<'a> {
    Client::new(transport, settings, Tls::default(), false, None)
}

#[test]
fn pages_of_tags_end() {
    let page = |_: &Request| Response {
        body: br#"{"tags":["1.0.0"]}"#.to_vec(),
        ..with(200, "link", "</v2/charts/a/tags/list?last=1.0.0>; rel=\"next\"")
    };
    let (fake, settings) = (Fake::new(page), settings());
    let error = client(&fake, &settings).resolve("oci://registry.example/charts/a", "^1");
    let text = error_chain(&error.unwrap_err());
    assert!(text.contains("more than the limit of 1000 pages of tags"), "{text}");
    assert_eq!(fake.asked.borrow().len(), 1000);
    // As many as there may be are read.
    let count = Cell::new(0);
    let last = Fake::new(|request: &Request| {
        count.set(count.get() + 1);
        if count.get() < 1000 { page(request) } else { ok(r#"{"tags":["1.5.0"]}"#) }
    });
    let found = client(&last, &settings).resolve("oci://registry.example/charts/a", "^1").unwrap();
    assert_eq!(found.tag, "1.5.0");
}

#[test]
fn a_registry_has_so_much_time_for_a_task() {
    let page = |_: &Request| Response {
        body: br#"{"tags":["1.0.0"]}"#.to_vec(),
        ..with(200, "link", "</v2/charts/a/tags/list?last=1.0.0>; rel=\"next\"")
    };
    let settings = settings();
    // Each answer comes in time, and all of them do not.
    let fake = Fake { pace: Duration::from_secs(40), ..Fake::new(page) };
    let client = client(&fake, &settings);
    let text = error_chain(&client.resolve("oci://registry.example/charts/a", "^1").unwrap_err());
    assert!(text.contains("not done within the limit of 300 s"), "{text}");
    assert_eq!(fake.elapsed.get(), Duration::from_mins(5));
    // The next task has its time anew.
    let text = error_chain(&client.resolve("oci://registry.example/charts/a", "^1").unwrap_err());
    assert!(text.contains("within the limit of"), "{text}");
    assert_eq!(fake.elapsed.get(), Duration::from_mins(10));
    let even = Fake { pace: Duration::from_secs(30), ..Fake::new(page) };
    let error = self::client(&even, &settings).resolve("oci://registry.example/charts/a", "^1");
    let text = error_chain(&error.unwrap_err());
    assert!(text.contains("not done within the limit of 300 s"), "{text}");
    // One answer alone, and the token server's.
    let slow = Fake { pace: Duration::from_mins(3), ..Fake::new(page) };
    let error = self::client(&slow, &settings).resolve("oci://registry.example/charts/a", "^1");
    let text = error_chain(&error.unwrap_err());
    assert!(text.contains("within the limit of 120 s"), "{text}");
}

/// A large part has more time: what a slow line takes.
#[test]
fn a_large_archive_has_more_time() {
    let size = 64 * 1024 * 1024;
    let archive = vec![b'x'; size];
    let manifest = manifest(b"{}", &[(CHART, &archive)]);
    let fake = Fake {
        pace: Duration::from_secs(100),
        ..Fake::new(move |request: &Request| match &request.url {
            url if url.contains("/manifests/") => ok(manifest.clone()),
            url if url.ends_with(&digest(b"{}")) => ok("{}"),
            _ => {
                assert!(request.timeout > Duration::from_secs(2048), "{:?}", request.timeout);
                ok(archive.clone())
            }
        })
    };
    let settings = settings();
    let reference = Reference::parse("registry.example/charts/a:1.0.0").unwrap();
    let pulled = client(&fake, &settings).pull(&reference, true, false, 1 << 30).unwrap();
    assert_eq!(pulled.chart.len(), size);
}

/// Servers that keep a connection open, over a real one.
#[cfg(feature = "network")]
mod over_the_wire {
    use std::io::{Read as _, Write as _};
    use std::net::TcpListener;
    use std::time::Instant;

    use helm_repo::fetch::{Http, PLAIN_HTTP};

    use super::*;

    /// A server that answers every request with these bytes, and then a byte now and then.
    fn dribbling(head: &'static str) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                std::thread::spawn(move || {
                    let mut request = [0; 4096];
                    drop(stream.read(&mut request));
                    let mut wrote = stream.write_all(head.as_bytes());
                    while wrote.is_ok() {
                        std::thread::sleep(Duration::from_millis(50));
                        wrote = stream.write_all(b"x");
                    }
                });
            }
        });
        address.to_string()
    }

    #[test]
    fn an_answer_that_dribbles_is_not_waited_for() {
        for head in [
            "HTTP/1.1 200 OK\r\n",
            "HTTP/1.1 200 OK\r\ncontent-length: 100000\r\n\r\n",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nfffff\r\n",
        ] {
            let address = dribbling(head);
            let mut request = Request::new("GET", format!("http://{address}/v2/"), 1 << 20);
            request.timeout = Duration::from_secs(1);
            let began = Instant::now();
            let error = Http::default().send(&Tls::default(), &request).unwrap_err();
            let text = error_chain(&error);
            assert!(text.contains("no whole answer within the limit of 1 s"), "{head:?}: {text}");
            assert!(began.elapsed() < Duration::from_secs(30), "{head:?}");
        }
    }

    #[test]
    fn plain_http_is_named() {
        let address = dribbling("HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n");
        let mut request = Request::new("GET", format!("https://{address}/v2/"), 1 << 20);
        request.timeout = Duration::from_secs(20);
        let error = Http::default().send(&Tls::default(), &request).unwrap_err();
        assert!(error_chain(&error).ends_with(PLAIN_HTTP), "{error}");
    }

    #[test]
    fn a_servers_own_words_are_told_without_what_a_terminal_acts_on() {
        let address = dribbling("HTTP/1.1 404 Gone \t elsewhere\r\ncontent-length: 0\r\n\r\n");
        let error = fetch(&Http::default(), &format!("http://{address}/a"), false).unwrap_err();
        let text = error_chain(&error);
        assert!(text.ends_with(" : 404 Gone  elsewhere"), "{text:?}");
    }
}
