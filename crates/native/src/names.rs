//! Names that live as long as the process, as results require.

use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// Most different names that are kept.
const MOST: usize = 1024;

/// There are too many different names.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "\"{0}\" is one phase or gauge too many: more than {MOST} different names; put changing quantities into the \
     values of gauges()"
)]
pub struct TooMany(pub String);

/// Makes a name live as long as the process; there are few distinct names.
///
/// # Errors
/// When there are more than a thousand.
pub fn keep(name: &str) -> Result<&'static str, TooMany> {
    static NAMES: Mutex<BTreeSet<&'static str>> = Mutex::new(BTreeSet::new());
    let mut names = NAMES.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(known) = names.get(name) {
        return Ok(known);
    }
    if names.len() == MOST {
        return Err(TooMany(name.to_owned()));
    }
    let kept: &'static str = Box::leak(name.to_owned().into_boxed_str());
    names.insert(kept);
    Ok(kept)
}
