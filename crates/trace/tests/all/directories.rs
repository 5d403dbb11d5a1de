//! Results directories: complete or absent, and replaced only if they have nothing but results.

use std::fs::{self, File};
use std::ops::ControlFlow;
use std::path::Path;

use gargalo_trace::{
    Error, Existing, GoOn, Manifest, Recovered, RunDir, check_replaceable, never_stop, recover,
};

fn names(dir: &Path) -> Vec<String> {
    let of = |e: std::io::Result<fs::DirEntry>| e.unwrap().file_name().into_string().unwrap();
    let mut names: Vec<_> = fs::read_dir(dir).unwrap().map(of).collect();
    names.sort();
    names
}

fn make(target: &Path, existing: Existing, file: &str) -> Result<(), Error> {
    let dir = RunDir::create(target, existing, &mut never_stop)?;
    dir.write(file, b"x")?;
    assert_eq!(dir.commit(&mut never_stop)?, target);
    Ok(())
}

#[test]
fn a_run_directory_appears_whole() {
    let scratch = tempfile::tempdir().unwrap();
    let parent = scratch.path().join("results");
    let target = parent.join("run-1");
    let dir = RunDir::create(&target, Existing::Refuse, &mut never_stop).unwrap();
    dir.write("run.json", b"{}").unwrap();
    assert!(!target.exists());
    assert_eq!(names(&parent).len(), 2, "partial results and their lock");
    assert_eq!(dir.commit(&mut never_stop).unwrap(), target);
    assert_eq!(names(&target), ["manifest.json", "run.json"]);
    assert_eq!(names(&parent), ["run-1"]);
}

#[test]
fn hashing_that_is_stopped_leaves_what_was_there() {
    let scratch = tempfile::tempdir().unwrap();
    let parent = scratch.path().join("results");
    let target = parent.join("run-1");
    let begin = |text: &[u8], go_on: &mut GoOn<'_>| -> Result<RunDir, Error> {
        let dir = RunDir::create(&target, Existing::Replace, go_on)?;
        dir.write("run.json", &text.repeat(100_000))?;
        dir.write("summary.json", text)?;
        Ok(dir)
    };
    // How often it is asked: with nothing there, and with results that are replaced.
    let count = |text: &[u8]| {
        let mut asked = 0;
        let mut go_on = || {
            asked += 1;
            ControlFlow::Continue(())
        };
        begin(text, &mut go_on).unwrap().commit(&mut go_on).unwrap();
        asked
    };
    assert_eq!(count(b"old"), 6);
    let asked = count(b"old");
    assert_eq!(asked, 4 * 6, "the old ones three times, the new ones once");
    for stop in 0..asked {
        let mut left = stop;
        let mut go_on = || {
            if left == 0 {
                return ControlFlow::Break(());
            }
            left -= 1;
            ControlFlow::Continue(())
        };
        let done = begin(b"new", &mut go_on).and_then(|dir| dir.commit(&mut go_on));
        assert!(matches!(done, Err(Error::Stopped)), "{stop}: {done:?}");
        assert_eq!(names(&parent), ["run-1"]);
        assert_eq!(fs::read(target.join("summary.json")).unwrap(), b"old");
        check_replaceable(&target, &mut never_stop).unwrap();
    }
}

#[test]
fn an_abandoned_run_leaves_nothing() {
    let scratch = tempfile::tempdir().unwrap();
    let dir = RunDir::create(
        &scratch.path().join("run"),
        Existing::Refuse,
        &mut never_stop,
    )
    .unwrap();
    dir.write("run.json", b"{").unwrap();
    drop(dir);
    assert!(names(scratch.path()).is_empty());
}

#[test]
fn existing_results_are_refused_or_replaced() {
    let scratch = tempfile::tempdir().unwrap();
    let target = scratch.path().join("run");
    make(&target, Existing::Refuse, "old").unwrap();
    let refused = make(&target, Existing::Refuse, "new").unwrap_err();
    assert!(matches!(refused, Error::Exists { .. }));
    assert!(refused.to_string().contains("choose another directory"));
    assert_eq!(names(&target), ["manifest.json", "old"]);
    make(&target, Existing::Replace, "new").unwrap();
    assert_eq!(names(&target), ["manifest.json", "new"]);
    assert_eq!(names(scratch.path()), ["run"]);
}

#[test]
fn nothing_is_lost_when_two_make_the_same() {
    let scratch = tempfile::tempdir().unwrap();
    let target = scratch.path().join("race");
    let a = RunDir::create(&target, Existing::Refuse, &mut never_stop).unwrap();
    let b = RunDir::create(&target, Existing::Refuse, &mut never_stop).unwrap();
    a.write("a", b"").unwrap();
    b.write("b", b"").unwrap();
    assert_eq!(a.commit(&mut never_stop).unwrap(), target);
    let beside = scratch.path().join("race-2");
    assert_eq!(b.commit(&mut never_stop).unwrap(), beside);
    assert_eq!(names(&target), ["a", "manifest.json"]);
    assert_eq!(names(&beside), ["b", "manifest.json"]);

    // A foreign file is added while new results are written: both are kept.
    let c = RunDir::create(&target, Existing::Replace, &mut never_stop).unwrap();
    fs::write(target.join("thesis.tex"), b"precious").unwrap();
    assert_eq!(
        c.commit(&mut never_stop).unwrap(),
        scratch.path().join("race-3")
    );
    assert_eq!(names(&target), ["a", "manifest.json", "thesis.tex"]);
}

#[test]
fn only_results_are_replaced() {
    let scratch = tempfile::tempdir().unwrap();
    let of = |name: &str, files: &[&str]| {
        let dir = scratch.path().join(name);
        for file in files {
            let path = dir.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            let ours = match *file {
                "run.json" => br#"{"version": "0.1.0", "source": {}, "scenario": {}}"#.as_slice(),
                "scorecard.json" => br#"{"engine": "", "algorithm": "", "criteria": []}"#,
                _ => b"{}",
            };
            let theirs = name.starts_with("their");
            fs::write(path, if theirs { b"{}" } else { ours }).unwrap();
        }
        fs::create_dir_all(&dir).unwrap();
        dir
    };
    // A file called run.json does not make the files beside it results; neither does a foreign manifest.
    let foreign_ones = [
        of("docs", &["thesis.tex"]),
        of("mixed", &["run.json", "summary.json", "notes.md"]),
        of("deep", &["run.json", "qlog/a.sqlog", "qlog/b/c.sqlog"]),
        of("pictures", &["goodput.png"]),
        of("their run", &["run.json", "goodput.png"]),
        of("their card", &["scorecard.json", "scenarios/a/b.toml"]),
    ];
    for dir in &foreign_ones {
        let before = names(dir);
        let refused = RunDir::create(dir, Existing::Replace, &mut never_stop).unwrap_err();
        assert!(matches!(refused, Error::Foreign { .. }), "{refused}");
        assert!(refused.to_string().contains("is not a result"), "{refused}");
        assert_eq!(names(dir), before);
    }
    // A foreign manifest is not used.
    let web = of("web", &["run.json", "manifest.json"]);
    let refused = RunDir::create(&web, Existing::Replace, &mut never_stop).unwrap_err();
    assert!(matches!(refused, Error::BadManifest { .. }), "{refused}");
    // What older versions wrote, and an empty directory.
    let old = [
        "run.json",
        "summary.json",
        "flows.parquet",
        "rtt.svg",
        "qlog/flow0-client.sqlog",
    ];
    make(&of("old", &old), Existing::Replace, "new").unwrap();
    make(&of("empty", &[]), Existing::Replace, "new").unwrap();
    let judged = of("judged", &["scorecard.json", "scenarios/high/reno.toml"]);
    make(&judged, Existing::Replace, "new").unwrap();

    // With a manifest: only the files that it lists, whatever the names of others.
    let run = scratch.path().join("run");
    make(&run, Existing::Refuse, "odd").unwrap();
    fs::write(run.join("report.html"), b"").unwrap();
    check_replaceable(&run, &mut never_stop).unwrap();
    for name in ["goodput.png", "mine"] {
        fs::write(run.join(name), b"").unwrap();
        let message = check_replaceable(&run, &mut never_stop)
            .unwrap_err()
            .to_string();
        assert!(
            message.contains(&format!("{name} is not a result")),
            "{message}"
        );
        fs::remove_file(run.join(name)).unwrap();
    }
}

#[test]
fn an_edited_file_is_not_replaced() {
    let scratch = tempfile::tempdir().unwrap();
    let run = scratch.path().join("run");
    make(&run, Existing::Refuse, "summary.json").unwrap();
    fs::write(run.join("summary.json"), b"y").unwrap();
    let message = make(&run, Existing::Replace, "new")
        .unwrap_err()
        .to_string();
    assert!(
        message.contains("run/summary.json was changed"),
        "{message}"
    );
    assert!(message.contains("move it away, or remove it"), "{message}");
    assert_eq!(fs::read(run.join("summary.json")).unwrap(), b"y");
    fs::remove_file(run.join("summary.json")).unwrap();
    make(&run, Existing::Replace, "new").unwrap();
}

#[test]
fn every_bit_of_a_manifest_counts() {
    let scratch = tempfile::tempdir().unwrap();
    let run = scratch.path().join("run");
    make(&run, Existing::Refuse, "summary.json").unwrap();
    let file = run.join("manifest.json");
    let good = fs::read(&file).unwrap();
    let mut bad = good.clone();
    for bit in (0..8 * good.len()).step_by(3) {
        bad[bit / 8] ^= 1 << (bit % 8);
        fs::write(&file, &bad).unwrap();
        let message = Manifest::read(&run).unwrap_err().to_string();
        assert!(
            message.contains("run/manifest.json: "),
            "bit {bit}: {message}"
        );
        bad[bit / 8] ^= 1 << (bit % 8);
    }
    for (text, why) in [
        (good[..good.len() / 2].to_vec(), "damaged"),
        (Vec::new(), "damaged"),
        (
            br#"{"format": 9, "gargalo": "7.0", "files": []}"#.to_vec(),
            "gargalo 7.0 wrote it in format 9",
        ),
    ] {
        fs::write(&file, text).unwrap();
        let message = check_replaceable(&run, &mut never_stop)
            .unwrap_err()
            .to_string();
        assert!(message.contains(why), "{message}");
        assert!(
            message.contains("run it again into another directory"),
            "{message}"
        );
    }
    // Before manifests had a checksum of themselves.
    let mut facts: serde_json::Value = serde_json::from_slice(&good).unwrap();
    facts["format"] = 1.into();
    facts.as_object_mut().unwrap().remove("sha256").unwrap();
    fs::write(&file, facts.to_string()).unwrap();
    let old = Manifest::read(&run).unwrap().unwrap();
    old.verify(&run, ["summary.json"], &mut never_stop).unwrap();
    old.write(&run).unwrap();
    assert_eq!(fs::read(&file).unwrap(), good);
    fs::remove_file(&file).unwrap();
    assert_eq!(Manifest::read(&run).unwrap(), None);
}

#[test]
fn results_that_stepped_aside_return() {
    let scratch = tempfile::tempdir().unwrap();
    let parent = scratch.path();
    let target = parent.join("run");
    let aside = parent.join(".run.abcdefghijkl.old");
    let partial = parent.join(".run.abcdefghijkl.partial");
    let lock = parent.join(".run.abcdefghijkl.lock");
    let step_aside = || {
        fs::create_dir(&aside).unwrap();
        fs::rename(&target, aside.join("run")).unwrap();
        fs::write(&lock, b"").unwrap();
    };
    // Killed before the new ones were in place.
    make(&target, Existing::Refuse, "old").unwrap();
    step_aside();
    fs::create_dir(&partial).unwrap();
    // A live process: nothing is changed.
    let held = File::options().write(true).open(&lock).unwrap();
    held.lock().unwrap();
    assert!(recover(parent).unwrap().is_empty());
    drop(held);
    let message: Vec<_> = recover(parent)
        .unwrap()
        .iter()
        .map(Recovered::to_string)
        .collect();
    assert!(
        message[0].starts_with("removed ") && message[1].starts_with("restored "),
        "{message:?}"
    );
    assert_eq!(names(parent), ["run"]);
    assert_eq!(names(&target), ["manifest.json", "old"]);
    // Another process has created the target since: the old ones are beside it.
    step_aside();
    fs::create_dir(&partial).unwrap();
    make(&target, Existing::Refuse, "another").unwrap();
    recover(parent).unwrap();
    assert_eq!(names(parent), ["run", "run-2"]);
    assert_eq!(names(&parent.join("run-2")), ["manifest.json", "old"]);
    // The new ones are in place: the old ones are kept only if they have a foreign file.
    fs::remove_dir_all(parent.join("run-2")).unwrap();
    for foreign in [false, true] {
        step_aside();
        make(&target, Existing::Refuse, "new").unwrap();
        if foreign {
            fs::write(aside.join("run/thesis.tex"), b"precious").unwrap();
        }
        assert_eq!(recover(parent).unwrap().len(), usize::from(foreign));
        assert_eq!(names(&target), ["manifest.json", "new"]);
        assert_eq!(parent.join("run-2/thesis.tex").exists(), foreign);
        assert!(!aside.exists() && !lock.exists());
    }
}

#[cfg(unix)]
#[test]
fn links_are_not_followed() {
    let scratch = tempfile::tempdir().unwrap();
    let far = scratch.path().join("far");
    make(&far, Existing::Refuse, "x").unwrap();
    let link = scratch.path().join("link");
    std::os::unix::fs::symlink(&far, &link).unwrap();
    let refused = RunDir::create(&link, Existing::Replace, &mut never_stop).unwrap_err();
    assert!(matches!(refused, Error::Foreign { .. }), "{refused}");
    // Nor by the removal of stale directories.
    let stale = scratch.path().join(".run.abcdefghijkl.partial");
    std::os::unix::fs::symlink(&far, &stale).unwrap();
    fs::write(scratch.path().join(".run.abcdefghijkl.lock"), b"").unwrap();
    recover(scratch.path()).unwrap();
    assert_eq!(names(&far), ["manifest.json", "x"]);
}

#[test]
fn what_killed_processes_left_is_removed() {
    let scratch = tempfile::tempdir().unwrap();
    let parent = scratch.path();
    // A killed process: its files, and a free lock.
    let stale = parent.join(".run.abcdefghijkl.partial");
    fs::create_dir(&stale).unwrap();
    fs::write(stale.join("run.json"), b"{").unwrap();
    fs::write(parent.join(".run.abcdefghijkl.lock"), b"").unwrap();
    // Not ours: no lock beside it, a lock with something in it, another name.
    fs::create_dir(parent.join(".mine.abcdefghijkm.partial")).unwrap();
    fs::create_dir(parent.join(".full.abcdefghijkn.partial")).unwrap();
    fs::write(parent.join(".full.abcdefghijkn.lock"), b"1").unwrap();
    fs::write(parent.join(".package.lock"), b"").unwrap();
    // A live one, as another process or container sees it.
    let live = RunDir::create(&parent.join("live"), Existing::Refuse, &mut never_stop).unwrap();
    let held = File::create(parent.join(".run.abcdefghijkl.lock")).unwrap();
    held.lock().unwrap();
    assert!(recover(parent).unwrap().is_empty());
    drop(held);
    assert_eq!(recover(parent).unwrap(), [Recovered::Removed(stale)]);
    live.write("run.json", b"{}").unwrap();
    live.commit(&mut never_stop).unwrap();
    assert_eq!(
        names(parent),
        [
            ".full.abcdefghijkn.lock",
            ".full.abcdefghijkn.partial",
            ".mine.abcdefghijkm.partial",
            ".package.lock",
            "live"
        ]
    );
}

#[test]
fn hidden_names_never_repeat_and_fit() {
    let scratch = tempfile::tempdir().unwrap();
    let target = scratch.path().join("\u{e4}".repeat(127));
    let many: Vec<_> = (0..50)
        .map(|_| RunDir::create(&target, Existing::Refuse, &mut never_stop).unwrap())
        .collect();
    assert_eq!(names(scratch.path()).len(), 100);
    drop(many);
    assert!(names(scratch.path()).is_empty());
}

#[test]
fn a_changed_file_is_damaged() {
    let scratch = tempfile::tempdir().unwrap();
    let target = scratch.path().join("run");
    let dir = RunDir::create(&target, Existing::Refuse, &mut never_stop).unwrap();
    fs::create_dir(dir.path().join("qlog")).unwrap();
    fs::write(dir.path().join("qlog/flow0.sqlog"), b"deep").unwrap();
    dir.write("run.json", b"{}").unwrap();
    dir.commit(&mut never_stop).unwrap();
    let mut manifest = Manifest::read(&target).unwrap().unwrap();
    let all = ["run.json", "qlog/flow0.sqlog", "flows.parquet"];
    manifest.verify(&target, all, &mut never_stop).unwrap();
    for (file, text, why) in [
        ("run.json", "[]", "checksum"),
        ("qlog/flow0.sqlog", "deeq", "checksum"),
        ("flows.parquet", "new", "not in manifest.json"),
    ] {
        let before = fs::read(target.join(file)).ok();
        fs::write(target.join(file), text).unwrap();
        let message = manifest
            .verify(&target, all, &mut never_stop)
            .unwrap_err()
            .to_string();
        assert!(message.contains(why) && message.contains(file), "{message}");
        match before {
            Some(data) => fs::write(target.join(file), data).unwrap(),
            None => fs::remove_file(target.join(file)).unwrap(),
        }
    }
    fs::write(target.join("goodput.png"), b"picture").unwrap();
    manifest
        .add(&target, ["goodput.png"], &mut never_stop)
        .unwrap();
    manifest.write(&target).unwrap();
    let read = Manifest::read(&target).unwrap().unwrap();
    assert_eq!(read, manifest);
    read.verify(&target, ["goodput.png"], &mut never_stop)
        .unwrap();
    fs::remove_file(target.join("run.json")).unwrap();
    let message = read
        .verify(&target, all, &mut never_stop)
        .unwrap_err()
        .to_string();
    assert!(message.contains("run.json is damaged: it cannot be read"));
}

#[test]
fn bad_places_are_refused_with_a_remedy() {
    let scratch = tempfile::tempdir().unwrap();
    for bad in ["/", "..", "", "a/.."] {
        let made = RunDir::create(Path::new(bad), Existing::Replace, &mut never_stop);
        assert!(matches!(made, Err(Error::NoName { .. })), "{bad}");
    }
    let dir = RunDir::create(
        &scratch.path().join("run"),
        Existing::Refuse,
        &mut never_stop,
    )
    .unwrap();
    for bad in ["../x", "a/b", "/x", "", ".", "a/"] {
        assert!(
            matches!(dir.write(bad, b""), Err(Error::BadFileName { .. })),
            "{bad}"
        );
    }
    fs::write(scratch.path().join("file"), b"").unwrap();
    let below = RunDir::create(
        &scratch.path().join("file/run"),
        Existing::Refuse,
        &mut never_stop,
    );
    let message = below.unwrap_err().to_string();
    assert!(message.contains("file"), "{message}");
}
