//! Messages by the lines that wrote them.

use std::collections::BTreeMap;

use tcpwhy_wire::calls::Kind;

use super::messages::{Message, Piece};
use super::sockets::Watched;

/// The calls that a message consists of: which, from where, and how often, in the order of their first ones.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Pattern(pub(super) Vec<(u32, Kind, usize)>);

/// Messages that were written by the same lines.
#[derive(Clone, Debug, Default)]
pub(super) struct Group {
    pub(super) messages: usize,
    /// Bytes of the first one's pieces.
    pub(super) example: Vec<u64>,
}

impl Pattern {
    fn of(message: &Message) -> Self {
        let mut pattern: Vec<(u32, Kind, usize)> = Vec::new();
        for Piece { stack, kind, .. } in &message.pieces {
            match pattern.iter_mut().find(|(at, call, _)| at == stack && call == kind) {
                Some((.., count)) => *count += 1,
                None => pattern.push((*stack, *kind, 1)),
            }
        }
        Self(pattern)
    }
}

/// A socket's split messages, the most frequent pattern first.
pub(super) fn groups(socket: &Watched<'_>) -> Vec<(Pattern, Group)> {
    let mut groups: BTreeMap<Pattern, Group> = BTreeMap::new();
    for message in socket.split() {
        let group = groups.entry(Pattern::of(message)).or_default();
        if group.messages == 0 {
            group.example = message.pieces.iter().map(|piece| piece.bytes).collect();
        }
        group.messages += 1;
    }
    let mut groups: Vec<_> = groups.into_iter().collect();
    groups.sort_by_key(|(_, group)| std::cmp::Reverse(group.messages));
    groups
}
