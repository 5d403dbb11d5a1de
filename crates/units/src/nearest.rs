//! The known name that is nearest to a misspelt one.

/// The candidate nearest to `name`, the first of equals; `None` if even that one differs in more than a third
/// of its characters, rounded.
///
/// Insertions, deletions, substitutions and exchanges of adjacent characters are counted. Case, hyphens,
/// underscores and spaces are ignored. Only the first 64 characters are compared, which bounds the work on hostile
/// input.
///
/// ```
/// # use gargalo_units::nearest;
/// assert_eq!(nearest("cubci", ["bbr", "cubic"]), Some("cubic"));
/// assert_eq!(nearest("quantum", ["bbr", "cubic"]), None);
/// ```
pub fn nearest<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let name = plain(name);
    let measured = candidates.into_iter().map(|candidate| {
        let plain = plain(candidate);
        let most = (name.len().max(plain.len()) + 1) / 3;
        (edits(&name, &plain), most, candidate)
    });
    let (edits, most, candidate) = measured.min_by_key(|(edits, ..)| *edits)?;
    (edits <= most).then_some(candidate)
}

/// A name in the form that is compared: lower case, without separators.
fn plain(name: &str) -> Vec<char> {
    let kept = name.chars().filter(|c| !matches!(c, '-' | '_' | ' '));
    kept.flat_map(char::to_lowercase).take(64).collect()
}

/// The edit distance of two words (Levenshtein 1966); an exchange of adjacent characters counts as one.
fn edits(a: &[char], b: &[char]) -> usize {
    let mut older: Vec<usize> = Vec::new();
    let mut old: Vec<usize> = (0..=b.len()).collect();
    for i in 0..a.len() {
        let mut new = vec![i + 1];
        for j in 0..b.len() {
            let substitution = old[j] + usize::from(a[i] != b[j]);
            let mut best = substitution.min(old[j + 1] + 1).min(new[j] + 1);
            if i > 0 && j > 0 && a[i] == b[j - 1] && a[i - 1] == b[j] {
                best = best.min(older[j - 1] + 1);
            }
            new.push(best);
        }
        older = std::mem::replace(&mut old, new);
    }
    old[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_between_words() {
        let between = |a: &str, b: &str| edits(&plain(a), &plain(b));
        assert_eq!(between("kitten", "sitting"), 3);
        assert_eq!(between("", "abc"), 3);
        assert_eq!(between("abc", ""), 3);
        assert_eq!(between("ab", "ba"), 1);
        assert_eq!(between("rack-tlp", "RACK TLP"), 0);
    }

    #[test]
    fn slips_are_forgiven_and_other_words_are_not() {
        let names = [
            "cubic",
            "bbr",
            "reno",
            "lowest-latency",
            "hystart",
            "hystart++",
            "i",
        ];
        for (given, meant) in [
            ("cubik", "cubic"),
            ("CUBIC", "cubic"),
            ("ucbic", "cubic"),
            ("ccubik", "cubic"),
            ("rno", "reno"),
            ("bb", "bbr"),
            ("hystrat", "hystart"),
            ("hystrat++", "hystart++"),
            ("lowest-latancy", "lowest-latency"),
            ("lowest_latency", "lowest-latency"),
        ] {
            assert_eq!(nearest(given, names), Some(meant), "{given}");
        }
        for given in ["quantum", "", "x", "rate", "vegas"] {
            assert_eq!(nearest(given, names), None, "{given}");
        }
        assert_eq!(nearest("cubic", []), None);
    }

    #[test]
    fn the_first_of_equals_and_a_bounded_part() {
        assert_eq!(nearest("rena", ["reno", "renb"]), Some("reno"));
        let long = |end: &str| "x".repeat(100_000) + end;
        let (a, b) = (long("a"), long("b"));
        assert_eq!(nearest(&a, [b.as_str()]), Some(b.as_str()));
    }
}
