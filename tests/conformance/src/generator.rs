//! Random valid templates and values, and the shrinking of one that differs.
//!
//! A case is a tree, so that a difference found in a page of template is reported as a line. What
//! is generated is mostly of the right kind, since a page that fails at its first action compares
//! little; now and then an argument of any kind stands in, for the error texts.
//!
//! Left out on purpose: what is random by nature, what walks Go maps without sorting (`keys` and
//! `values` are always sorted here), maps made to hold themselves (Go overflows its stack), and
//! anything that grows without bound in a loop.

mod expression;
mod table;
mod values;

use std::fmt::Write as _;

pub use expression::Expression;
use expression::{Kind, Scope};

use crate::cases::{Case, Named};
use crate::random::Random;

/// A piece of a template.
#[derive(Debug, Clone)]
pub enum Node {
    /// Literal text.
    Text(String),
    /// `{{ … }}` with its trim markers; the text before the expression holds a declaration.
    Action(Trim, String, Expression),
    /// `{{ HEAD EXPRESSION }} body {{ else }} other {{ end }}`.
    Block(Trim, String, Expression, Vec<Self>, Vec<Self>),
    /// A fixed action, such as `break`.
    Word(String),
}

/// The trim markers of an action: left and right.
pub type Trim = (bool, bool);

/// A generated case.
#[derive(Debug, Clone)]
pub struct Generated {
    /// What it was made from: the run's seed and the number in the run.
    pub origin: String,
    /// The templates that it defines, in a partial.
    defines: Vec<(String, Vec<Node>)>,
    nodes: Vec<Node>,
    /// Values as top-level YAML lines, each of which can be left out.
    values: Vec<String>,
    strict: bool,
}

impl Generated {
    /// Case `number` of the run with this seed.
    pub fn new(seed: u64, number: u64) -> Self {
        let mut random = Random::new(seed.wrapping_mul(0x2545_f491_4f6c_dd1d).wrapping_add(number));
        let mut scope = Scope::default();
        let mut defines = Vec::new();
        for index in 0..random.below(4) {
            let name = format!("d{index}");
            let body = nodes(&mut random, &mut Scope::inside_define(&scope), 2);
            defines.push((name.clone(), body));
            scope.defines.push(name);
        }
        let nodes = nodes(&mut random, &mut scope, 3);
        Self {
            origin: format!("seed {seed}, case {number}"),
            defines,
            nodes,
            values: values::lines(&mut random),
            strict: random.chance(1, 12),
        }
    }

    /// The case to render.
    pub fn case(&self) -> Case {
        let mut template = String::new();
        write_nodes(&self.nodes, &mut template);
        let mut case = Case::new(&self.origin, template, self.values.join("\n"));
        case.strict = self.strict;
        let mut partial = String::new();
        for (name, body) in &self.defines {
            let _ = write!(partial, "{{{{ define \"{name}\" }}}}");
            write_nodes(body, &mut partial);
            partial.push_str("{{ end }}\n");
        }
        if !partial.is_empty() {
            case.partials.push(Named { name: "_d.tpl".into(), text: partial.into_bytes() });
        }
        case
    }

    /// The smallest case found for which `differs` still holds.
    #[must_use]
    pub fn shrink(&self, differs: &mut dyn FnMut(&Self) -> bool) -> Self {
        let mut best = self.clone();
        // Each pass tries every simplification once; what helps is kept at once.
        let mut tries = 3000;
        'again: while tries > 0 {
            for candidate in best.simpler() {
                tries -= 1;
                if tries == 0 {
                    break 'again;
                }
                if differs(&candidate) {
                    best = candidate;
                    continue 'again;
                }
            }
            break;
        }
        best
    }

    fn simpler(&self) -> Vec<Self> {
        let mut out = Vec::new();
        out.extend(
            simpler_lists(&self.nodes).into_iter().map(|nodes| Self { nodes, ..self.clone() }),
        );
        for index in 0..self.defines.len() {
            let mut without = self.clone();
            without.defines.remove(index);
            out.push(without);
            for body in simpler_lists(&self.defines[index].1) {
                let mut simpler = self.clone();
                simpler.defines[index].1 = body;
                out.push(simpler);
            }
        }
        for index in 0..self.values.len() {
            let mut without = self.clone();
            without.values.remove(index);
            out.push(without);
        }
        out
    }
}

/// All lists that are one step simpler: halves first, then single nodes left out or simplified.
fn simpler_lists(nodes: &[Node]) -> Vec<Vec<Node>> {
    let mut out = Vec::new();
    if nodes.len() > 3 {
        out.push(nodes[..nodes.len() / 2].to_vec());
        out.push(nodes[nodes.len() / 2..].to_vec());
    }
    for index in 0..nodes.len() {
        let with = |middle: Vec<Node>| {
            let mut list = nodes[..index].to_vec();
            list.extend(middle);
            list.extend_from_slice(&nodes[index + 1..]);
            list
        };
        out.push(with(Vec::new()));
        match &nodes[index] {
            Node::Action(trim, head, expression) => {
                if *trim != (false, false) {
                    let plain = Node::Action((false, false), head.clone(), expression.clone());
                    out.push(with(vec![plain]));
                }
                for simpler in expression.simpler() {
                    out.push(with(vec![Node::Action(*trim, head.clone(), simpler)]));
                }
            }
            Node::Block(trim, head, expression, body, other) => {
                out.push(with(body.clone()));
                out.push(with(other.clone()));
                if !other.is_empty() {
                    let block =
                        Node::Block(*trim, head.clone(), expression.clone(), body.clone(), vec![]);
                    out.push(with(vec![block]));
                }
                let block = |expression: Expression, body: Vec<Node>, other: Vec<Node>| {
                    with(vec![Node::Block(*trim, head.clone(), expression, body, other)])
                };
                for simpler in expression.simpler() {
                    out.push(block(simpler, body.clone(), other.clone()));
                }
                for simpler in simpler_lists(body) {
                    out.push(block(expression.clone(), simpler, other.clone()));
                }
                for simpler in simpler_lists(other) {
                    out.push(block(expression.clone(), body.clone(), simpler));
                }
            }
            Node::Text(_) | Node::Word(_) => {}
        }
    }
    out
}

fn open(trim: Trim) -> &'static str {
    if trim.0 { "{{- " } else { "{{ " }
}

fn close(trim: Trim) -> &'static str {
    if trim.1 { " -}}" } else { " }}" }
}

fn write_nodes(nodes: &[Node], out: &mut String) {
    for node in nodes {
        match node {
            Node::Text(text) => out.push_str(text),
            Node::Word(word) => {
                let _ = write!(out, "{{{{ {word} }}}}");
            }
            Node::Action(trim, head, expression) => {
                let _ = write!(out, "{}{head}{}{}", open(*trim), expression.bare(), close(*trim));
            }
            Node::Block(trim, head, expression, body, other) => {
                let _ = write!(out, "{}{head}{}{}", open(*trim), expression.bare(), close(*trim));
                write_nodes(body, out);
                if !other.is_empty() {
                    out.push_str("{{ else }}");
                    write_nodes(other, out);
                }
                let _ = write!(out, "{}end{}", open(*trim), close(*trim));
            }
        }
    }
}

const TEXTS: [&str; 12] = [
    " ",
    "\n",
    "text ",
    "a: ",
    "\n  - ",
    "ü☃ ",
    "{ } ",
    "\t",
    "\n\n",
    "<no value>",
    "'\"",
    "# x\n",
];

/// A list of nodes; declarations are seen by the nodes after them.
fn nodes(random: &mut Random, scope: &mut Scope, depth: usize) -> Vec<Node> {
    let mut list = Vec::new();
    let declared = scope.variables.len();
    for _ in 0..=random.below(4) {
        if random.chance(1, 2) {
            list.push(Node::Text(random.pick(&TEXTS).to_owned()));
        }
        list.push(node(random, scope, depth));
    }
    scope.variables.truncate(declared);
    list
}

fn node(random: &mut Random, scope: &mut Scope, depth: usize) -> Node {
    let trim = (random.chance(1, 6), random.chance(1, 8));
    let no_head = String::new;
    match random.below(if depth == 0 { 9 } else { 20 }) {
        0..=5 => {
            let kind = Kind::printable(random);
            Node::Action(trim, no_head(), Expression::generate(random, scope, kind, 3))
        }
        6 | 7 => {
            // A declaration, or an assignment to a scalar that exists.
            if let Some((name, kind)) = scope.assignable(random) {
                let expression = Expression::generate(random, scope, kind, 2).bounded(kind);
                return Node::Action(trim, format!("{name} = "), expression);
            }
            let kind = Kind::any(random);
            let expression = Expression::generate(random, scope, kind, 2);
            let name = scope.declare(kind);
            Node::Action(trim, format!("{name} := "), expression)
        }
        8 => {
            if scope.loops > 0 && random.chance(1, 2) {
                return Node::Word(random.pick(&["break", "continue"]).to_owned());
            }
            match scope.defines.len() {
                0 => Node::Text("{{/* a comment */}}".into()),
                count => {
                    let name = scope.defines[random.below(count)].clone();
                    Node::Word(format!("template \"{name}\" {}", random.pick(&[".", "$", ""])))
                }
            }
        }
        9..=12 => {
            let kind = if random.chance(2, 3) { Kind::Bool } else { Kind::any(random) };
            let condition = Expression::generate(random, scope, kind, 3);
            let body = nodes(random, scope, depth - 1);
            let other = if random.chance(1, 2) { nodes(random, scope, depth - 1) } else { vec![] };
            Node::Block(trim, "if ".into(), condition, body, other)
        }
        13..=15 => {
            let kind = Kind::any(random);
            let subject = Expression::generate(random, scope, kind, 2);
            let mut inner = scope.with_dot(kind);
            let head = if random.chance(1, 3) {
                format!("with {} := ", inner.declare(kind))
            } else {
                "with ".to_owned()
            };
            let body = nodes(random, &mut inner, depth - 1);
            let other = if random.chance(1, 3) { nodes(random, scope, depth - 1) } else { vec![] };
            Node::Block(trim, head, subject, body, other)
        }
        _ => {
            let kind = *[Kind::List, Kind::Words, Kind::Map, Kind::Small, Kind::List]
                .get(random.below(5))
                .unwrap_or(&Kind::List);
            let subject = Expression::generate(random, scope, kind, 2);
            let element = match kind {
                Kind::Words => Kind::Text,
                Kind::Small => Kind::Int,
                _ => Kind::Any,
            };
            let mut inner = scope.with_dot(element);
            inner.loops += 1;
            // A number has no second variable.
            let head = match random.below(if kind == Kind::Small { 2 } else { 3 }) {
                0 => "range ".to_owned(),
                1 => format!("range {} := ", inner.declare(element)),
                _ => {
                    let key = inner.declare(if kind == Kind::Map { Kind::Text } else { Kind::Int });
                    format!("range {key}, {} := ", inner.declare(element))
                }
            };
            let body = nodes(random, &mut inner, depth - 1);
            let other = if random.chance(1, 3) { nodes(random, scope, depth - 1) } else { vec![] };
            Node::Block(trim, head, subject, body, other)
        }
    }
}
