use gargalo_settings::{names, settings};

use super::*;

names! {
    /// A choice.
    pub enum Mode {
        /// The default of [`Outer`].
        First = "first",
        /// Another.
        Second = "second",
    }
}

settings! {
    /// Parameters inside others.
    struct Inner: Copy as "Inner", const {
        /// A share,
        /// as a fraction.
        share: f64 = 0.5, in 0.0..=1.0;
        /// A count.
        count: u32 = 3, in 1..=1_000_000;
    }
}

settings! {
    /// Parameters of every kind.
    struct Outer: Copy as "Outer", const {
        /// A mode (source: 1. 2.).
        mode: Mode = Mode::First;
        /// A switch.
        switch: bool = true;
        /// A wait.
        wait: Duration = Duration::from_millis(10),
            in Duration::ZERO..=Duration::from_secs(1);
    }
    with {
        /// Inner parameters with another default.
        inner: Inner = Inner { share: 0.25, ..Inner::DEFAULT };
    }
}

#[test]
fn a_declaration_is_the_list() {
    let table = Outer::params();
    let shown: Vec<_> = table
        .iter()
        .map(|p| (p.name, p.default_value().to_string(), p.valid(), p.doc))
        .collect();
    let expected = [
        (
            "mode",
            "\"first\"",
            "one of first, second",
            "A mode (source: 1. 2.)",
        ),
        ("switch", "true", "true or false", "A switch"),
        ("wait", "\"10ms\"", "a duration from 0s to 1s", "A wait"),
        (
            "share",
            "0.25",
            "a number from 0 to 1",
            "A share, as a fraction",
        ),
        ("count", "3", "a whole number from 1 to 1000000", "A count"),
    ];
    let expected = expected.map(|(n, d, v, doc)| (n, d.to_owned(), v.to_owned(), doc));
    assert_eq!(shown, expected);
    assert!(NoParams::params().is_empty());
}

#[test]
fn a_declaration_is_the_reading() {
    let read = |given: Params| Outer::from_params("outer", &given);
    assert_eq!(read(Params::new()), Ok(Outer::default()));
    let given = Params::new()
        .with("wait", "20ms")
        .with("count", 7.0)
        .with("mode", "second")
        .with("switch", false);
    let expected = Outer {
        mode: Mode::Second,
        inner: Inner {
            share: 0.25,
            count: 7,
        },
        switch: false,
        wait: Duration::from_millis(20),
    };
    assert_eq!(read(given), Ok(expected));
    for (name, value, message) in [
        (
            "shar",
            0.5.into(),
            "outer has no parameter \"shar\" (did you mean \"share\"?); it has mode, switch, wait, share",
        ),
        ("inner", 0.5.into(), "outer has no parameter \"inner\""),
        (
            "share",
            1.5.into(),
            "outer: share = 1.5 is not valid: it must be a number from 0 to 1",
        ),
        ("share", true.into(), "outer: share = true is not valid"),
        (
            "count",
            1.5.into(),
            "outer: count = 1.5 is not valid: it must be a whole number from 1",
        ),
        (
            "mode",
            "secnod".into(),
            "must be one of first, second (did you mean \"second\"?)",
        ),
        (
            "wait",
            "2s".into(),
            "outer: wait = \"2s\" is not valid: it must be a duration from 0s to 1s",
        ),
        ("wait", 5.0.into(), "outer: wait: "),
    ] as [(&str, ParamValue, &str); 8]
    {
        let error = Outer::from_params("outer", &[(name.to_owned(), value)].into_iter().collect());
        let error = error.unwrap_err().to_string();
        assert!(error.contains(message), "{error}");
    }
    let twice = Params::new().with("share", 0.1).with("share", 0.1);
    assert_eq!(
        read(twice).unwrap_err().to_string(),
        "outer: \"share\" is given twice"
    );
}
