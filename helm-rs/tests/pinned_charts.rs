//! Pinned charts from every place, with a web server of this test's own for the download.
#![allow(clippy::expect_used, clippy::panic, reason = "a test: a panic is how it fails")]
#![cfg(feature = "network")]

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::thread;

use helm_rs::error_chain;
use helm_rs::repo::{
    Digest, Fetch, FetchError, HttpFetch, Pin, Pins, Place, Places, ResolveError, resolve,
};

const LIMIT: u64 = 1000;

/// Answers requests with one status and body each, and gives its address.
fn serve(answers: Vec<(u16, Vec<u8>)>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address");
    thread::spawn(move || {
        for (status, body) in answers {
            let (mut stream, _) = listener.accept().expect("a request");
            let mut request = [0; 4096];
            let read = stream.read(&mut request).expect("its bytes");
            assert!(request[..read].starts_with(b"GET /thing-1.2.3.tgz HTTP/1.1\r\n"));
            write!(stream, "HTTP/1.1 {status} X\r\nContent-Length: {}\r\n\r\n", body.len())
                .and_then(|()| stream.write_all(&body))
                .ok();
        }
    });
    format!("http://{address}/thing-1.2.3.tgz")
}

fn pin(url: &str, content: &[u8]) -> Pin {
    Pin {
        name: "thing".to_owned(),
        version: "1.2.3".to_owned(),
        url: url.to_owned(),
        digest: Digest::of(content),
    }
}

fn places(folder: &Path) -> Places {
    Places {
        directory: Some(folder.join("charts")),
        cache: Some(folder.join("cache/deep")),
        limit: LIMIT,
    }
}

fn http() -> HttpFetch {
    HttpFetch::new("test").expect("a client")
}

/// No network at all: whoever asks it fails the test.
struct Offline;

impl Fetch for Offline {
    fn fetch(&self, url: &str, _: u64) -> Result<Vec<u8>, FetchError> {
        panic!("asked for {url}");
    }
}

fn files_below(folder: &Path) -> usize {
    let Ok(entries) = fs::read_dir(folder) else { return 0 };
    entries
        .flatten()
        .map(|entry| if entry.path().is_dir() { files_below(&entry.path()) } else { 1 })
        .sum()
}

#[test]
fn downloads_once_and_then_uses_the_cache() {
    let folder = tempfile::tempdir().expect("a folder");
    let pin = pin(&serve(vec![(200, b"chart".to_vec())]), b"chart");
    let first = resolve(&pin, &places(folder.path()), &http()).expect("a download");
    assert_eq!((first.place, first.bytes.as_slice()), (Place::Download, &b"chart"[..]));
    let second = resolve(&pin, &places(folder.path()), &Offline).expect("the cache");
    assert_eq!((second.place, second.bytes.as_slice()), (Place::Cache, &b"chart"[..]));
    assert_eq!(second.path.as_deref(), Some(&*folder.path().join("cache/deep/thing-1.2.3.tgz")));
    assert_eq!(files_below(folder.path()), 1, "nothing temporary is left");
}

#[test]
fn a_wrong_download_leaves_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let pin = pin(&serve(vec![(200, b"other".to_vec())]), b"chart");
    let error = resolve(&pin, &places(folder.path()), &http()).expect_err("a mismatch");
    assert!(matches!(error, ResolveError::Mismatch { .. }), "{error}");
    assert!(error.to_string().contains(&Digest::of(b"other").to_string()), "{error}");
    assert_eq!(files_below(folder.path()), 0);
}

#[test]
fn a_wrong_file_in_the_cache_is_an_error_and_goes() {
    let folder = tempfile::tempdir().expect("a folder");
    let cached = folder.path().join("cache/deep/thing-1.2.3.tgz");
    fs::create_dir_all(cached.parent().expect("a parent")).expect("a folder");
    fs::write(&cached, b"tampered").expect("a file");
    let pin = pin("http://127.0.0.1:1/thing-1.2.3.tgz", b"chart");
    let error = resolve(&pin, &places(folder.path()), &Offline).expect_err("a mismatch");
    assert!(matches!(error, ResolveError::Mismatch { .. }), "{error}");
    assert!(!cached.exists());
}

#[test]
fn the_users_folder_comes_first_and_is_never_changed() {
    let folder = tempfile::tempdir().expect("a folder");
    let own = folder.path().join("charts/thing-1.2.3.tgz");
    fs::create_dir_all(own.parent().expect("a parent")).expect("a folder");
    fs::write(&own, b"chart").expect("a file");
    let right = pin("http://127.0.0.1:1/thing-1.2.3.tgz", b"chart");
    let found = resolve(&right, &places(folder.path()), &Offline).expect("the folder");
    assert_eq!(found.place, Place::Directory);
    let wrong = pin("http://127.0.0.1:1/thing-1.2.3.tgz", b"another");
    let error = resolve(&wrong, &places(folder.path()), &Offline).expect_err("a mismatch");
    assert!(matches!(error, ResolveError::Mismatch { .. }), "{error}");
    assert_eq!(fs::read(&own).expect("the file"), b"chart");
}

#[test]
fn servers_that_fail_or_send_too_much() {
    let folder = tempfile::tempdir().expect("a folder");
    let missing = pin(&serve(vec![(404, b"gone".to_vec())]), b"chart");
    let error = resolve(&missing, &places(folder.path()), &http()).expect_err("no chart");
    assert!(error_chain(&error).ends_with("the server answered 404"), "{}", error_chain(&error));

    let large = vec![b'x'; 2000];
    let large_pin = pin(&serve(vec![(200, large.clone())]), &large);
    let error = resolve(&large_pin, &places(folder.path()), &http()).expect_err("too large");
    assert!(
        error_chain(&error).ends_with("more than the limit of 1000 bytes"),
        "{}",
        error_chain(&error)
    );

    let nowhere = pin("http://127.0.0.1:1/thing-1.2.3.tgz", b"chart");
    let error = resolve(&nowhere, &places(folder.path()), &http()).expect_err("no server");
    assert!(matches!(error, ResolveError::Fetch { .. }), "{error}");
    assert_eq!(files_below(folder.path()), 0);
}

#[test]
fn files_of_pins() {
    let good = Pins::parse(
        format!(
            "charts:\n- name: a\n  version: 1.0.0\n  url: http://x/a\n  digest: {}\n",
            Digest::of(b"")
        )
        .as_bytes(),
    )
    .expect("good pins");
    assert_eq!(good.find("a", None).map(Pin::file_name).as_deref(), Some("a-1.0.0.tgz"));
    assert_eq!(good.find("a", Some("2.0.0")), None);
    for bad in [
        "charts:\n- name: ../a\n  version: 1.0.0\n  url: http://x/a\n  digest: sha256:00\n",
        "charts:\n- name: a\n  version: 1.0.0\n  url: http://x/a\n  digest: sha256:00\n",
        "charts:\n- name: a\n",
    ] {
        assert!(Pins::parse(bad.as_bytes()).is_err(), "{bad}");
    }
}
