//! Something on the only path takes Multipath TCP options away: everything arrives by plain TCP.

use gargalo_link::Strip;
use gargalo_units::Duration;

use crate::Test;
use crate::case::*;
use crate::transfers::run;

pub const TESTS: &[Test] = &[
    ("stripped_everywhere", || both(Strip::All, true, true)),
    ("stripped_upwards", || both(Strip::All, true, false)),
    ("stripped_downwards", || both(Strip::All, false, true)),
    ("stripped_from_syns", || both(Strip::Syn, true, true)),
    ("stripped_from_the_answer", || both(Strip::Syn, false, true)),
    ("stripped_from_all_but_syns", || {
        both(Strip::Rest, true, true)
    }),
    ("stripped_upwards_from_all_but_syns", || {
        both(Strip::Rest, true, false)
    }),
    ("stripped_downwards_from_all_but_syns", || {
        both(Strip::Rest, false, true)
    }),
    ("stripped_from_later_data", || {
        both(Strip::After(1_000_000), true, true)
    }),
    ("stripped_from_later_data_upwards", || {
        both(Strip::After(1_000_000), true, false)
    }),
    ("stripped_from_later_data_downwards", || {
        both(Strip::After(1_000_000), false, true)
    }),
    (
        "stripped_downwards_while_the_client_is_silent",
        silent_client,
    ),
    ("stripped_on_one_path_of_two", one_of_two),
];

fn both(strip: Strip, up: bool, down: bool) {
    for who in [OURS_TO_KERNEL, KERNEL_TO_OURS, OURS] {
        for download in [false, true] {
            one(strip, up, down, who, download);
        }
    }
}

fn one(strip: Strip, up: bool, down: bool, who: Who, download: bool) {
    let case = Case {
        download,
        strips: [(
            0,
            [up, down].map(|here| if here { strip } else { Strip::None }),
        )]
        .into(),
        ..Case::new(who, &[(50, 5)], 2_500_000)
    };
    let what = format!("{strip:?} up={up} down={down} {who:?} download={download}");
    let data_is_stripped = if download { down } else { up };
    let late = matches!(strip, Strip::After(_));
    let done = run(case);
    assert!(
        done.flow().completion.is_some() && !done.flow().corrupted,
        "{what}: {:?}",
        done.flow()
    );
    done.is_whole();
    if late && !data_is_stripped {
        // Acknowledgements carry too little for anything to happen to them.
        return;
    }
    if late {
        // A sender that receives DATA_ACKs need not notice. Linux 6.18 does not detect that its data loses its
        // mappings once some have passed: without our DATA_ACKs it would repeat at data level what the
        // receiver takes for new (as two kernels do, whose stream is garbled).
        let receiver = usize::from(!download);
        assert!(
            done.report(receiver).fell_back,
            "{what}: {:?}",
            done.report(receiver)
        );
        return;
    }
    for side in [0, 1] {
        assert!(
            done.report(side).fell_back,
            "{what}: side {side}: {:?}",
            done.report(side)
        );
    }
}

/// A client that has fallen back and has nothing to say cannot tell a server whose data loses its mappings:
/// the server must not repeat at data level what the client takes for new (two kernels garble this stream).
fn silent_client() {
    for who in [OURS_TO_KERNEL, OURS] {
        let case = Case {
            download: true,
            think: Duration::from_millis(900),
            strips: [(0, [Strip::None, Strip::Rest])].into(),
            ..Case::new(who, &[(50, 5)], 4_000_000)
        };
        let done = run(case);
        done.is_whole();
        assert!(done.report(0).fell_back, "{who:?}: {:?}", done.report(0));
    }
}

/// Joins do not pass there; the rest is as if there were one path.
fn one_of_two() {
    for who in [OURS_TO_KERNEL, KERNEL_TO_OURS] {
        let case = Case {
            strips: [(1, [Strip::All; 2])].into(),
            ..Case::new(who, &[(50, 5), (50, 5)], 4_000_000)
        };
        let done = run(case);
        done.is_whole();
        for side in [0, 1] {
            let report = done.report(side);
            assert!(
                !report.fell_back && report.subflows.len() == 1,
                "{report:?}"
            );
        }
    }
}
