//! What a declaration gives: defaults, reading, writing, schema, errors.

use gargalo_settings::{Files, Packets, Probability, Schemas, Setting, kinds, names, settings};
use gargalo_units::{Bytes, Duration, Instant, Rate};
use serde_json::json;

names! {
    /// How the delay is measured.
    pub enum Clock {
        /// By waiting time.
        Sojourn = "sojourn",
        /// By the queue's length.
        Backlog = "backlog",
    }
}

settings! {
    /// A queue.
    ///
    /// With a second paragraph.
    pub struct Red: Copy as "Red" {
        /// Packets that
        /// may wait.
        limit: u64 as Packets = 1000, in 1..=1_000_000;
        /// Largest marking probability.
        most: f64 as Probability = 0.1;
        /// Weight of a sample.
        weight: f64 = 0.5, in 0.0..=1.0;
        /// Delay to hold.
        target: Duration = Duration::from_millis(5), in Duration::from_micros(100)..;
        /// What is measured.
        clock: Clock = Clock::Sojourn;
        /// Bytes that may wait. Default: no limit.
        memory: Option<Bytes> = None;
    }
}

settings! {
    /// A token bucket.
    pub struct Policer: Copy as "Policer" | rate {
        /// Rate at which tokens arrive.
        rate: Rate;
        /// Size of the bucket.
        burst: u32 as Bytes = 1500;
    }
}

kinds! {
    /// A rate, constant or not.
    pub enum Model as "RateMap" {
        words {
            /// As it comes.
            "unlimited" => Unlimited;
        }
        plain {
            /// The same rate always.
            "constant" => Constant(Rate);
        }
        named {
            /// The rate of a queue.
            "red" => Queue(Red);
        }
        tables {
            /// A rate from each instant on.
            "steps" => Steps(Vec<(Instant, Rate)>);
            /// With a policer.
            "policer" => Policed(Policer);
        }
    }
}

fn read<T: Setting>(json: serde_json::Value) -> Result<T, String> {
    T::read(&json, &mut Files::default()).map_err(|e| e.to_string())
}

#[test]
fn what_is_written_reads_as_the_same_value() {
    let all = [
        json!("unlimited"),
        json!("10Mbit/s"),
        json!({ "constant": "10Mbit/s" }),
        json!("red"),
        json!({ "red": { "limit": "7 packets", "most": "1%", "memory": "3kB", "clock": "backlog" } }),
        json!({ "steps": [["0s", "1Mbit/s"], ["1.5s", "1.234567891Gbit/s"]] }),
        json!({ "policer": { "rate": "1Mbit/s" } }),
        json!({ "policer": "1Mbit/s" }),
    ];
    for json in all {
        let model: Model = read(json.clone()).unwrap();
        assert_eq!(read::<Model>(model.write()), Ok(model), "{json}");
    }
    let red = Red::default();
    assert_eq!(
        red.write(),
        json!({ "limit": "1000 packets", "most": 0.1, "weight": 0.5, "target": "5ms", "clock": "sojourn" })
    );
}

#[test]
fn errors_name_the_key_and_the_remedy() {
    let e = |j| read::<Model>(j).unwrap_err();
    assert_eq!(
        e(json!({ "red": { "limit": "0 packets" } })),
        "red.limit: limit = 0 packets is out of range (give 1 packets to 1000000 packets)"
    );
    assert_eq!(
        e(json!({ "red": { "target": "1us" } })),
        "red.target: target = 1us is out of range (give 100us or more)"
    );
    assert!(e(json!({ "red": { "lim": 1 } })).contains("known here: limit, most"));
    assert!(e(json!({ "red": { "weight": "x" } })).starts_with("red.weight: "));
    assert!(e(json!({ "policer": {} })).contains("\"rate\" is missing"));
    assert!(e(json!({ "policer": { "rate": "1Mbit/s", "burst": "5GB" } })).contains("too large"));
    assert!(e(json!({ "steps": [["0s", "1Mbit/s"], ["1s", "1"]] })).starts_with("steps.1.1: "));
    assert!(
        e(json!({ "stepz": [] })).contains("known here: unlimited, constant, red, steps, policer")
    );
    let red = Red {
        weight: f64::NAN,
        ..Red::default()
    };
    assert!(red.check().is_err() && Red::default().check().is_ok());
    let red = Red {
        most: 2.0,
        ..Red::default()
    };
    let e = Model::Queue(red).check().unwrap_err();
    assert_eq!(
        e.to_string(),
        "red.most: 2 is not a probability (give a number from 0 to 1)"
    );
}

#[test]
fn the_schema_has_meaning_default_and_range() {
    let mut schemas = Schemas::default();
    let reference = Model::schema(&mut schemas);
    assert_eq!(reference["anyOf"][0]["const"], "unlimited");
    assert_eq!(reference["anyOf"][3], json!({ "$ref": "#/$defs/RateMap" }));
    let tables = schemas.definitions["RateMap"]["oneOf"].as_array().unwrap();
    assert_eq!(tables.len(), 4);
    let red = &schemas.definitions["Red"];
    assert_eq!(red["description"], "A queue.\n\nWith a second paragraph.");
    assert_eq!(
        red["properties"]["limit"]["description"],
        "Packets that\nmay wait."
    );
    assert_eq!(red["properties"]["limit"]["default"], "1000 packets");
    assert_eq!(red["properties"]["weight"]["maximum"], 1);
    assert_eq!(red["properties"]["clock"]["default"], "sojourn");
    assert!(red.get("required").is_none());
    assert_eq!(schemas.definitions["Policer"]["required"], json!(["rate"]));
    assert!(schemas.formats.contains_key("probability") && schemas.formats.contains_key("size"));
}

#[test]
fn windows_and_switches_are_written_as_they_are_read() {
    use gargalo_settings::{Switch, Window};
    type W = Switch<Window>;
    for (json, value) in [
        (json!(false), W::Off),
        (json!(true), W::On),
        (json!("10 packets"), W::To(Window::Packets(10))),
        (json!("14480B"), W::To(Window::Bytes(Bytes::new(14_480)))),
    ] {
        assert_eq!(W::read(&json, &mut Files::default()), Ok(value));
        assert_eq!(value.write(), json);
    }
    let error = W::read(&json!("10"), &mut Files::default()).unwrap_err();
    assert!(error.to_string().contains("\"10 packets\""), "{error}");
    let (ten, odd) = (Window::Packets(10), Window::Bytes(Bytes::new(14_481)));
    assert_eq!(
        (ten.bytes(1448), odd.bytes(1448)),
        (Bytes::new(14_480), Bytes::new(14_481))
    );
    assert_eq!((ten.packets(1448), odd.packets(1448)), (10, 11));
}

settings! {
    /// Multiples of the window.
    pub struct Factors: Copy as "Factors" {
        /// In slow start.
        slow_start: f64 = 2.0, in 0.1..=100.0;
        /// In congestion avoidance.
        avoidance: f64 = 1.2, in 0.1..=100.0;
    }
}

kinds! {
    /// When to pace.
    pub enum Pacing: Copy as "Pacing" {
        words {
            /// Never: no pacing.
            "off" => Off;
        }
        open {
            /// By the window.
            "window" => Window(Factors);
        }
    }
}

gargalo_settings::switch!(Pacing, Pacing::Off, Pacing::Window(Factors::default()));

settings! {
    /// A part of other tables.
    pub struct Part as "Part", over Part::usual {
        /// Takes the values of an older profile.
        old: bool = false;
        /// Factors of the pacing rate.
        factors: Factors = Factors::default();
        /// When to pace packets.
        pacing: Pacing as gargalo_settings::Switch<Pacing> = Pacing::Off;
        /// A policer. Default: none.
        red: Option<Red> as gargalo_settings::Switch<Red> = None;
    } beside {
        /// Of code only.
        notices: bool = false;
    }
}

impl Part {
    fn usual(
        given: &serde_json::Map<String, gargalo_settings::Json>,
        _: &mut Files,
    ) -> Result<Self, gargalo_settings::Error> {
        let mut usual = Self::default();
        if given.get("old") == Some(&true.into()) {
            usual.factors.avoidance = 1.0;
        }
        Ok(usual)
    }
}

settings! {
    /// A table with the keys of another one.
    pub struct Whole as "Whole" {
        /// A key of its own.
        own: u32 = 1;
    } with {
        /// The keys of another table.
        part: Part;
    }
}

#[test]
fn a_table_has_the_keys_of_another_and_its_defaults_follow_what_it_says() {
    let read = |json| Whole::read(&json, &mut Files::default());
    let whole = read(json!({ "own": 2, "old": true, "factors": { "slow_start": 3 } })).unwrap();
    assert_eq!((whole.own, whole.part.notices), (2, false));
    let factors = &whole.part.factors;
    assert_eq!((factors.slow_start, factors.avoidance), (3.0, 1.0));
    assert_eq!(read(whole.write()), Ok(whole.clone()));
    assert_eq!(read(json!({})), Ok(Whole::default()));
    let error = read(json!({ "notices": true })).unwrap_err();
    assert!(
        error
            .to_string()
            .contains("known here: own, old, factors, pacing, red"),
        "{error}"
    );
    let error = read(json!({ "factors": { "slow_start": 0 } })).unwrap_err();
    assert_eq!(error.path, "factors.slow_start");
    let mut bad = whole;
    bad.part.factors.avoidance = 0.0;
    assert_eq!(bad.check().unwrap_err().path, "factors.avoidance");
    let mut schemas = Schemas::default();
    Whole::schema(&mut schemas);
    let properties = &schemas.definitions["Whole"]["properties"];
    assert_eq!(properties.as_object().unwrap().len(), 5);
    assert!(!schemas.definitions.contains_key("Part"));
}

#[test]
fn switches_stand_for_values_and_a_table_may_stand_as_it_is() {
    let read = |json| Part::read(&json, &mut Files::default());
    let window = |slow_start, avoidance| {
        Pacing::Window(Factors {
            slow_start,
            avoidance,
        })
    };
    for (written, value) in [
        (json!(false), Pacing::Off),
        (json!("off"), Pacing::Off),
        (json!(true), window(2.0, 1.2)),
        (json!("window"), window(2.0, 1.2)),
        (json!({ "slow_start": 4 }), window(4.0, 1.2)),
    ] {
        let part = read(json!({ "pacing": written })).unwrap();
        assert_eq!(part.pacing, value);
        assert_eq!(read(part.write()), Ok(part));
    }
    assert_eq!(read(json!({ "red": false })).unwrap().red, None);
    let usual = read(json!({ "red": true })).unwrap();
    assert_eq!(usual.red, Some(Red::default()));
}
