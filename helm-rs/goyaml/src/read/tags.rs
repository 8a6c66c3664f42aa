//! Scanning of directives, anchors, aliases and tags.

use super::chars;
use super::scanner::{Scan, Scanner};
use super::token::Kind;

impl<'t> Scanner<'t> {
    /// `yaml_parser_scan_directive`
    pub(super) fn scan_directive(&mut self) -> Scan<Kind<'t>> {
        self.reader.skip_ascii(1);
        let kind = match self.scan_directive_name()? {
            b"YAML" => self.scan_version()?,
            b"TAG" => self.scan_tag_directive()?,
            _ => return Err(self.error("found unknown directive name")),
        };
        self.scan_line_rest()?;
        Ok(kind)
    }

    fn scan_directive_name(&mut self) -> Scan<&'t [u8]> {
        self.reader.ensure(1)?;
        let name = self.scan_word()?;
        if name.is_empty() {
            return Err(self.error("could not find expected directive name"));
        }
        if !self.reader.is_blank_or_end(0) {
            return Err(self.error("found unexpected non-alphabetical character"));
        }
        Ok(name)
    }

    fn scan_word(&mut self) -> Scan<&'t [u8]> {
        let from = self.reader.position();
        while chars::is_word(self.reader.at(0)) {
            self.reader.skip_ascii(1);
            self.reader.ensure(1)?;
        }
        Ok(self.reader.slice(from, self.reader.position()))
    }

    fn scan_version(&mut self) -> Scan<Kind<'t>> {
        self.reader.ensure(1)?;
        self.scan_blanks()?;
        let major = self.scan_version_number()?;
        if self.reader.at(0) != b'.' {
            return Err(self.error("did not find expected digit or '.' character"));
        }
        self.reader.skip_ascii(1);
        let minor = self.scan_version_number()?;
        Ok(Kind::VersionDirective { major, minor })
    }

    fn scan_version_number(&mut self) -> Scan<u8> {
        self.reader.ensure(1)?;
        let mut value = 0;
        let mut length = 0;
        while self.reader.at(0).is_ascii_digit() {
            length += 1;
            if length > 2 {
                return Err(self.error("found extremely long version number"));
            }
            value = value * 10 + (self.reader.at(0) - b'0');
            self.reader.skip_ascii(1);
            self.reader.ensure(1)?;
        }
        if length == 0 {
            return Err(self.error("did not find expected version number"));
        }
        Ok(value)
    }

    fn scan_tag_directive(&mut self) -> Scan<Kind<'t>> {
        self.reader.ensure(1)?;
        self.scan_blanks()?;
        let handle = self.scan_tag_handle(true)?;
        self.reader.ensure(1)?;
        if !self.reader.is_blank(0) {
            return Err(self.error("did not find expected whitespace"));
        }
        // Nothing is loaded here: go-yaml's own loop does not either.
        while self.reader.is_blank(0) {
            self.reader.skip_ascii(1);
        }
        let prefix = self.scan_tag_uri(b"")?;
        self.reader.ensure(1)?;
        if !self.reader.is_blank_or_end(0) {
            return Err(self.error("did not find expected whitespace or line break"));
        }
        Ok(Kind::TagDirective { handle, prefix })
    }

    /// `yaml_parser_scan_anchor`
    pub(super) fn scan_anchor(&mut self) -> Scan<Kind<'t>> {
        let is_alias = self.reader.at(0) == b'*';
        self.reader.skip_ascii(1);
        self.reader.ensure(1)?;
        let name = self.scan_word()?;
        let may_follow =
            matches!(self.reader.at(0), b'?' | b':' | b',' | b']' | b'}' | b'%' | b'@' | b'`');
        if name.is_empty() || !(may_follow || self.reader.is_blank_or_end(0)) {
            return Err(self.error("did not find expected alphabetic or numeric character"));
        }
        Ok(if is_alias { Kind::Alias(name) } else { Kind::Anchor(name) })
    }

    /// `yaml_parser_scan_tag`
    pub(super) fn scan_tag(&mut self) -> Scan<Kind<'t>> {
        self.reader.ensure(2)?;
        let (handle, suffix): (&'t [u8], Vec<u8>) = if self.reader.at(1) == b'<' {
            self.reader.skip_ascii(2);
            let suffix = self.scan_tag_uri(b"")?;
            if self.reader.at(0) != b'>' {
                return Err(self.error("did not find the expected '>'"));
            }
            self.reader.skip_ascii(1);
            (b"", suffix)
        } else {
            let handle = self.scan_tag_handle(false)?;
            if handle.len() > 1 && handle.ends_with(b"!") {
                (handle, self.scan_tag_uri(b"")?)
            } else {
                let suffix = self.scan_tag_uri(handle)?;
                // A lone '!' has no handle.
                if suffix.is_empty() { (b"", b"!".to_vec()) } else { (b"!", suffix) }
            }
        };
        self.reader.ensure(1)?;
        if !self.reader.is_blank_or_end(0) {
            return Err(self.error("did not find expected whitespace or line break"));
        }
        Ok(Kind::Tag { handle, suffix })
    }

    fn scan_tag_handle(&mut self, directive: bool) -> Scan<&'t [u8]> {
        self.reader.ensure(1)?;
        if self.reader.at(0) != b'!' {
            return Err(self.error("did not find expected '!'"));
        }
        let from = self.reader.position();
        self.reader.skip_ascii(1);
        self.reader.ensure(1)?;
        self.scan_word()?;
        if self.reader.at(0) == b'!' {
            self.reader.skip_ascii(1);
        } else if directive && self.reader.position() > from + 1 {
            return Err(self.error("did not find expected '!'"));
        }
        Ok(self.reader.slice(from, self.reader.position()))
    }

    /// A tag URI behind `head`, whose `!` is not part of it.
    fn scan_tag_uri(&mut self, head: &[u8]) -> Scan<Vec<u8>> {
        let mut uri = head.get(1..).unwrap_or_default().to_vec();
        let mut found = !head.is_empty();
        self.reader.ensure(1)?;
        while chars::is_uri(self.reader.at(0)) {
            if self.reader.at(0) == b'%' {
                self.scan_uri_escape(&mut uri)?;
            } else {
                uri.push(self.reader.at(0));
                self.reader.skip_ascii(1);
            }
            self.reader.ensure(1)?;
            found = true;
        }
        if !found {
            return Err(self.error("did not find expected tag URI"));
        }
        Ok(uri)
    }

    /// One character as `%` and two hexadecimal digits per byte.
    fn scan_uri_escape(&mut self, uri: &mut Vec<u8>) -> Scan<()> {
        let mut left: Option<usize> = None;
        while left != Some(0) {
            self.reader.ensure(3)?;
            let high = char::from(self.reader.at(1)).to_digit(16);
            let low = char::from(self.reader.at(2)).to_digit(16);
            let (b'%', Some(high), Some(low)) = (self.reader.at(0), high, low) else {
                return Err(self.error("did not find URI escaped octet"));
            };
            let octet = (high << 4 | low) as u8;
            left = match left {
                None => match chars::width(octet) {
                    0 => return Err(self.error("found an incorrect leading UTF-8 octet")),
                    width => Some(width - 1),
                },
                Some(_) if !chars::is_trailing(octet) => {
                    return Err(self.error("found an incorrect trailing UTF-8 octet"));
                }
                Some(left) => Some(left - 1),
            };
            uri.push(octet);
            self.reader.skip_ascii(3);
        }
        Ok(())
    }
}
