//! Epoll of our host.

use super::{ERR, HUP, IN, Kind, OUT, Ours, RDHUP};
use crate::stack::{Handle, Reply, Stack, Watch};

const ADD: i64 = 1;
const DELETE: i64 = 2;
const ONE_SHOT: i64 = 1 << 30;
const EDGE: i64 = 1 << 31;

/// What an epoll watches.
#[derive(Debug, Default)]
pub(super) struct Epoll(Vec<Item>);

#[derive(Clone, Copy, Debug)]
struct Item {
    target: Handle,
    events: i64,
    data: i64,
    /// How often the socket had been woken when it was last reported.
    seen: Wakes,
    /// It was added or changed since.
    fresh: bool,
}

/// How often a socket was woken: for reading, for writing.
pub(super) type Wakes = (u64, u64);

impl Item {
    /// Whether it may be reported: edge-triggered only if the socket was woken for one of its events.
    fn is_due(&self, wakes: Wakes) -> bool {
        let reads = self.events & (IN | RDHUP) != 0 && wakes.0 != self.seen.0;
        let writes = self.events & OUT != 0 && wakes.1 != self.seen.1;
        self.events & EDGE == 0 || self.fresh || reads || writes
    }
}

impl Ours {
    pub(super) fn watch(&mut self, epoll: Handle, watch: &Watch) -> Reply {
        let error = |name: &str| Reply::Error(name.to_owned());
        let Some(wakes) = self.sockets.get(watch.target).map(|s| s.wakes) else {
            return error("EBADF");
        };
        let Some(Kind::Epoll(n)) = self.sockets.get(epoll).map(|s| s.kind) else {
            return error("EINVAL");
        };
        let Some(Epoll(items)) = self.epolls.get_mut(n) else {
            return error("EINVAL");
        };
        let found = items.iter().position(|i| i.target == watch.target);
        let item = Item {
            target: watch.target,
            events: watch.events,
            data: watch.data,
            seen: wakes,
            fresh: true,
        };
        match (watch.how, found) {
            (ADD, Some(_)) => return error("EEXIST"),
            (ADD, None) => items.push(item),
            (_, None) => return error("ENOENT"),
            (DELETE, Some(i)) => {
                items.remove(i);
            }
            (_, Some(i)) => items[i] = item,
        }
        Reply::Value(0)
    }

    pub(super) fn wait_epoll(&mut self, epoll: Handle, most: usize) -> Reply {
        let Some(Kind::Epoll(n)) = self.sockets.get(epoll).map(|s| s.kind) else {
            return Reply::Error("EINVAL".to_owned());
        };
        let Some(Epoll(items)) = self.epolls.get_mut(n).map(std::mem::take) else {
            return Reply::Error("EINVAL".to_owned());
        };
        let (mut reported, mut left, mut last) = (Vec::new(), Vec::new(), Vec::new());
        for mut item in items {
            let socket = self.sockets.get(item.target);
            let open = socket.filter(|s| !matches!(s.kind, Kind::Closed));
            // A socket that was closed is not watched any more.
            let Some(wakes) = open.map(|s| s.wakes) else {
                continue;
            };
            if reported.len() >= most || !item.is_due(wakes) {
                left.push(item);
                continue;
            }
            let ready = match item.events & !(ONE_SHOT | EDGE) {
                0 => 0,
                events => self.poll(item.target).0 & (events | ERR | HUP),
            };
            (item.seen, item.fresh) = (wakes, false);
            if ready == 0 {
                left.push(item);
                continue;
            }
            reported.push((ready, item.data));
            if item.events & ONE_SHOT != 0 {
                item.events &= ONE_SHOT | EDGE;
            }
            // Others come first next time.
            last.push(item);
        }
        left.extend(last);
        if let Some(epoll) = self.epolls.get_mut(n) {
            *epoll = Epoll(left);
        }
        Reply::Events(reported)
    }
}
