//! What the encoders write: any tree of values, through a small trait.

use bstr::BString;

use crate::Value;

/// A value that can be written as YAML or JSON.
///
/// The encoders ask a value for its [`Node`], which holds handles of the children; they never
/// recurse, so that depth costs heap and not stack. Handles should be cheap to make: a reference
/// for owned trees (as `&Value` here), a reference count for shared ones.
///
/// ```
/// use std::rc::Rc;
/// use goyaml::{Node, Source};
///
/// #[derive(Clone)]
/// enum Shared {
///     Text(Rc<[u8]>),
///     List(Rc<[Shared]>),
/// }
///
/// impl Source for Shared {
///     type Text = Rc<[u8]>;
///
///     fn node(&self) -> Node<Self> {
///         match self {
///             Self::Text(text) => Node::String(Rc::clone(text)),
///             Self::List(items) => Node::Seq(items.to_vec()),
///         }
///     }
/// }
///
/// let text = |text: &str| Shared::Text(text.as_bytes().into());
/// let list = Shared::List(Rc::new([text("a"), text("8080")]));
/// assert_eq!(goyaml::to_yaml(list)?, "- a\n- \"8080\"\n");
/// # Ok::<(), goyaml::Error>(())
/// ```
pub trait Source: Sized {
    /// The handle of a string or of a map key.
    type Text: AsRef<[u8]>;

    /// What this value is, with handles of what it holds.
    fn node(&self) -> Node<Self>;
}

/// One level of a [`Source`].
#[derive(Clone, Debug)]
pub enum Node<S: Source> {
    /// `nil`
    Null,
    /// `bool`
    Bool(bool),
    /// Any signed integer.
    Int(i64),
    /// Any unsigned integer.
    Uint(u64),
    /// `float64`
    Float(f64),
    /// `string`
    String(S::Text),
    /// Any slice or array.
    Seq(Vec<S>),
    /// A map with string keys: each key once, in any order (byte order is the fastest).
    Map(Vec<(S::Text, S)>),
    /// A struct: its fields in the order of their declaration, which JSON and `to_yaml_pretty`
    /// keep and `to_yaml`, whose way leads through a map, does not.
    Struct(Vec<(S::Text, S)>),
    /// A slice that is nil: `null` in JSON and in `to_yaml`, `[]` in `to_yaml_pretty`.
    NilSeq,
    /// A map that is nil: `null` in JSON and in `to_yaml`, `{}` in `to_yaml_pretty`.
    NilMap,
}

impl<'a> Source for &'a Value {
    type Text = &'a BString;

    fn node(&self) -> Node<Self> {
        match *self {
            Value::Null => Node::Null,
            Value::Bool(value) => Node::Bool(*value),
            Value::Int(value) => Node::Int(*value),
            Value::Uint(value) => Node::Uint(*value),
            Value::Float(value) => Node::Float(*value),
            Value::String(text) => Node::String(text),
            Value::Seq(items) => Node::Seq(items.iter().collect()),
            Value::Map(map) => Node::Map(map.iter().collect()),
        }
    }
}
