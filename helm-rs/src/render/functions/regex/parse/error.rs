//! Why a pattern is refused (`syntax.Error`).

/// Why a pattern is refused: Go's `syntax.Error`.
#[derive(Clone, Debug, thiserror::Error)]
#[error("error parsing regexp: {code}: `{expr}`", expr = String::from_utf8_lossy(.expr))]
pub(in super::super) struct SyntaxError {
    code: &'static str,
    /// The offending part, as bytes, since it may not be UTF-8.
    expr: Vec<u8>,
}

impl SyntaxError {
    /// The whole message as Go's bytes.
    pub(in super::super) fn message(&self) -> Vec<u8> {
        let mut text = format!("error parsing regexp: {}: `", self.code).into_bytes();
        text.extend_from_slice(&self.expr);
        text.push(b'`');
        text
    }

    /// The error of a pattern that is too large to compile.
    pub(in super::super) fn large(pattern: &[u8]) -> Self {
        error(TOO_LARGE, pattern)
    }
}

pub(super) fn error(code: &'static str, expr: &[u8]) -> SyntaxError {
    SyntaxError { code, expr: expr.to_vec() }
}

pub(super) const BAD_RANGE: &str = "invalid character class range";
pub(super) const BAD_ESCAPE: &str = "invalid escape sequence";
pub(super) const BAD_CAPTURE: &str = "invalid named capture";
pub(super) const BAD_PERL: &str = "invalid or unsupported Perl syntax";
pub(super) const BAD_REPEAT_OPERATOR: &str = "invalid nested repetition operator";
pub(super) const BAD_REPEAT_SIZE: &str = "invalid repeat count";
pub(super) const BAD_UTF8: &str = "invalid UTF-8";
pub(super) const NO_BRACKET: &str = "missing closing ]";
pub(super) const NO_PAREN: &str = "missing closing )";
pub(super) const NO_REPEAT_ARGUMENT: &str = "missing argument to repetition operator";
pub(super) const TRAILING_BACKSLASH: &str = "trailing backslash at end of expression";
pub(super) const UNEXPECTED_PAREN: &str = "unexpected )";
pub(super) const TOO_DEEP: &str = "expression nests too deeply";
pub(super) const TOO_LARGE: &str = "expression too large";
