//! A server of one folder, over HTTP and over HTTPS.
//!
//! | path | what it does |
//! |---|---|
//! | `/auth/…` | wants user `user` and password `secret`, then serves `…` |
//! | `/moved/…` | leads to `/…` on the same server |
//! | `/away/…` | leads to `/…` on the same server by its other name: `localhost` for `127.0.0.1` |
//! | `/downgrade/…` | leads to `/…` over plain HTTP |
//! | `/loop/…` | leads to itself |
//! | `/said/…` | says that it is gone, in words of its own |
//! | else | the file |

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::thread;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

/// Who asked for what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asked {
    /// `http` or `https`.
    pub scheme: &'static str,
    /// The host that was asked for, without port.
    pub host: String,
    /// The path.
    pub path: String,
    /// Whether a password came along.
    pub with_password: bool,
}

/// A running server; it runs as long as the test program.
#[derive(Clone, Debug)]
pub struct Server {
    /// Port of plain HTTP.
    pub http: u16,
    /// Port of HTTPS.
    pub https: u16,
    root: Arc<Mutex<PathBuf>>,
    asked: Arc<Mutex<Vec<Asked>>>,
    authority: Arc<String>,
}

impl Server {
    /// Starts a server of a folder.
    ///
    /// # Panics
    /// When it cannot be started.
    pub fn start(root: &Path) -> Self {
        drop(rustls::crypto::ring::default_provider().install_default());
        let (config, authority) = certificates();
        let plain = TcpListener::bind("127.0.0.1:0").expect("a port");
        let safe = TcpListener::bind("127.0.0.1:0").expect("a port");
        let server = Self {
            http: plain.local_addr().expect("an address").port(),
            https: safe.local_addr().expect("an address").port(),
            root: Arc::new(Mutex::new(root.to_owned())),
            asked: Arc::default(),
            authority: Arc::new(authority),
        };
        let (one, two) = (server.clone(), server.clone());
        thread::spawn(move || {
            for stream in plain.incoming().flatten() {
                let server = one.clone();
                thread::spawn(move || server.answer("http", stream));
            }
        });
        let config = Arc::new(config);
        thread::spawn(move || {
            for stream in safe.incoming().flatten() {
                let (server, config) = (two.clone(), Arc::clone(&config));
                thread::spawn(move || {
                    if let Ok(session) = ServerConnection::new(config) {
                        server.answer("https", StreamOwned::new(session, stream));
                    }
                });
            }
        });
        server
    }

    /// Serves another folder from now on.
    ///
    /// # Panics
    /// When another test panicked.
    pub fn serve(&self, root: &Path) {
        root.clone_into(&mut self.root.lock().expect("a lock"));
    }

    /// The certificate of the authority, in PEM.
    pub fn authority(&self) -> &str {
        &self.authority
    }

    /// What was asked so far; it is forgotten then.
    ///
    /// # Panics
    /// When another test panicked.
    pub fn take_asked(&self) -> Vec<Asked> {
        std::mem::take(&mut *self.asked.lock().expect("a lock"))
    }

    fn answer(&self, scheme: &'static str, mut stream: impl Read + Write) {
        let mut head = Vec::new();
        let mut reader = BufReader::new(&mut stream);
        loop {
            let mut line = String::new();
            match reader.read_line(&mut line) {
                Ok(n) if n > 2 => head.push(line.trim_end().to_owned()),
                _ => break,
            }
        }
        let header = |name: &str| {
            head.iter().find_map(|line| {
                let (key, value) = line.split_once(':')?;
                key.eq_ignore_ascii_case(name).then(|| value.trim().to_owned())
            })
        };
        let path = head.first().and_then(|line| line.split(' ').nth(1)).unwrap_or("/").to_owned();
        let host = header("host").unwrap_or_default();
        let host = host.split(':').next().unwrap_or_default().to_owned();
        let authorization = header("authorization");
        self.asked.lock().expect("a lock").push(Asked {
            scheme,
            host: host.clone(),
            path: path.clone(),
            with_password: authorization.is_some(),
        });
        let (status, extra, body) = self.respond(scheme, &host, &path, authorization.as_deref());
        let text = format!(
            "HTTP/1.1 {status}\r\nContent-Length: {}\r\nConnection: close\r\n{extra}\r\n",
            body.len()
        );
        drop(stream.write_all(text.as_bytes()));
        drop(stream.write_all(&body));
        drop(stream.flush());
    }

    fn respond(
        &self,
        scheme: &str,
        host: &str,
        path: &str,
        authorization: Option<&str>,
    ) -> (&'static str, String, Vec<u8>) {
        let port = if scheme == "http" { self.http } else { self.https };
        let to = |place: String| ("302 Found", format!("Location: {place}\r\n"), Vec::new());
        if let Some(rest) = path.strip_prefix("/auth/") {
            let wanted = format!("Basic {}", STANDARD.encode("user:secret"));
            if authorization != Some(&wanted) {
                return ("401 Unauthorized", String::new(), b"who?".to_vec());
            }
            return self.respond(scheme, host, &format!("/{rest}"), None);
        }
        if let Some(rest) = path.strip_prefix("/moved/") {
            return to(format!("/{rest}"));
        }
        if let Some(rest) = path.strip_prefix("/away/") {
            let other = if host == "localhost" { "127.0.0.1" } else { "localhost" };
            return to(format!("{scheme}://{other}:{port}/{rest}"));
        }
        if let Some(rest) = path.strip_prefix("/downgrade/") {
            return to(format!("http://127.0.0.1:{}/{rest}", self.http));
        }
        if path.starts_with("/said/") {
            return ("404 Moved to charts.example.org", String::new(), b"gone".to_vec());
        }
        if path.starts_with("/loop/") {
            return to(path.to_owned());
        }
        let file = self.root.lock().expect("a lock").join(path.trim_start_matches('/'));
        match fs::read(file) {
            Ok(body) => ("200 OK", String::new(), body),
            Err(_) => ("404 Not Found", String::new(), b"no such file".to_vec()),
        }
    }
}

/// A listener that answers every request with the same bytes, and its port.
///
/// # Panics
/// When there is no port.
pub fn constant(answer: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let answer = Arc::new(answer);
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let answer = Arc::clone(&answer);
            thread::spawn(move || {
                let first = first_line(&mut stream);
                drop(stream.write_all(&answer(&first)));
            });
        }
    });
    port
}

/// Reads the head of a request; its first line is the answer.
fn first_line(stream: &mut TcpStream) -> String {
    let mut reader = BufReader::new(stream);
    let mut first = String::new();
    drop(reader.read_line(&mut first));
    let mut line = String::new();
    while reader.read_line(&mut line).is_ok_and(|n| n > 2) {
        line.clear();
    }
    first
}

fn certificates() -> (ServerConfig, String) {
    let ca_key = KeyPair::generate().expect("a key");
    let mut ca = CertificateParams::default();
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let authority = ca.self_signed(&ca_key).expect("a certificate").pem();
    let issuer = Issuer::new(ca, ca_key);
    let key = KeyPair::generate().expect("a key");
    let names = vec!["localhost".to_owned(), "127.0.0.1".to_owned()];
    let leaf = CertificateParams::new(names).expect("names");
    let leaf = leaf.signed_by(&key, &issuer).expect("a certificate");
    let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
    let config = ServerConfig::builder()
        .with_no_client_auth()
        .with_single_cert(vec![CertificateDer::from(leaf.der().to_vec())], key)
        .expect("a configuration");
    (config, authority)
}
