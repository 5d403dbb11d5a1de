use bytes::Bytes;

/// The data of a segment: real bytes, or only their number.
///
/// Simulated transfers seldom need content. A synthetic payload is only a length: it takes no memory and is written
/// as zeros. Real bytes are boxed so that a segment stays small.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Payload {
    len: u32,
    bytes: Option<Box<Bytes>>,
}

impl Payload {
    /// A payload of length zero.
    pub const EMPTY: Self = Self {
        len: 0,
        bytes: None,
    };

    /// `len` bytes without content.
    #[inline]
    pub const fn synthetic(len: u32) -> Self {
        Self { len, bytes: None }
    }
    /// Real content; empty content is [`Payload::EMPTY`].
    pub fn real(bytes: Bytes) -> Self {
        if bytes.is_empty() {
            return Self::EMPTY;
        }
        Self {
            len: u32::try_from(bytes.len()).unwrap_or(u32::MAX),
            bytes: Some(Box::new(bytes)),
        }
    }
    /// Number of bytes.
    #[inline]
    pub const fn len(&self) -> u32 {
        self.len
    }
    /// Whether there is no data.
    #[inline]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }
    /// The content, if it is real.
    #[inline]
    pub fn bytes(&self) -> Option<&Bytes> {
        self.bytes.as_deref()
    }
    /// Whether it has real content.
    #[inline]
    pub const fn is_real(&self) -> bool {
        self.bytes.is_some()
    }
    /// Bytes `from..to` of the payload.
    pub fn slice(&self, from: u32, to: u32) -> Self {
        let to = to.min(self.len);
        let from = from.min(to);
        match &self.bytes {
            Some(b) => Self::real(b.slice(from as usize..to as usize)),
            None => Self::synthetic(to - from),
        }
    }
}
