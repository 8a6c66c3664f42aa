//! How a registry is asked: with whose name, and how far redirects are followed
//! (`oras-go` `registry/remote/auth/client.go`).

use std::cell::RefCell;
use std::collections::BTreeMap;

use super::{Client, RegistryError, refused};
use crate::fetch::{FetchError, Request, Response, basic, check_step};
use crate::reference::Reference;
use crate::url::{self, Url};

/// Redirects that are followed.
const MAX_REDIRECTS: usize = 10;

/// Bytes that the answer of a token server may have.
const MAX_TOKEN: u64 = 128 * 1024;

/// The headers that opened registries before: by method kind, host and repository.
#[derive(Default)]
pub(super) struct Known(RefCell<BTreeMap<String, String>>);

impl Client<'_> {
    /// Sends a request, and again with credentials when the registry wants them.
    pub(super) fn ask(&self, to: &Reference, request: &Request) -> Result<Response, RegistryError> {
        let writes = !matches!(request.method, "GET" | "HEAD");
        let key = format!("{writes} {}/{}", to.registry, to.repository);
        let known = self.access.0.borrow().get(&key).cloned();
        let response = self.follow(request, known.as_deref())?;
        if response.status != 401 {
            return Ok(response);
        }
        let challenge = response.header("www-authenticate").unwrap_or_default();
        let (scheme, rest) = challenge.split_once(' ').unwrap_or((challenge, ""));
        let fail = |text: String| RegistryError::Access {
            method: request.method,
            url: request.url.clone(),
            text,
        };
        let header = match scheme.to_ascii_lowercase().as_str() {
            "basic" => {
                let login = self.login_of(&to.registry)?;
                let login = login.ok_or_else(|| fail("basic credential not found".to_owned()))?;
                if login.username.is_empty() || login.password.is_empty() {
                    return Err(fail("missing username or password for basic auth".to_owned()));
                }
                basic(&login.username, &login.password)
            }
            "bearer" => {
                let parameters = parameters(rest);
                let realm = parameters.get("realm").map(String::as_str).unwrap_or_default();
                check_realm(&request.url, realm).map_err(fail)?;
                format!("Bearer {}", self.token(to, realm, &parameters)?)
            }
            _ => return Ok(response),
        };
        let response = self.follow(request, Some(&header))?;
        self.access.0.borrow_mut().insert(key, header);
        Ok(response)
    }

    /// A token for the wanted scope (`fetchDistributionToken`).
    fn token(
        &self,
        to: &Reference,
        realm: &str,
        parameters: &BTreeMap<String, String>,
    ) -> Result<String, RegistryError> {
        let mut address = realm.to_owned();
        for name in ["service", "scope"] {
            for value in parameters.get(name).into_iter().flat_map(|all| all.split(' ')) {
                address.push(if address.contains('?') { '&' } else { '?' });
                address += &format!("{name}={}", query(value));
            }
        }
        let mut request = Request::new("GET", address.clone(), MAX_TOKEN);
        if let Some(login) = self.login_of(&to.registry)? {
            let header = if login.username.is_empty() {
                format!("Bearer {}", login.password)
            } else {
                basic(&login.username, &login.password)
            };
            request.headers.push(("authorization", header));
        }
        request.headers.push(("user-agent", self.settings.user_agent.clone()));
        // A token server that sends elsewhere is not followed: the password would go along.
        let response = self.send(request)?;
        if response.status != 200 {
            return Err(refused("GET", &address, &response));
        }
        let answer: serde_json::Value = serde_json::from_slice(&response.body).unwrap_or_default();
        ["access_token", "token"]
            .iter()
            .find_map(|name| answer.get(name)?.as_str().filter(|text| !text.is_empty()))
            .map(ToOwned::to_owned)
            .ok_or(RegistryError::Access {
                method: "GET",
                url: address,
                text: "empty token returned".to_owned(),
            })
    }

    /// Sends a request over redirects; only the registry itself sees the header.
    fn follow(&self, request: &Request, header: Option<&str>) -> Result<Response, RegistryError> {
        let first = Url::parse(request.url.as_bytes()).map_err(FetchError::from)?;
        let mut at = first.clone();
        for _ in 0..=MAX_REDIRECTS {
            let mut request = request.clone();
            request.url = url::part(&at.to_text());
            request.headers.push(("user-agent", self.settings.user_agent.clone()));
            if let Some(header) = header.filter(|_| url::same_origin(&first, &at)) {
                request.headers.push(("authorization", header.to_owned()));
            }
            let reads = matches!(request.method, "GET" | "HEAD");
            let mut response = self.send(request)?;
            match (response.status, response.header("location")) {
                (301 | 302 | 303 | 307 | 308, Some(location)) if reads => {
                    let next =
                        at.resolve(&Url::parse(location.as_bytes()).map_err(FetchError::from)?);
                    check_step(&at, &next)?;
                    at = next;
                }
                _ => {
                    if response.status == 401 && !url::same_origin(&first, &at) {
                        // Another server's question is none for the registry's password.
                        response.headers.retain(|(name, _)| name != "www-authenticate");
                    }
                    return Ok(response);
                }
            }
        }
        Err(FetchError::Redirects { url: request.url.clone() }.into())
    }
}

/// The parameters of a challenge: `name="value", …`.
fn parameters(text: &str) -> BTreeMap<String, String> {
    let mut all = BTreeMap::new();
    let mut rest = text.trim();
    while let Some((name, after)) = rest.split_once('=') {
        let (value, after) = match after.strip_prefix('"') {
            Some(quoted) => quoted.split_once('"').unwrap_or((quoted, "")),
            None => after.split_once(',').map_or((after, ""), |(value, rest)| (value, rest)),
        };
        all.insert(name.trim().to_ascii_lowercase(), value.to_owned());
        rest = after.trim_start_matches([',', ' ']);
    }
    all
}

/// A token server has to be spoken to as safely as the registry (`validateRealm`).
fn check_realm(registry: &str, realm: &str) -> Result<(), String> {
    let parsed = Url::parse(realm.as_bytes()).map_err(|error| error.to_string())?;
    let is_safe =
        parsed.scheme == b"https" || (parsed.scheme == b"http" && registry.starts_with("http://"));
    if is_safe && !parsed.host.is_empty() {
        return Ok(());
    }
    Err(format!("invalid token server {}: refused", helm_rs::gotext::quote(realm)))
}

/// A text as a value of a query.
fn query(text: &str) -> String {
    text.bytes().fold(String::new(), |mut out, byte| {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            out += &format!("%{byte:02X}");
        }
        out
    })
}

/// The address of the next page of a list; only on the same server.
pub(super) fn next_page(from: &str, response: &Response) -> Option<String> {
    let link = response.header("link")?;
    let target = link.strip_prefix('<')?.split_once('>')?.0;
    let from = Url::parse(from.as_bytes()).ok()?;
    let next = from.resolve(&Url::parse(target.as_bytes()).ok()?);
    url::same_origin(&from, &next).then(|| url::part(&next.to_text()))
}

/// Where a blob is to be sent, after the registry opened an upload
/// (`completePushAfterInitialPost`). Another server is refused: the credentials go along.
pub(super) fn upload_place(
    from: &str,
    response: &Response,
    digest: &str,
) -> Result<String, RegistryError> {
    let fail = |text: String| RegistryError::Access { method: "POST", url: from.to_owned(), text };
    let location = response
        .header("location")
        .ok_or_else(|| fail("http: no Location header in response".to_owned()))?;
    let base = Url::parse(from.as_bytes()).map_err(FetchError::from)?;
    let mut place = base.resolve(&Url::parse(location.as_bytes()).map_err(FetchError::from)?);
    let host = |url: &Url| helm_rs::gotext::quote(&url.host);
    if place.host != base.host {
        return Err(fail(format!(
            "blob upload Location {} is on a different host than the registry {}",
            host(&place),
            host(&base)
        )));
    }
    if base.scheme == b"https" && place.scheme != b"https" {
        return Err(fail(format!(
            "blob upload Location {} downgrades scheme from https",
            host(&place)
        )));
    }
    if !place.query.is_empty() {
        place.query.push(b'&');
    }
    place.query.extend(format!("digest={}", query(digest)).into_bytes());
    Ok(url::part(&place.to_text()))
}
