//! Archives that would write elsewhere, or are not the ones that an index lists: nothing is left.

use std::path::Path;

use helm_repo::digest;
use helm_repo::download::{Access, DownloadError, Downloader, Verify, Wanted, find_in_repository};
use helm_repo::expand::expand;
use helm_repo::fetch::{Request, Tls};
use helm_repo::package;
use helm_repo::registry::Client;
use helm_rs::chart::{File, Limits};

use super::{Fake, chart, ok, settings};

#[test]
fn unpacking_stays_below_its_folder() {
    let folder = tempfile::tempdir().unwrap();
    let world = folder.path().join("world");
    for name in ["../up.txt", "/etc/up.txt", "a/../../up.txt", "..\\up.txt", "C:\\up.txt"] {
        let files = [
            File {
                name: "Chart.yaml".to_owned(),
                data: (*b"apiVersion: v2\nname: a\nversion: 1.0.0\n").into(),
            },
            File { name: "x".to_owned(), data: (*b"x").into() },
        ];
        let archive = raw_archive(&files, name);
        let result = expand(&archive, &world, &Limits::default());
        assert!(!folder.path().join("up.txt").exists(), "{name}");
        if result.is_err() {
            let left = std::fs::read_dir(&world).map_or(0, |left| left.flatten().count());
            assert_eq!(left, 0, "{name} left something");
        } else {
            std::fs::remove_dir_all(&world).unwrap();
        }
    }
    for name in [".", "..", "a/b"] {
        let text = format!("apiVersion: v2\nname: {name:?}\nversion: 1.0.0\n");
        let files = [File { name: "Chart.yaml".to_owned(), data: text.as_bytes().into() }];
        let archive = raw_archive(&files, "chart/y");
        assert!(expand(&archive, &world, &Limits::default()).is_err(), "{name}");
    }
    // What is there stays.
    let good = package::pack(&chart("good"), 0).unwrap();
    std::fs::create_dir_all(world.join("good")).unwrap();
    std::fs::write(world.join("good/mine"), "mine").unwrap();
    assert!(expand(&good, &world, &Limits::default()).is_err());
    assert_eq!(std::fs::read_to_string(world.join("good/mine")).unwrap(), "mine");
}

/// An archive whose last entry has this very name.
fn raw_archive(files: &[File], last: &str) -> Vec<u8> {
    let gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let mut tar = tar::Builder::new(gzip);
    let mut add = |name: &str, data: &[u8]| {
        let mut header = tar::Header::new_ustar();
        header.set_size(data.len() as u64);
        header.set_mode(0o644);
        let field = &mut header.as_ustar_mut().unwrap().name;
        for (to, from) in field.iter_mut().zip(name.bytes()) {
            *to = from;
        }
        header.set_cksum();
        tar.append(&header, data).unwrap();
    };
    for file in files {
        add(&format!("chart/{}", file.name), &file.data);
    }
    add(last, b"evil");
    tar.into_inner().unwrap().finish().unwrap()
}

#[test]
fn archives_that_are_not_the_listed_ones_leave_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut settings = settings();
    settings.repository_config = folder.path().join("repositories.yaml");
    settings.repository_cache = folder.path().join("cache");
    std::fs::create_dir_all(&settings.repository_cache).unwrap();
    let wanted = package::pack(&chart("a"), 0).unwrap();
    let index = format!(
        "apiVersion: v1\nentries:\n  a:\n  - name: a\n    version: 1.0.0\n    digest: {}\n    urls: [a-1.0.0.tgz]\n",
        digest(&wanted)
    );
    std::fs::write(settings.repository_cache.join("r-index.yaml"), &index).unwrap();
    let known = "apiVersion: v1\nrepositories:\n- name: r\n  url: https://charts.example.org\n";
    std::fs::write(&settings.repository_config, known).unwrap();
    let out = folder.path().join("out");
    std::fs::create_dir_all(&out).unwrap();
    let mut served = wanted.clone();
    let known_url = "https://charts.example.org/a-1.0.0.tgz";
    for is_good in [true, false] {
        let fake = Fake::new(|request: &Request| {
            if request.url.ends_with("/index.yaml") {
                ok(index.clone())
            } else {
                ok(served.clone())
            }
        });
        let registry = Client::new(&fake, &settings, Tls::default(), false, None);
        let downloader = Downloader {
            transport: &fake,
            settings: &settings,
            registry: &registry,
            verify: Verify::Never,
            keyring: Path::new("none"),
            now: 0,
            limit: 1_000_000,
        };
        let (mut messages, mut warnings) = (String::new(), Vec::new());
        let unknown = "https://others.example.org";
        let access = Access::default();
        let found =
            find_in_repository(&fake, &settings, unknown, &access, "a", "", &mut warnings).unwrap();
        let named = |text: &str| Wanted { reference: text.to_owned(), ..Wanted::default() };
        for wanted in [named("r/a"), named(known_url), found] {
            let result =
                downloader.download(&wanted, access.clone(), &out, &mut messages, &mut warnings);
            if is_good {
                std::fs::remove_file(result.unwrap().path).unwrap();
            } else {
                assert!(
                    matches!(result, Err(DownloadError::Digest { .. })),
                    "{wanted:?} {result:?}"
                );
                assert_eq!(std::fs::read_dir(&out).unwrap().count(), 0);
            }
        }
        served.push(0);
    }
}
