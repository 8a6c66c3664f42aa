//! Random expressions of a wanted kind.

use super::table;
use super::values::EACH;
use crate::random::Random;

/// What an expression gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Text,
    Int,
    Long,
    Float,
    /// Anything that counts as a number.
    Number,
    Bool,
    List,
    Words,
    Map,
    /// A map that nothing else holds, so that it may be changed.
    Fresh,
    Any,
    Time,
    /// A small number written out: what sizes may be.
    Small,
    /// A literal from one of the tables; the letter says which.
    Literal(char),
}

impl Kind {
    pub(super) fn from_letter(letter: char) -> Self {
        match letter {
            'S' => Self::Text,
            'I' => Self::Int,
            'L' => Self::Long,
            'F' => Self::Float,
            'N' => Self::Number,
            'B' => Self::Bool,
            'V' => Self::List,
            'W' => Self::Words,
            'M' => Self::Map,
            'G' => Self::Fresh,
            'A' => Self::Any,
            'T' => Self::Time,
            'k' => Self::Small,
            other => Self::Literal(other),
        }
    }

    pub(super) fn any(random: &mut Random) -> Self {
        const KINDS: [Kind; 10] = [
            Kind::Text,
            Kind::Text,
            Kind::Int,
            Kind::Long,
            Kind::Float,
            Kind::Bool,
            Kind::List,
            Kind::Words,
            Kind::Map,
            Kind::Any,
        ];
        KINDS[random.below(KINDS.len())]
    }

    /// What is mostly printed.
    pub(super) fn printable(random: &mut Random) -> Self {
        if random.chance(1, 2) { Self::Text } else { Self::any(random) }
    }
}

/// What an expression can refer to.
#[derive(Debug, Clone, Default)]
pub(super) struct Scope {
    pub(super) variables: Vec<(String, Kind)>,
    pub(super) defines: Vec<String>,
    /// The loops around: `break` is allowed in one.
    pub(super) loops: usize,
    /// The kind of the dot, when it is not the root.
    dot: Option<Kind>,
    /// Variable names used so far.
    count: usize,
}

impl Scope {
    /// A template's body: it sees no variables, and its dot may be anything.
    pub(super) fn inside_define(outside: &Self) -> Self {
        Self { defines: outside.defines.clone(), dot: Some(Kind::Any), ..Self::default() }
    }

    pub(super) fn with_dot(&self, kind: Kind) -> Self {
        // Names go on, so that an inner variable never hides an outer one of another kind.
        Self { dot: Some(kind), ..self.clone() }
    }

    pub(super) fn declare(&mut self, kind: Kind) -> String {
        let name = format!("$v{}", self.count);
        self.count += 1;
        self.variables.push((name.clone(), kind));
        name
    }

    /// A variable that may be assigned to: scalars only, so that nothing grows in a loop.
    pub(super) fn assignable(&self, random: &mut Random) -> Option<(String, Kind)> {
        let scalars: Vec<&(String, Kind)> = self
            .variables
            .iter()
            .filter(|(_, kind)| matches!(kind, Kind::Text | Kind::Int | Kind::Bool))
            .collect();
        let chosen = scalars.get(random.below(scalars.len() * 2))?; // half the time none
        Some((*chosen).clone())
    }
}

/// An expression.
#[derive(Debug, Clone)]
pub enum Expression {
    /// A literal, a field or a variable.
    Leaf(String),
    /// A call; the flag says that the last argument is piped in.
    Call(String, Vec<Self>, bool),
}

impl Expression {
    /// An expression of a kind, nested at most so deep.
    pub(super) fn generate(random: &mut Random, scope: &Scope, kind: Kind, depth: usize) -> Self {
        // Now and then something of a wrong kind, for the error texts.
        let kind = if !matches!(kind, Kind::Small | Kind::Fresh) && random.chance(1, 90) {
            Kind::any(random)
        } else {
            kind
        };
        let kind = match kind {
            Kind::Number => match random.below(8) {
                0..=2 => Kind::Int,
                3 => Kind::Long,
                4 | 5 => Kind::Float,
                6 => Kind::Text,
                _ => Kind::Any,
            },
            Kind::Any if random.chance(2, 3) => Kind::any(random),
            other => other,
        };
        if let Kind::Literal(letter) = kind {
            return literal(random, scope, letter, depth);
        }
        if matches!(kind, Kind::Small) || (depth == 0 && kind != Kind::Time) || random.chance(1, 4)
        {
            return leaf(random, scope, kind);
        }
        if kind == Kind::Fresh {
            let key = Self::generate(random, scope, Kind::Literal('m'), 0);
            let value = Self::generate(random, scope, Kind::Any, depth - 1);
            return match random.below(3) {
                0 => {
                    let map = Self::generate(random, scope, Kind::Map, depth - 1);
                    Self::Call("deepCopy".into(), vec![map], false)
                }
                _ => Self::Call("dict".into(), vec![key, value], false),
            };
        }
        let fitting: Vec<&(char, &str, &str)> = table::CALLS
            .iter()
            .filter(|(result, _, arguments)| {
                Kind::from_letter(*result) == kind
                    && (!arguments.contains('d') || !scope.defines.is_empty())
            })
            .collect();
        let Some((_, name, letters)) = fitting.get(random.below(fitting.len())) else {
            return leaf(random, scope, kind);
        };
        let below = depth.saturating_sub(1);
        let arguments = if *letters == "%" {
            let (format, kinds) = table::FORMATS[random.below(table::FORMATS.len())];
            let mut arguments = vec![Self::Leaf(format!("\"{format}\""))];
            for letter in kinds.chars() {
                arguments.push(Self::generate(random, scope, Kind::from_letter(letter), below));
            }
            arguments
        } else {
            letters
                .chars()
                .map(|letter| Self::generate(random, scope, Kind::from_letter(letter), below))
                .collect()
        };
        let piped = !arguments.is_empty() && !letters.contains('!') && random.chance(1, 3);
        Self::Call((*name).to_owned(), arguments, piped)
    }

    /// The same, cut to a bounded size for an assignment in a loop.
    pub(super) fn bounded(self, kind: Kind) -> Self {
        match kind {
            Kind::Text => {
                let text = Self::Call("toString".into(), vec![self], false);
                Self::Call("trunc".into(), vec![Self::Leaf("40".into()), text], true)
            }
            Kind::Int => Self::Call("int".into(), vec![self], false),
            _ => self,
        }
    }

    /// As an operand.
    fn operand(&self) -> String {
        match self {
            Self::Leaf(text) => text.clone(),
            Self::Call(..) => format!("({})", self.bare()),
        }
    }

    /// As a whole pipeline.
    pub fn bare(&self) -> String {
        match self {
            Self::Leaf(text) => text.clone(),
            Self::Call(name, arguments, piped) => {
                let (first, last) = match arguments.split_last() {
                    Some((last, first)) if *piped => (first, Some(last)),
                    _ => (arguments.as_slice(), None),
                };
                let mut out = String::new();
                if let Some(last) = last {
                    out.push_str(&last.bare());
                    out.push_str(" | ");
                }
                out.push_str(name);
                for argument in first {
                    out.push(' ');
                    out.push_str(&argument.operand());
                }
                out
            }
        }
    }

    /// Every expression that is one step simpler.
    pub(super) fn simpler(&self) -> Vec<Self> {
        let Self::Call(name, arguments, piped) = self else {
            return Vec::new();
        };
        let mut out = arguments.clone();
        if *piped {
            out.push(Self::Call(name.clone(), arguments.clone(), false));
        }
        for (index, argument) in arguments.iter().enumerate() {
            for simpler in argument.simpler() {
                let mut changed = arguments.clone();
                changed[index] = simpler;
                out.push(Self::Call(name.clone(), changed, *piped));
            }
        }
        out
    }
}

const TEXTS: [&str; 22] = [
    "\"\"",
    "\"a\"",
    "\"text\"",
    "\"ü☃😀\"",
    "\"a,b,c\"",
    "\"-\"",
    "\" \"",
    "\"x\\ny\"",
    "\"Hello World\"",
    "`raw \"q\"`",
    "\"1\"",
    "\"1.5\"",
    "\"true\"",
    "\"a.b/c-d_e\"",
    "\"<&>\"",
    "\"\\t\"",
    "\"ß\"",
    "\"ＦＵＬＬ\"",
    "\"null\"",
    "\"a: b\"",
    "\",\"",
    "\"e\\u0301\"",
];

fn leaf(random: &mut Random, scope: &Scope, kind: Kind) -> Expression {
    let number = random.below(EACH);
    let variables: Vec<&String> =
        scope.variables.iter().filter(|(_, held)| *held == kind).map(|(name, _)| name).collect();
    if !variables.is_empty() && random.chance(1, 2) {
        return Expression::Leaf(variables[random.below(variables.len())].clone());
    }
    if scope.dot == Some(kind) && random.chance(1, 2) {
        return Expression::Leaf(".".into());
    }
    // Inside a template the root is whatever was passed.
    let root = if scope.dot.is_some() { "$" } else { "" };
    let field = |letter: char| format!("{root}.Values.{letter}{number}");
    Expression::Leaf(match kind {
        Kind::Text if random.chance(1, 2) => random.pick(&TEXTS).to_owned(),
        Kind::Text => match random.below(8) {
            0 => format!("{root}.Release.Name"),
            1 => format!("{root}.Chart.Version"),
            _ => field('s'),
        },
        Kind::Int | Kind::Number => {
            random.pick(&["0", "1", "-1", "7", "42", "100", "0x10", "'a'"]).to_owned()
        }
        Kind::Long => format!("(int64 {})", field('i')),
        Kind::Float if random.chance(1, 3) => {
            random.pick(&["0.5", "1.0", "-2.25", "1e3", "1e21"]).to_owned()
        }
        Kind::Float => {
            if random.chance(1, 2) {
                field('i')
            } else {
                field('f')
            }
        }
        Kind::Bool if random.chance(1, 2) => random.pick(&["true", "false"]).to_owned(),
        Kind::Bool => field('b'),
        Kind::List => match random.below(4) {
            0 => "(list 1 \"a\" nil)".to_owned(),
            1 => "(list)".to_owned(),
            _ => field('l'),
        },
        Kind::Words => {
            if random.chance(1, 3) {
                "(splitList \",\" \"b,a,c\")".into()
            } else {
                field('w')
            }
        }
        Kind::Map => match random.below(6) {
            0 => "dict".to_owned(),
            1 => "(dict \"a\" 1 \"b\" (dict \"c\" \"x\"))".to_owned(),
            2 => format!("{root}.Values.m{number}.b"),
            _ => field('m'),
        },
        Kind::Fresh => "(dict \"a\" 1 \"b\" (dict \"c\" \"x\"))".to_owned(),
        Kind::Time => "(toDate \"2006-01-02 15:04\" \"2021-03-04 05:06\")".to_owned(),
        Kind::Small => random.pick(&["0", "1", "2", "3", "5", "-1", "4"]).to_owned(),
        Kind::Any | Kind::Literal(_) => match random.below(6) {
            0 => field('z').replace(|c: char| c.is_ascii_digit(), "0"),
            1 => format!("{root}.Values.none"),
            2 => format!("{root}.Values.m{number}.a"),
            _ => field('x'),
        },
    })
}

fn literal(random: &mut Random, scope: &Scope, letter: char, depth: usize) -> Expression {
    let quoted = |random: &mut Random, list: &[&str]| format!("\"{}\"", random.pick(list));
    Expression::Leaf(match letter {
        'X' => quoted(random, table::PATTERNS),
        'r' => quoted(random, table::REPLACEMENTS),
        'm' => quoted(random, table::KEYS),
        'e' => quoted(random, table::KINDS),
        'j' => quoted(random, table::JSON),
        'g' => quoted(random, table::TOML),
        'v' => quoted(random, table::VERSIONS),
        'c' => quoted(random, table::CONSTRAINTS),
        'y' => quoted(random, table::LAYOUTS),
        'Y' => quoted(random, table::TIMES),
        'q' => quoted(random, table::DURATIONS),
        'o' => quoted(random, table::ZONES),
        't' => quoted(random, table::TEMPLATES),
        'd' => format!("\"{}\"", scope.defines[random.below(scope.defines.len())]),
        'h' => random.pick(&["1", "2", "3"]).to_owned(),
        // A divisor, hardly ever zero.
        'n' => random.pick(&["1", "2", "3", "-7", "10", "2.5", "\"4\"", "0"]).to_owned(),
        // Indices that are mostly there, and counts that are hardly ever negative.
        'i' => random.pick(&["0", "0", "0", "0", "0", "1", "1", "2", "-1"]).to_owned(),
        'p' => {
            random.pick(&["0", "1", "2", "2", "3", "4", "4", "6", "8", "2", "3", "-1"]).to_owned()
        }
        // A layout and a time in it, mostly: one letter that stands for two arguments.
        '!' => random.pick(&["\"2006-01-02\" \"2020-02-29\"", "\"2006\" \"x\""]).to_owned(),
        // What has a length, mostly.
        'x' => {
            let kind = [Kind::Text, Kind::List, Kind::Map, Kind::Words, Kind::Any][random.below(5)];
            return Expression::generate(random, scope, kind, depth);
        }
        '.' => random.pick(&["$", "$", "$", "."]).to_owned(),
        '$' => "$".to_owned(),
        'u' => "(dict \"scheme\" \"http\" \"host\" \"h\" \"path\" \"/p\")".to_owned(),
        'K' => {
            let map = Expression::generate(random, scope, Kind::Map, depth);
            return Expression::Call("keys".into(), vec![map], false);
        }
        // A scalar: what a map may be given without holding itself.
        _ => {
            let kind = [Kind::Text, Kind::Int, Kind::Float, Kind::Bool][random.below(4)];
            return Expression::generate(random, scope, kind, depth);
        }
    })
}
