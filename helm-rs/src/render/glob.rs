//! Glob patterns of `.Files.Glob`: the language of `github.com/gobwas/glob` with `/` as the
//! separator.
//!
//! | pattern | matches |
//! |---|---|
//! | `*` | any run of characters without the separator |
//! | `**` | any run of characters |
//! | `?` | one character other than the separator |
//! | `[abc]`, `[!abc]`, `[a-z]`, `[!a-z]` | one character of the class, or not of it |
//! | `{a,b*}` | any of the alternatives |
//! | `\c` | the character `c` |

/// Nesting of `{…}` that a pattern may have; deeper ones count as invalid.
const MAX_DEPTH: usize = 100;

/// A compiled pattern.
#[derive(Clone, Debug)]
pub(crate) struct Glob {
    nodes: Vec<Node>,
    separator: Option<char>,
}

#[derive(Clone, Debug)]
enum Node {
    Text(Vec<char>),
    /// `*`
    Any,
    /// `**`
    Super,
    /// `?`
    Single,
    List {
        chars: Vec<char>,
        negated: bool,
    },
    Range {
        low: char,
        high: char,
        negated: bool,
    },
    AnyOf(Vec<Vec<Self>>),
}

/// The pattern is not valid; what is wrong does not matter, since Helm then matches all files.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct InvalidPattern;

impl Glob {
    /// Compiles a pattern (`glob.Compile`). `separator` is what `*` and `?` do not match.
    pub(crate) fn new(pattern: &str, separator: Option<char>) -> Result<Self, InvalidPattern> {
        let mut parser = Parser { rest: pattern.chars().collect(), at: 0 };
        Ok(Self { nodes: parser.parse()?, separator })
    }

    /// Whether the whole of `text` matches.
    pub(crate) fn matches(&self, text: &str) -> bool {
        let text: Vec<char> = text.chars().collect();
        let mut starts = vec![false; text.len() + 1];
        if let Some(first) = starts.first_mut() {
            *first = true;
        }
        advance(&self.nodes, &text, starts, self.separator).last().copied().unwrap_or(false)
    }
}

/// From the set of positions that the nodes may begin at, the set that they may end at. Sets
/// instead of backtracking keep the worst case polynomial.
fn advance(
    nodes: &[Node],
    text: &[char],
    mut positions: Vec<bool>,
    separator: Option<char>,
) -> Vec<bool> {
    for node in nodes {
        positions = match node {
            Node::Text(literal) => {
                let mut next = vec![false; positions.len()];
                for at in (0..positions.len()).filter(|&at| positions[at]) {
                    if text[at..].starts_with(literal) {
                        next[at + literal.len()] = true;
                    }
                }
                next
            }
            Node::Any | Node::Super => {
                let stop = if matches!(node, Node::Any) { separator } else { None };
                for at in 0..text.len() {
                    if positions[at] && Some(text[at]) != stop {
                        positions[at + 1] = true;
                    }
                }
                positions
            }
            Node::Single => one(text, &positions, |c| Some(c) != separator),
            Node::List { chars, negated } => {
                one(text, &positions, |c| chars.contains(&c) != *negated)
            }
            Node::Range { low, high, negated } => {
                one(text, &positions, |c| (*low <= c && c <= *high) != *negated)
            }
            Node::AnyOf(alternatives) => {
                let mut next = vec![false; positions.len()];
                for alternative in alternatives {
                    let ends = advance(alternative, text, positions.clone(), separator);
                    next.iter_mut().zip(ends).for_each(|(all, end)| *all |= end);
                }
                next
            }
        };
    }
    positions
}

fn one(text: &[char], positions: &[bool], accepts: impl Fn(char) -> bool) -> Vec<bool> {
    let mut next = vec![false; positions.len()];
    for (at, &c) in text.iter().enumerate() {
        if positions[at] && accepts(c) {
            next[at + 1] = true;
        }
    }
    next
}

/// Reads patterns as `syntax/lexer` and `syntax/ast` of gobwas do, oddities included: a NUL
/// ends the pattern, and an open `{` may stay open.
struct Parser {
    rest: Vec<char>,
    at: usize,
}

impl Parser {
    fn peek(&self) -> Result<Option<char>, InvalidPattern> {
        match self.rest.get(self.at) {
            None | Some('\0') => Ok(None),
            Some('\u{FFFD}') => Err(InvalidPattern),
            Some(&c) => Ok(Some(c)),
        }
    }

    fn next(&mut self) -> Result<Option<char>, InvalidPattern> {
        let c = self.peek()?;
        if c.is_some() {
            self.at += 1;
        }
        Ok(c)
    }

    fn parse(&mut self) -> Result<Vec<Node>, InvalidPattern> {
        // One entry per open `{`: the finished alternatives; the last holds the current list.
        let mut open: Vec<(Vec<Node>, Vec<Vec<Node>>)> = Vec::new();
        let mut current = Vec::new();
        while let Some(c) = self.next()? {
            match c {
                '{' => {
                    if open.len() == MAX_DEPTH {
                        return Err(InvalidPattern);
                    }
                    open.push((std::mem::take(&mut current), Vec::new()));
                }
                ',' if !open.is_empty() => {
                    if let Some((_, alternatives)) = open.last_mut() {
                        alternatives.push(std::mem::take(&mut current));
                    }
                }
                '}' if !open.is_empty() => close(&mut open, &mut current),
                '[' => current.push(self.range()?),
                '?' => current.push(Node::Single),
                '*' => {
                    if self.peek()? == Some('*') {
                        self.at += 1;
                        current.push(Node::Super);
                    } else {
                        current.push(Node::Any);
                    }
                }
                _ => {
                    self.at -= 1;
                    let breakers: &[char] = if open.is_empty() {
                        &['?', '*', '[', '{']
                    } else {
                        &['?', '*', '[', '{', '}', ',']
                    };
                    let text = self.text(breakers)?;
                    if !text.is_empty() {
                        current.push(Node::Text(text));
                    }
                }
            }
        }
        while !open.is_empty() {
            close(&mut open, &mut current);
        }
        Ok(current)
    }

    fn text(&mut self, breakers: &[char]) -> Result<Vec<char>, InvalidPattern> {
        let mut text = Vec::new();
        let mut escaped = false;
        while let Some(c) = self.peek()? {
            if !escaped {
                if c == '\\' {
                    escaped = true;
                    self.at += 1;
                    continue;
                }
                if breakers.contains(&c) {
                    break;
                }
            }
            escaped = false;
            text.push(c);
            self.at += 1;
        }
        Ok(text)
    }

    /// After `[`.
    fn range(&mut self) -> Result<Node, InvalidPattern> {
        let mut negated = false;
        let mut c = self.next()?.ok_or(InvalidPattern)?;
        if c == '!' {
            negated = true;
            c = self.next()?.ok_or(InvalidPattern)?;
        }
        let node = if self.peek()? == Some('-') {
            self.at += 1;
            let high = self.next()?.ok_or(InvalidPattern)?;
            if high < c {
                return Err(InvalidPattern);
            }
            Node::Range { low: c, high, negated }
        } else {
            self.at -= 1;
            let chars = self.text(&[']'])?;
            if chars.is_empty() {
                return Err(InvalidPattern);
            }
            Node::List { chars, negated }
        };
        if self.next()? == Some(']') { Ok(node) } else { Err(InvalidPattern) }
    }
}

fn close(open: &mut Vec<(Vec<Node>, Vec<Vec<Node>>)>, current: &mut Vec<Node>) {
    if let Some((outer, mut alternatives)) = open.pop() {
        alternatives.push(std::mem::replace(current, outer));
        current.push(Node::AnyOf(alternatives));
    }
}

#[cfg(test)]
mod tests {
    use super::Glob;

    fn matches(pattern: &str, text: &str) -> Option<bool> {
        Glob::new(pattern, Some('/')).ok().map(|glob| glob.matches(text))
    }

    #[test]
    fn stars_and_separators() {
        assert_eq!(matches("*", "a"), Some(true));
        assert_eq!(matches("*", "a/b"), Some(false));
        assert_eq!(matches("**", "a/b"), Some(true));
        assert_eq!(matches("config/*.y?ml", "config/a.yaml"), Some(true));
        assert_eq!(matches("a?b", "a/b"), Some(false));
    }

    #[test]
    fn classes_and_alternatives() {
        assert_eq!(matches("[a-c]*.{json,y*ml}", "b1.yaml"), Some(true));
        assert_eq!(matches("[!a-c]*", "b"), Some(false));
        assert_eq!(matches("{a,b{c,d}}e", "bde"), Some(true));
        assert_eq!(matches(r"\*", "*"), Some(true));
    }

    #[test]
    fn invalid_patterns() {
        for pattern in ["[", "[]", "[a", "[b-a]", "[a-]"] {
            assert_eq!(matches(pattern, "x"), None, "{pattern}");
        }
        assert_eq!(matches("{a", "a"), Some(true));
    }
}
