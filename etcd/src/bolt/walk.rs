//! Going through a tree in the order of its keys, whatever the file says.
//!
//! Each page is visited once, so that a walk ends; each key must lie between those that lead to
//! its page, so that a page of another time or place is found out.

use std::borrow::Cow;
use std::rc::Rc;

use super::page::{Places, Run};
use super::{Database, Root};
use crate::fault::{Damage, ElementPart, Fault, Sink};

/// Pages on the way to a leaf; with two elements a page this is more than a file can have.
const MAX_DEPTH: usize = 64;

/// A key and a value on a leaf.
pub(crate) struct Element<'a> {
    run: &'a Run<'a>,
    index: usize,
    places: Places,
    key: Cow<'a, [u8]>,
}

impl<'a> Element<'a> {
    pub(super) fn of(run: &'a Run<'a>, index: usize) -> Result<Self, Fault> {
        let places = run.places(index)?;
        Ok(Self { run, index, places, key: run.bytes(places.key)? })
    }

    pub(crate) fn key(&self) -> &[u8] {
        &self.key
    }

    pub(crate) const fn flags(&self) -> u32 {
        self.places.flags
    }

    /// The page, 0 for a bucket within another page, and the element's number on it.
    pub(crate) const fn place(&self) -> (u64, usize) {
        (self.run.page, self.index)
    }

    /// An error about this element.
    pub(crate) fn fault(&self, damage: Damage) -> Fault {
        self.run.fault(self.index, damage)
    }

    /// Bytes of the value.
    pub(crate) const fn value_size(&self) -> u64 {
        self.places.value.1
    }

    /// The value.
    ///
    /// # Errors
    /// When it has more than `limit` bytes, or cannot be read.
    pub(crate) fn value(&self, limit: u64) -> Result<Cow<'_, [u8]>, Fault> {
        let size = self.value_size();
        if size > limit {
            return Err(self.fault(Damage::TooLarge { part: ElementPart::Value, size, limit }));
        }
        self.run.bytes(self.places.value)
    }

    /// The first bytes of the value, `size` of them or all that there are.
    pub(crate) fn value_head(&self, size: u64) -> Result<Cow<'_, [u8]>, Fault> {
        let (at, all) = self.places.value;
        self.run.bytes((at, all.min(size)))
    }
}

/// A page that is still to be visited, and between which keys its own must lie.
struct Pending {
    page: u64,
    depth: usize,
    from: Option<Rc<[u8]>>,
    to: Option<Rc<[u8]>>,
}

/// Which pages were visited.
struct Visited(Vec<u64>);

impl Visited {
    fn new(pages: u64) -> Self {
        Self(vec![0; usize::try_from(pages.div_ceil(64)).unwrap_or_default()])
    }

    /// Marks a page; `false` when it was marked before, or is none.
    fn mark(&mut self, page: u64) -> bool {
        let word = usize::try_from(page / 64).ok().and_then(|at| self.0.get_mut(at));
        let Some(word) = word else { return false };
        let bit = 1 << (page % 64);
        let is_new = *word & bit == 0;
        *word |= bit;
        is_new
    }
}

impl Database {
    /// Visits the elements below a root.
    pub(super) fn walk_from(
        &self,
        root: Root,
        faults: &mut Sink<'_>,
        visit: &mut dyn FnMut(&Element<'_>) -> bool,
    ) {
        let root = match root {
            Root::Page(page) => page,
            Root::Inline(bytes) => {
                match Run::inline(self, &bytes) {
                    Ok(run) => drop(leaf(&run, &Pending::of(0, 0), faults, visit)),
                    Err(fault) => faults(fault),
                }
                return;
            }
        };
        let mut visited = Visited::new(self.pages);
        visited.mark(root);
        let mut pending = vec![Pending::of(root, 0)];
        let mut buffer = Vec::new();
        while let Some(next) = pending.pop() {
            let run = match Run::load(self, next.page, &mut buffer) {
                Ok(run) => run,
                Err(fault) => {
                    faults(fault);
                    continue;
                }
            };
            if !(1..=run.overflow).all(|further| visited.mark(next.page + further)) {
                faults(Fault::Page { page: next.page, damage: Damage::Twice });
                continue;
            }
            if run.is_branch {
                branch(&run, &next, &mut visited, &mut pending, faults);
            } else if !leaf(&run, &next, faults, visit) {
                return;
            }
        }
    }
}

impl Pending {
    const fn of(page: u64, depth: usize) -> Self {
        Self { page, depth, from: None, to: None }
    }

    /// Whether a key may be on this page.
    fn has_room_for(&self, key: &[u8]) -> bool {
        self.from.as_ref().is_none_or(|from| key >= &**from)
            && self.to.as_ref().is_none_or(|to| key < &**to)
    }
}

/// Visits the elements of a leaf; `false` when it was enough.
fn leaf(
    run: &Run<'_>,
    page: &Pending,
    faults: &mut Sink<'_>,
    visit: &mut dyn FnMut(&Element<'_>) -> bool,
) -> bool {
    let mut last: Option<Cow<'_, [u8]>> = None;
    let mut used = 0;
    check_count(run, page, faults);
    for index in 0..run.count {
        let element = match Element::of(run, index) {
            Ok(element) => element,
            Err(fault) => {
                faults(fault);
                continue;
            }
        };
        // Else a small file could hold values without end.
        used += element.places.key.1 + element.places.value.1;
        if used > run.size() {
            faults(Fault::Page { page: run.page, damage: Damage::Overlap });
            return true;
        }
        let follows = last.as_ref().is_none_or(|last| element.key() > &**last);
        if !follows || !page.has_room_for(element.key()) {
            faults(run.fault(index, Damage::Order));
            continue;
        }
        if !visit(&element) {
            return false;
        }
        last = Some(element.key);
    }
    true
}

/// Says when a page may have more elements than it says. bbolt puts the first key right behind the
/// elements (`WriteInodeToPage` in `internal/common/inode.go`).
fn check_count(run: &Run<'_>, page: &Pending, faults: &mut Sink<'_>) {
    let is_right = match run.places(0) {
        Ok(first) => first.key.0 == run.table(),
        // Only a whole tree can be empty.
        Err(_) => run.count > 0 || (page.depth == 0 && !run.is_branch),
    };
    if !is_right {
        let count = u16::try_from(run.count).unwrap_or(u16::MAX);
        faults(Fault::Page { page: run.page, damage: Damage::Gap { count } });
    }
}

/// Puts the pages below a branch on the list, the first one on top.
fn branch(
    run: &Run<'_>,
    page: &Pending,
    visited: &mut Visited,
    pending: &mut Vec<Pending>,
    faults: &mut Sink<'_>,
) {
    if page.depth >= MAX_DEPTH {
        faults(Fault::Page { page: page.page, damage: Damage::Depth { limit: MAX_DEPTH } });
        return;
    }
    let mut children: Vec<(u64, Option<Rc<[u8]>>)> = Vec::with_capacity(run.count);
    let mut used = 0;
    check_count(run, page, faults);
    for index in 0..run.count {
        let element = run.places(index).and_then(|it| {
            used += it.key.1;
            if used > run.size() {
                return Err(run.fault(index, Damage::Overlap));
            }
            Ok((it.child, run.bytes(it.key)?))
        });
        let (child, key) = match element {
            Ok(element) => element,
            Err(fault) => {
                faults(fault);
                continue;
            }
        };
        if !visited.mark(child) {
            let pages = run.pages();
            let damage = if child >= pages { Damage::Range { pages } } else { Damage::Twice };
            faults(Fault::Page { page: child, damage });
            continue;
        }
        // A key that is out of order leads to a page all the same, but bounds nothing.
        let follows =
            |(_, last): &(u64, Option<Rc<[u8]>>)| last.as_ref().is_none_or(|last| **last < *key);
        let is_bound = page.has_room_for(&key) && children.last().is_none_or(follows);
        if !is_bound {
            faults(run.fault(index, Damage::Order));
        }
        children.push((child, is_bound.then(|| Rc::from(&*key))));
    }
    let mut to = page.to.clone();
    let last = children.len();
    for (number, (child, key)) in children.into_iter().rev().enumerate() {
        // Smaller keys than any are looked for on the first page.
        let is_first = number + 1 == last;
        let from = key.clone().filter(|_| !is_first).or_else(|| page.from.clone());
        pending.push(Pending { page: child, depth: page.depth + 1, from, to: to.clone() });
        if key.is_some() {
            to = key;
        }
    }
}
