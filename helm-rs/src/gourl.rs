//! Go's URLs (`net/url/url.go`): lenient parsing, and printing that keeps what was written.

use crate::address;
use crate::gotext::quote;

/// What a part of a URL may contain as it is, beyond letters and digits.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Path,
    Host,
    Zone,
    User,
    Fragment,
}

impl Part {
    fn allows(self, byte: u8) -> bool {
        let marks: &[u8] = match self {
            Self::Path => b"$&+,-./:;=@_~",
            Self::Host | Self::Zone => b"!\"$&'()*+,-.:;<=>[]_~",
            Self::User => b"$&+,-.;=_~",
            Self::Fragment => b"!$&()*+,-./:;=?@_~",
        };
        byte.is_ascii_alphanumeric() || marks.contains(&byte)
    }
}

/// Why a URL is refused; the `Display` text is Go's.
#[derive(Debug, thiserror::Error)]
#[error("parse {url}: {problem}")]
pub struct UrlError {
    url: String,
    problem: Problem,
}

#[derive(Debug, thiserror::Error)]
enum Problem {
    #[error("net/url: invalid control character in URL")]
    Control,
    #[error("missing protocol scheme")]
    NoScheme,
    #[error("first path segment in URL cannot contain colon")]
    Colon,
    #[error("net/url: invalid userinfo")]
    User,
    #[error("invalid IP-literal")]
    IpLiteral,
    #[error("missing ']' in host")]
    Bracket,
    #[error("invalid port {0} after host")]
    Port(String),
    #[error("invalid host: {0}")]
    Host(address::AddressError),
    #[error("invalid URL escape {0}")]
    Escape(String),
    #[error("invalid character {0} in host name")]
    HostCharacter(String),
}

/// User name and password.
#[derive(Clone, Debug, Default)]
pub struct User {
    name: Vec<u8>,
    password: Option<Vec<u8>>,
}

impl User {
    /// The name.
    pub fn name(&self) -> &[u8] {
        &self.name
    }

    /// The password, if there is one.
    pub fn password(&self) -> Option<&[u8]> {
        self.password.as_deref()
    }

    /// The same user with another text for a password, as Go's `Redacted`.
    #[must_use]
    pub fn without_password(self, stand_in: &str) -> Self {
        Self { password: self.password.map(|_| stand_in.into()), ..self }
    }

    /// Go's `Userinfo.String`.
    pub fn to_text(&self) -> Vec<u8> {
        let mut out = escape(&self.name, Part::User);
        if let Some(password) = &self.password {
            out.push(b':');
            out.extend_from_slice(&escape(password, Part::User));
        }
        out
    }
}

/// A URL in its parts.
#[derive(Clone, Debug, Default)]
pub struct Url {
    /// In small letters; empty for a relative reference.
    pub scheme: Vec<u8>,
    /// What follows the scheme where it is no slash.
    pub opaque: Vec<u8>,
    /// What stands before the `@`.
    pub user: Option<User>,
    /// With its port.
    pub host: Vec<u8>,
    /// Without escapes.
    pub path: Vec<u8>,
    /// The path as it was written, where that is not how Go would escape it.
    pub raw_path: Vec<u8>,
    /// What follows the question mark.
    pub query: Vec<u8>,
    /// What follows the hash, without escapes.
    pub fragment: Vec<u8>,
}

fn cut(text: &[u8], mark: u8) -> (&[u8], Option<&[u8]>) {
    match text.iter().position(|&b| b == mark) {
        Some(at) => (text.get(..at).unwrap_or_default(), text.get(at + 1..)),
        None => (text, None),
    }
}

impl Url {
    /// Go's `url.Parse`.
    ///
    /// # Errors
    /// [`UrlError`], with Go's text.
    pub fn parse(raw: &[u8]) -> Result<Self, UrlError> {
        let (before, fragment) = cut(raw, b'#');
        let mut url = Self::parse_start(before)
            .map_err(|problem| UrlError { url: quote(before), problem })?;
        if let Some(fragment) = fragment.filter(|fragment| !fragment.is_empty()) {
            url.fragment = unescape(fragment, Part::Fragment)
                .map_err(|problem| UrlError { url: quote(raw), problem })?;
        }
        Ok(url)
    }

    /// Whether `url.ParseRequestURI` takes the text and finds a scheme in it: no relative
    /// reference, and a fragment is nothing special.
    pub fn is_request(raw: &[u8]) -> bool {
        Self::parse_start(raw).is_ok_and(|url| !url.scheme.is_empty())
    }

    fn parse_start(raw: &[u8]) -> Result<Self, Problem> {
        if raw.iter().any(|&b| b < b' ' || b == 0x7f) {
            return Err(Problem::Control);
        }
        let mut url = Self::default();
        if raw == b"*" {
            url.path = raw.to_vec();
            return Ok(url);
        }
        let (scheme, rest) = split_scheme(raw)?;
        url.scheme = scheme.to_ascii_lowercase();
        let (mut rest, query) = cut(rest, b'?');
        url.query = query.unwrap_or_default().to_vec();
        if !rest.starts_with(b"/") {
            if !url.scheme.is_empty() {
                url.opaque = rest.to_vec();
                return Ok(url);
            }
            if cut(rest, b'/').0.contains(&b':') {
                return Err(Problem::Colon);
            }
        }
        let has_authority = !url.scheme.is_empty() || !rest.starts_with(b"///");
        if let Some(authority) = rest.strip_prefix(b"//").filter(|_| has_authority) {
            let end = authority.iter().position(|&b| b == b'/').unwrap_or(authority.len());
            let (authority, path) = authority.split_at_checked(end).unwrap_or((authority, &[]));
            rest = path;
            (url.user, url.host) = parse_authority(&url.scheme, authority)?;
        }
        url.path = unescape(rest, Part::Path)?;
        if escape(&url.path, Part::Path) != rest {
            url.raw_path = rest.to_vec();
        }
        Ok(url)
    }

    /// Whether it has a scheme (`IsAbs`).
    pub const fn is_absolute(&self) -> bool {
        !self.scheme.is_empty()
    }

    /// The path as it is sent (`EscapedPath`).
    pub fn escaped_path(&self) -> Vec<u8> {
        let is_raw = !self.raw_path.is_empty()
            && self
                .raw_path
                .iter()
                .all(|b| b"!$&'()*+,;=:@[]%-_.~/".contains(b) || b.is_ascii_alphanumeric())
            && unescape(&self.raw_path, Part::Path).is_ok_and(|path| path == self.path);
        match self.path.as_slice() {
            _ if is_raw => self.raw_path.clone(),
            b"*" => self.path.clone(),
            path => escape(path, Part::Path),
        }
    }

    /// Where a reference leads from here (`ResolveReference`).
    #[must_use]
    pub fn resolve(&self, reference: &Self) -> Self {
        let mut url = reference.clone();
        if reference.scheme.is_empty() {
            url.scheme.clone_from(&self.scheme);
        }
        if reference.is_absolute() || !reference.host.is_empty() || reference.user.is_some() {
            url.set_escaped_path(&resolve_path(&reference.escaped_path(), b""));
            return url;
        }
        if !reference.opaque.is_empty() {
            (url.user, url.host, url.path) = (None, Vec::new(), Vec::new());
            return url;
        }
        if reference.path.is_empty() && reference.query.is_empty() {
            url.query.clone_from(&self.query);
            if reference.fragment.is_empty() {
                url.fragment.clone_from(&self.fragment);
            }
        }
        url.host.clone_from(&self.host);
        url.user.clone_from(&self.user);
        url.set_escaped_path(&resolve_path(&self.escaped_path(), &reference.escaped_path()));
        url
    }

    /// Go's `setPath`; what cannot be unescaped was no escaped path and stays as it is.
    fn set_escaped_path(&mut self, escaped: &[u8]) {
        self.path = unescape(escaped, Part::Path).unwrap_or_else(|_| escaped.to_vec());
        self.raw_path =
            if escape(&self.path, Part::Path) == escaped { Vec::new() } else { escaped.to_vec() };
    }

    /// Go's `Hostname`: without port and brackets.
    pub fn hostname(&self) -> &[u8] {
        let host = self.host.as_slice();
        let colon = host.iter().rposition(|&b| b == b':');
        let host = match colon.and_then(|colon| host.split_at_checked(colon)) {
            Some((name, port)) if is_port(port) => name,
            _ => host,
        };
        host.strip_prefix(b"[").and_then(|host| host.strip_suffix(b"]")).unwrap_or(host)
    }

    /// Go's `String` for a URL that was put together from parts.
    pub fn to_text(&self) -> Vec<u8> {
        let mut out = Vec::new();
        if !self.scheme.is_empty() {
            out.extend_from_slice(&self.scheme);
            out.push(b':');
        }
        if self.opaque.is_empty() {
            if !self.host.is_empty()
                || self.user.is_some()
                || (!self.scheme.is_empty() && !self.path.is_empty())
            {
                out.extend_from_slice(b"//");
            }
            if let Some(user) = &self.user {
                out.extend_from_slice(&user.to_text());
                out.push(b'@');
            }
            out.extend_from_slice(&escape(&self.host, Part::Host));
            let path = self.escaped_path();
            if !path.is_empty() && !path.starts_with(b"/") && !self.host.is_empty() {
                out.push(b'/');
            }
            if out.is_empty() && cut(&path, b'/').0.contains(&b':') {
                out.extend_from_slice(b"./");
            }
            out.extend_from_slice(&path);
        } else {
            out.extend_from_slice(&self.opaque);
        }
        if !self.query.is_empty() {
            out.push(b'?');
            out.extend_from_slice(&self.query);
        }
        if !self.fragment.is_empty() {
            out.push(b'#');
            out.extend_from_slice(&escape(&self.fragment, Part::Fragment));
        }
        out
    }
}

/// Go's `resolvePath`: takes dots out of a path that is written from `base`.
fn resolve_path(base: &[u8], reference: &[u8]) -> Vec<u8> {
    let folder = base.iter().rposition(|&b| b == b'/').and_then(|slash| base.get(..=slash));
    let full = match reference.first() {
        None => base.to_vec(),
        Some(b'/') => reference.to_vec(),
        Some(_) => [folder.unwrap_or_default(), reference].concat(),
    };
    if full.is_empty() {
        return full;
    }
    let mut parts: Vec<&[u8]> = Vec::new();
    let mut ends_in_folder = false;
    for part in full.split(|&b| b == b'/') {
        ends_in_folder = matches!(part, b"." | b"..");
        match part {
            b"." => {}
            b".." => drop(parts.pop()),
            part => parts.push(part),
        }
    }
    let mut out = parts.join(&b'/');
    if ends_in_folder {
        out.push(b'/');
    }
    let start = out.iter().position(|&b| b != b'/').unwrap_or(out.len());
    [b"/", out.get(start.min(1)..).unwrap_or_default()].concat()
}

fn split_scheme(raw: &[u8]) -> Result<(&[u8], &[u8]), Problem> {
    for (i, &byte) in raw.iter().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if i > 0 => {}
            b':' if i == 0 => return Err(Problem::NoScheme),
            b':' => {
                let (scheme, rest) = raw.split_at_checked(i).unwrap_or((&[], raw));
                return Ok((scheme, rest.get(1..).unwrap_or_default()));
            }
            _ => break,
        }
    }
    Ok((&[], raw))
}

fn parse_authority(scheme: &[u8], authority: &[u8]) -> Result<(Option<User>, Vec<u8>), Problem> {
    let Some(at) = authority.iter().rposition(|&b| b == b'@') else {
        return Ok((None, parse_host(scheme, authority)?));
    };
    let host = parse_host(scheme, authority.get(at + 1..).unwrap_or_default())?;
    let user = authority.get(..at).unwrap_or_default();
    let valid = |&b: &u8| b.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&b);
    if !user.iter().all(valid) {
        return Err(Problem::User);
    }
    let (name, password) = cut(user, b':');
    let name = unescape(name, Part::User)?;
    let password = password.map(|password| unescape(password, Part::User)).transpose()?;
    Ok((Some(User { name, password }), host))
}

/// Empty, or a colon and digits.
fn is_port(text: &[u8]) -> bool {
    text.is_empty() || text.strip_prefix(b":").is_some_and(|p| p.iter().all(u8::is_ascii_digit))
}

fn parse_host(scheme: &[u8], host: &[u8]) -> Result<Vec<u8>, Problem> {
    match host.iter().rposition(|&b| b == b'[') {
        Some(0) => return parse_ip_literal(host),
        Some(_) => return Err(Problem::IpLiteral),
        None => {}
    }
    // Only http and https are strict about a second colon.
    let colon = if matches!(scheme, b"http" | b"https") {
        host.iter().position(|&b| b == b':')
    } else {
        host.iter().rposition(|&b| b == b':')
    };
    let port = colon.and_then(|colon| host.get(colon..)).unwrap_or_default();
    if !is_port(port) {
        return Err(Problem::Port(quote(port)));
    }
    unescape(host, Part::Host)
}

/// `[address%25zone]:port`.
fn parse_ip_literal(host: &[u8]) -> Result<Vec<u8>, Problem> {
    let close = host.iter().rposition(|&b| b == b']').ok_or(Problem::Bracket)?;
    let port = host.get(close + 1..).unwrap_or_default();
    if !is_port(port) {
        return Err(Problem::Port(quote(port)));
    }
    let literal = host.get(1..close).unwrap_or_default();
    let zone = literal.windows(3).position(|window| window == b"%25");
    let (name, zone) = literal.split_at_checked(zone.unwrap_or(literal.len())).unwrap_or_default();
    let mut literal = unescape(name, Part::Host)?;
    literal.extend_from_slice(&unescape(zone, Part::Zone)?);
    let address = address::parse(&literal).map_err(Problem::Host)?;
    if address.ip.is_ipv4() {
        return Err(Problem::IpLiteral);
    }
    let mut out = vec![b'['];
    out.extend_from_slice(&literal);
    out.push(b']');
    out.extend_from_slice(port);
    Ok(out)
}

fn unescape(text: &[u8], part: Part) -> Result<Vec<u8>, Problem> {
    let host = matches!(part, Part::Host | Part::Zone);
    let mut out = Vec::with_capacity(text.len());
    let mut at = 0;
    while let Some(&byte) = text.get(at) {
        if byte != b'%' {
            if host && byte.is_ascii() && !part.allows(byte) {
                return Err(Problem::HostCharacter(quote([byte])));
            }
            out.push(byte);
            at += 1;
            continue;
        }
        let hex = |offset: usize| {
            text.get(at + offset).and_then(|&b| char::from(b).to_digit(16)).map(|d| d as u8)
        };
        let bad = || {
            let end = text.len().min(at + 3);
            Problem::Escape(quote(text.get(at..end).unwrap_or_default()))
        };
        let (Some(high), Some(low)) = (hex(1), hex(2)) else { return Err(bad()) };
        let value = high << 4 | low;
        let allowed = match part {
            // In a host only what is not ASCII may be escaped, and the percent sign.
            Part::Host => high >= 8 || value == b'%',
            Part::Zone => value == b'%' || value == b' ' || Part::Host.allows(value),
            _ => true,
        };
        if !allowed {
            return Err(bad());
        }
        out.push(value);
        at += 3;
    }
    Ok(out)
}

fn escape(text: &[u8], part: Part) -> Vec<u8> {
    const DIGITS: &[u8; 16] = b"0123456789ABCDEF";
    let mut out = Vec::with_capacity(text.len());
    for &byte in text {
        if part.allows(byte) {
            out.push(byte);
        } else {
            let digit = |value: u8| DIGITS.get(usize::from(value)).copied().unwrap_or(b'0');
            out.extend_from_slice(&[b'%', digit(byte >> 4), digit(byte & 15)]);
        }
    }
    out
}
