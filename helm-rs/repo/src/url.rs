//! Addresses of repositories and charts, with Go's rules (`net/url`, `internal/urlutil/urlutil.go`,
//! `pkg/repo/chartrepo.go`).

use helm_rs::gopath;
pub use helm_rs::gourl::{Url, UrlError};

fn text(url: &Url) -> String {
    String::from_utf8_lossy(&url.to_text()).into_owned()
}

/// Bytes of a URL's part as text.
pub fn part(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// Whether it is an address in an OCI registry (`registry.IsOCI`).
pub fn is_oci(url: &str) -> bool {
    url.starts_with("oci://")
}

/// A base with parts of a path joined to it (`URLJoin`).
///
/// # Errors
/// [`UrlError`] when the base is no URL.
pub fn join(base: &str, paths: &[&str]) -> Result<String, UrlError> {
    let mut url = Url::parse(base.as_bytes())?;
    let path = paths.iter().fold(part(&url.path), |path, next| gopath::join(&path, next));
    url.path = path.into_bytes();
    Ok(text(&url))
}

/// Whether two addresses mean the same repository (`Equal`).
pub fn equal(a: &str, b: &str) -> bool {
    let clean = |text: &str| {
        let mut url = Url::parse(text.as_bytes())?;
        let path = if url.path.is_empty() { "/".to_owned() } else { part(&url.path) };
        url.path = gopath::clean(&path).into_bytes();
        Ok::<_, UrlError>(url.to_text())
    };
    match (clean(a), clean(b)) {
        (Ok(a), Ok(b)) => a == b,
        (Err(_), _) => gopath::clean(a) == gopath::clean(b),
        (Ok(_), Err(_)) => false,
    }
}

/// Where a reference of a repository's index leads to (`ResolveReferenceURL`).
///
/// # Errors
/// [`UrlError`] when one of them is no URL.
pub fn resolve(base: &str, reference: &str) -> Result<String, UrlError> {
    let to = Url::parse(reference.as_bytes())?;
    if to.is_absolute() {
        return Ok(reference.to_owned());
    }
    let mut from = Url::parse(base.as_bytes())?;
    for path in [&mut from.path, &mut from.raw_path] {
        if path.last() != Some(&b'/') {
            path.push(b'/');
        }
    }
    let mut url = from.resolve(&to);
    url.query = from.query;
    Ok(text(&url))
}

/// Where a chart's address in an index leads to, as `helm dependency` has it (`normalizeURL`).
///
/// # Errors
/// [`UrlError`] when one of them is no URL.
pub fn normalize(base: &str, reference: &str) -> Result<String, UrlError> {
    let to = Url::parse(reference.as_bytes())?;
    if to.is_absolute() {
        return Ok(text(&to));
    }
    let mut url = Url::parse(base.as_bytes())?;
    url.path = gopath::join(&part(&url.path), reference).into_bytes();
    url.raw_path = gopath::join(&part(&url.raw_path), reference).into_bytes();
    Ok(text(&url))
}

/// An address without its password: what may be printed.
pub fn shown(address: &str) -> String {
    match Url::parse(address.as_bytes()) {
        Ok(mut url) if url.user.as_ref().is_some_and(|user| user.password().is_some()) => {
            url.user = url.user.map(|user| user.without_password("xxxxx"));
            text(&url)
        }
        _ => address.to_owned(),
    }
}

/// Whether two addresses are of one server: the same scheme, host and port.
pub fn same_origin(a: &Url, b: &Url) -> bool {
    a.scheme == b.scheme && a.host == b.host
}

/// Whether it is an absolute address or path (`url.ParseRequestURI`).
pub fn is_request(address: &str) -> bool {
    address.starts_with('/') || Url::is_request(address.as_bytes())
}
