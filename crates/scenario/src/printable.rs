//! Text that is safe to show on a terminal.

/// Replaces characters that would control a terminal by others of the same length, so that byte offsets stay valid.
/// Line ends and tabs stay.
pub(crate) fn printable(text: &str) -> String {
    text.chars()
        .map(|c| match (steers(c), c.len_utf8()) {
            (false, _) => c,
            (true, 1) => '?',
            (true, 2) => '\u{b7}',
            (true, _) => char::REPLACEMENT_CHARACTER,
        })
        .collect()
}

/// Whether a character controls the terminal that shows it.
pub(crate) fn steers(c: char) -> bool {
    (c.is_control() && !matches!(c, '\n' | '\t')) || is_hidden(c)
}

/// Whether a character changes the direction of the text around it.
pub(crate) fn is_hidden(c: char) -> bool {
    matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}
