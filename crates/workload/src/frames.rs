//! Objects multiplexed on one byte stream in frames, as in HTTP/2 (RFC 9113 §4.1).

use std::collections::VecDeque;

/// Bytes of a frame before its content: length, type, flags, stream (RFC 9113 §4.1).
pub const FRAME_HEADER: u64 = 9;

/// The order of frames on a stream, seen from both of its ends.
///
/// The server decides as late as possible: the object of a frame is chosen when the first byte of the frame is sent
/// for the first time. An object requested later is thus interleaved with data not sent yet, as behind a socket
/// with little unsent data (Linux: `TCP_NOTSENT_LOWAT`).
#[derive(Debug)]
pub(super) struct Frames {
    /// Maximum content of a frame.
    most: u64,
    /// Objects with bytes that are not in a frame yet, and their number, in round-robin order.
    turns: VecDeque<(usize, u64)>,
    /// Frames in final order that have not arrived completely.
    settled: VecDeque<Frame>,
    /// Stream position after the last of them.
    end: u64,
}

/// The part of a frame that has not arrived.
#[derive(Debug)]
struct Frame {
    object: usize,
    header: u64,
    content: u64,
    is_last: bool,
}

impl Frames {
    /// Frames with at most `most` bytes of content.
    pub(super) fn new(most: u64) -> Self {
        Self {
            most: most.max(1),
            turns: VecDeque::new(),
            settled: VecDeque::new(),
            end: 0,
        }
    }

    /// Adds objects (number and size) when `sent` bytes of the stream have been sent; returns the number of bytes
    /// added to the stream.
    pub(super) fn add(&mut self, sent: u64, objects: impl Iterator<Item = (usize, u64)>) -> u64 {
        while self.end < sent && self.settle() {}
        let mut bytes = 0u64;
        for (object, size) in objects {
            let headers = size.div_ceil(self.most).saturating_mul(FRAME_HEADER);
            bytes = bytes.saturating_add(size).saturating_add(headers);
            if size > 0 {
                self.turns.push_back((object, size));
            }
        }
        bytes
    }

    /// Fixes the object of the next frame, if there is one.
    fn settle(&mut self) -> bool {
        let Some((object, left)) = self.turns.pop_front() else {
            return false;
        };
        let content = left.min(self.most);
        let is_last = content == left;
        if !is_last {
            self.turns.push_back((object, left - content));
        }
        self.settled.push_back(Frame {
            object,
            header: FRAME_HEADER,
            content,
            is_last,
        });
        self.end += FRAME_HEADER + content;
        true
    }

    /// The content in the next `bytes` bytes of the stream, which have been sent.
    pub(super) fn content_within(&self, bytes: u64) -> u64 {
        let (mut left, mut content) = (bytes, 0);
        let mut take = |frame: &Frame| {
            let part = left.saturating_sub(frame.header).min(frame.content);
            content += part;
            left = left.saturating_sub(frame.header + frame.content);
            left > 0
        };
        if self.settled.iter().all(&mut take) {
            // They are settled when they arrive; until then a copy says what they will be.
            let mut later = Self {
                most: self.most,
                turns: self.turns.clone(),
                settled: VecDeque::new(),
                end: 0,
            };
            while later.settle() && later.settled.pop_front().is_some_and(|f| take(&f)) {}
        }
        content
    }

    /// Processes received bytes of the stream: reports for each object with content in them whether it is complete
    /// now, and returns the number of content bytes.
    pub(super) fn take(&mut self, bytes: u64, mut arrived: impl FnMut(usize, bool)) -> u64 {
        let (mut left, mut content) = (bytes, 0);
        while left > 0 {
            if self.settled.is_empty() && !self.settle() {
                break;
            }
            let Some(frame) = self.settled.front_mut() else {
                break;
            };
            let header = left.min(frame.header);
            frame.header -= header;
            left -= header;
            let part = left.min(frame.content);
            frame.content -= part;
            left -= part;
            content += part;
            let is_whole = frame.header == 0 && frame.content == 0;
            if part > 0 {
                arrived(frame.object, is_whole && frame.is_last);
            }
            if is_whole {
                self.settled.pop_front();
            }
        }
        content
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The objects with content in these bytes, with `!` if they are complete.
    fn take(frames: &mut Frames, bytes: u64) -> (u64, Vec<String>) {
        let mut seen = Vec::new();
        let content = frames.take(bytes, |object, is_last| {
            seen.push(format!("{object}{}", if is_last { "!" } else { "" }));
        });
        (content, seen)
    }

    #[test]
    fn objects_take_turns() {
        let mut frames = Frames::new(100);
        let bytes = frames.add(0, [(0, 250), (1, 100), (2, 101)].into_iter());
        // Three, one and two frames.
        assert_eq!(bytes, 451 + 6 * FRAME_HEADER);
        let (content, seen) = take(&mut frames, bytes);
        assert_eq!(content, 451);
        assert_eq!(seen, ["0", "1!", "2", "0", "2!", "0!"]);
        assert_eq!(take(&mut frames, 1).0, 0, "nothing is left");
    }

    #[test]
    fn headers_are_no_content() {
        let mut frames = Frames::new(10);
        assert_eq!(frames.add(0, [(7, 15)].into_iter()), 15 + 18);
        assert_eq!(take(&mut frames, 9), (0, vec![]));
        assert_eq!(take(&mut frames, 1), (1, vec!["7".to_owned()]));
        assert_eq!(take(&mut frames, 18), (9, vec!["7".to_owned()]));
        assert_eq!(take(&mut frames, 5), (5, vec!["7!".to_owned()]));
    }

    #[test]
    fn content_is_told_before_it_is_taken() {
        for settled in [0, 150, 500] {
            let mut frames = Frames::new(100);
            let bytes = frames.add(0, [(0, 250), (1, 100), (2, 101)].into_iter());
            frames.add(settled, std::iter::empty());
            for taken in [0, 50, 109, 130] {
                let told: Vec<_> = (0..=bytes).map(|n| frames.content_within(n)).collect();
                assert_eq!(told[0], 0);
                let (content, _) = take(&mut frames, taken);
                let rest = |n: u64| told[(taken + n).min(bytes) as usize] - content;
                for n in 0..=bytes - taken {
                    assert_eq!(frames.content_within(n), rest(n), "{settled} {taken} {n}");
                }
            }
        }
    }

    #[test]
    fn a_late_object_shares_with_what_was_not_sent() {
        let mut frames = Frames::new(100);
        frames.add(0, [(0, 400)].into_iter());
        // The second frame has begun (it ends at 218): the late object comes after the third, which was next, and
        // then in turn.
        frames.add(110, [(1, 200)].into_iter());
        let (content, seen) = take(&mut frames, 1000);
        assert_eq!(content, 600);
        assert_eq!(seen, ["0", "0", "0", "1", "0!", "1!"]);
    }

    #[test]
    fn what_arrived_is_settled() {
        let mut frames = Frames::new(100);
        frames.add(0, [(0, 300)].into_iter());
        assert_eq!(take(&mut frames, 150).1, ["0", "0"]);
        frames.add(150, [(1, 100)].into_iter());
        assert_eq!(take(&mut frames, 1000).1, ["0", "0!", "1!"]);
    }
}
