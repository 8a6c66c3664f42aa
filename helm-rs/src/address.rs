//! IP addresses as Go reads them (`net/netip/netip.go`, `ParseAddr`), with its errors.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::gotext::quote;

/// An address, perhaps with a zone (`fe80::1%eth0`).
pub(crate) struct Address {
    pub(crate) ip: IpAddr,
    pub(crate) zoned: bool,
}

/// Why a text is no address.
#[derive(Clone, Debug, thiserror::Error)]
#[error("ParseAddr({input}): {message}{at}")]
pub(crate) struct AddressError {
    input: String,
    message: &'static str,
    at: String,
}

fn error(input: &[u8], message: &'static str, at: &[u8]) -> AddressError {
    let at = if at.is_empty() { String::new() } else { format!(" (at {})", quote(at)) };
    AddressError { input: quote(input), message, at }
}

/// Go's `netip.ParseAddr`.
pub(crate) fn parse(text: &[u8]) -> Result<Address, AddressError> {
    match text.iter().find(|b| matches!(b, b'.' | b':' | b'%')) {
        Some(b'.') => {
            let octets = ipv4_fields(text, text)?;
            Ok(Address { ip: Ipv4Addr::from(octets).into(), zoned: false })
        }
        Some(b':') => ipv6(text),
        Some(_) => Err(error(text, "missing IPv6 address", b"")),
        None => Err(error(text, "unable to parse IP", b"")),
    }
}

/// Four octets in `part` of the input.
fn ipv4_fields(input: &[u8], part: &[u8]) -> Result<[u8; 4], AddressError> {
    let mut octets = [0_u8; 4];
    let mut position = 0;
    let (mut value, mut digits) = (0_u16, 0);
    let mut previous = b'.';
    for (i, &byte) in part.iter().enumerate() {
        let here = part.get(i..).unwrap_or_default();
        if byte.is_ascii_digit() {
            if digits == 1 && value == 0 {
                return Err(error(input, "IPv4 field has octet with leading zero", b""));
            }
            value = value * 10 + u16::from(byte - b'0');
            digits += 1;
            if value > 255 {
                return Err(error(input, "IPv4 field has value >255", b""));
            }
        } else if byte == b'.' {
            if i == part.len() - 1 || previous == b'.' {
                let message = "IPv4 field must have at least one digit";
                return Err(error(input, message, here));
            }
            if position == 3 {
                return Err(error(input, "IPv4 address too long", b""));
            }
            if let Some(octet) = octets.get_mut(position) {
                *octet = value as u8;
            }
            position += 1;
            value = 0;
            digits = 0;
        } else {
            return Err(error(input, "unexpected character", here));
        }
        previous = byte;
    }
    if position < 3 {
        return Err(error(input, "IPv4 address too short", b""));
    }
    if let Some(octet) = octets.get_mut(3) {
        *octet = value as u8;
    }
    Ok(octets)
}

fn ipv6(input: &[u8]) -> Result<Address, AddressError> {
    let mut text = input;
    let mut zoned = false;
    if let Some(percent) = input.iter().position(|&b| b == b'%') {
        let zone = input.get(percent + 1..).unwrap_or_default();
        if zone.is_empty() {
            return Err(error(input, "zone must be a non-empty string", b""));
        }
        text = input.get(..percent).unwrap_or_default();
        zoned = true;
    }
    // Bytes before and after the `::`.
    let mut head: Vec<u8> = Vec::with_capacity(16);
    let mut tail: Option<Vec<u8>> = None;
    if let Some(rest) = text.strip_prefix(b"::") {
        tail = Some(Vec::new());
        text = rest;
        if text.is_empty() {
            return Ok(Address { ip: Ipv6Addr::UNSPECIFIED.into(), zoned });
        }
    }
    while head.len() + tail.as_ref().map_or(0, Vec::len) < 16 {
        let read = head.len() + tail.as_ref().map_or(0, Vec::len);
        let mut value = 0_u32;
        let mut digits = 0;
        for &byte in text {
            let Some(digit) = char::from(byte).to_digit(16) else { break };
            if digits > 3 {
                let message = "each group must have 4 or less digits";
                return Err(error(input, message, text));
            }
            value = value << 4 | digit;
            digits += 1;
        }
        if digits == 0 {
            let message = "each colon-separated field must have at least one digit";
            return Err(error(input, message, text));
        }
        let bytes = tail.as_mut().unwrap_or(&mut head);
        if text.get(digits) == Some(&b'.') {
            let has_ellipsis = tail.is_some();
            if !has_ellipsis && read != 12 {
                let message =
                    "embedded IPv4 address must replace the final 2 fields of the address";
                return Err(error(input, message, text));
            }
            if read + 4 > 16 {
                let message = "too many hex fields to fit an embedded IPv4 at the end of the \
                               address";
                return Err(error(input, message, text));
            }
            let octets = ipv4_fields(input, text)?;
            tail.as_mut().unwrap_or(&mut head).extend_from_slice(&octets);
            text = &[];
            break;
        }
        bytes.extend_from_slice(&(value as u16).to_be_bytes());
        text = text.get(digits..).unwrap_or_default();
        match text {
            [] => break,
            [b':'] => {
                return Err(error(input, "colon must be followed by more characters", text));
            }
            [b':', rest @ ..] => text = rest,
            _ => return Err(error(input, "unexpected character, want colon", text)),
        }
        if let Some(rest) = text.strip_prefix(b":") {
            if tail.is_some() {
                return Err(error(input, "multiple :: in address", text));
            }
            tail = Some(Vec::new());
            text = rest;
            if text.is_empty() {
                break;
            }
        }
    }
    if !text.is_empty() {
        return Err(error(input, "trailing garbage after address", text));
    }
    let read = head.len() + tail.as_ref().map_or(0, Vec::len);
    match tail {
        None if read < 16 => return Err(error(input, "address string too short", b"")),
        Some(_) if read >= 16 => {
            let message = "the :: must expand to at least one field of zeros";
            return Err(error(input, message, b""));
        }
        Some(tail) => {
            head.resize(16 - tail.len(), 0);
            head.extend_from_slice(&tail);
        }
        None => {}
    }
    let octets: [u8; 16] = head.try_into().unwrap_or_default();
    Ok(Address { ip: Ipv6Addr::from(octets).into(), zoned })
}
