//! A real OCI registry, without password or with one.

use std::fs;
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use tempfile::TempDir;
use test_support::{Missing, peer};

/// The user of a registry with a password, the password, and what the registry knows of it (bcrypt).
pub const USER: (&str, &str) = ("user", "secret");

/// A running registry, ended when dropped.
#[derive(Debug)]
pub struct Registry {
    /// `127.0.0.1:PORT`
    pub host: String,
    child: Child,
    _folder: TempDir,
}

impl Drop for Registry {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

impl Registry {
    /// Starts a registry; with a line of an htpasswd file, it wants that password.
    ///
    /// # Errors
    /// When the program cannot be built.
    ///
    /// # Panics
    /// When it does not start.
    pub fn start(htpasswd: Option<&str>) -> Result<Self, Missing> {
        let program = peer::program("registry")?;
        let folder = tempfile::tempdir().expect("a folder");
        let port = {
            let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
            listener.local_addr().expect("an address").port()
        };
        let host = format!("127.0.0.1:{port}");
        let mut config = format!(
            "version: 0.1\nlog:\n  level: error\nstorage:\n  filesystem:\n    rootdirectory: {}\n  delete:\n    enabled: true\nhttp:\n  addr: {host}\n",
            folder.path().join("data").display()
        );
        if let Some(line) = htpasswd {
            let file = folder.path().join("htpasswd");
            fs::write(&file, line).expect("a file");
            config +=
                &format!("auth:\n  htpasswd:\n    realm: test\n    path: {}\n", file.display());
        }
        let file = folder.path().join("config.yml");
        fs::write(&file, config).expect("a file");
        let child = start(&program, &file);
        for _ in 0..300 {
            if TcpStream::connect(&host).is_ok() {
                break;
            }
            thread::sleep(Duration::from_millis(50));
        }
        Ok(Self { host, child, _folder: folder })
    }
}

fn start(program: &Path, config: &Path) -> Child {
    Command::new(program)
        .arg("serve")
        .arg(config)
        .env("OTEL_TRACES_EXPORTER", "none")
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the registry starts")
}
