//! Runs scripts: `script [--kernel] FILE...`; with `--kernel` inside `unshare -Urn`.

use std::path::Path;

use gargalo_script::ast::Only;
use gargalo_script::{Choices, Verdict, run_text};
use gargalo_settings::Files;
use gargalo_units::Duration;

fn main() {
    let mut choices = Choices {
        stack: Only::Ours,
        tolerance: Duration::from_millis(20),
        gargalo: Vec::new(),
    };
    let mut files = Vec::new();
    for arg in std::env::args().skip(1) {
        match arg.as_str() {
            "--kernel" => choices.stack = Only::Kernel,
            file => files.push(file.to_owned()),
        }
    }
    let one = |file: &String| {
        let text = Files::text(Path::new(file)).unwrap_or_default();
        (file.clone(), run_text(&text, &choices))
    };
    let verdicts: Vec<_> = std::thread::scope(|scope| {
        let started: Vec<_> = files.iter().map(|f| scope.spawn(move || one(f))).collect();
        started.into_iter().filter_map(|s| s.join().ok()).collect()
    });
    for (file, verdict) in verdicts {
        match verdict {
            Verdict::Passed => println!("ok   {file}"),
            Verdict::Unsupported(fault) => println!("BAD  {file}:{fault}"),
            Verdict::Broken { message } => println!("SYS  {file}: {message}"),
            Verdict::Failed(m) => {
                println!("FAIL {file}:{}: expected {}", m.at.line, m.expected);
                println!("     came {}", m.came);
                m.packets.iter().for_each(|p| println!("       {p}"));
            }
        }
    }
}
