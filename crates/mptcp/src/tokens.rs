use std::collections::BTreeMap;

/// The connections of a host by token: looked up when a SYN with MP_JOIN arrives whose addresses belong to no
/// connection (RFC 8684 §3.2).
#[derive(Clone, Debug)]
pub struct Tokens<T>(BTreeMap<u32, T>);

impl<T> Default for Tokens<T> {
    fn default() -> Self {
        Self(BTreeMap::new())
    }
}

impl<T> Tokens<T> {
    /// Adds a connection; `false` if the token is taken, in which case the connection needs another key.
    pub fn insert(&mut self, token: u32, connection: T) -> bool {
        match self.0.entry(token) {
            std::collections::btree_map::Entry::Vacant(v) => {
                v.insert(connection);
                true
            }
            std::collections::btree_map::Entry::Occupied(_) => false,
        }
    }
    /// The connection of this token.
    pub fn get(&self, token: u32) -> Option<&T> {
        self.0.get(&token)
    }
    /// Removes a connection.
    pub fn remove(&mut self, token: u32) -> Option<T> {
        self.0.remove(&token)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_names_one_connection() {
        let mut t = Tokens::default();
        assert!(t.insert(5, 'a'));
        assert!(!t.insert(5, 'b'));
        assert_eq!((t.get(5), t.get(6)), (Some(&'a'), None));
        assert_eq!(t.remove(5), Some('a'));
        assert_eq!(t.get(5), None);
    }
}
